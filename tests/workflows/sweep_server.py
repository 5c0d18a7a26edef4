"""A server that runs `sweep` in its forks, and the program `sweep` that asks it to: for tests of many commands.

`python -m tests.workflows.sweep_server SOCKET` serves until it is ended. The program has its own arguments, folder,
environment and descriptors in the fork; only the imports are shared.
"""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from tests.command_line import become_sweep, import_sweep

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"x"], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


def main() -> None:
    import_sweep()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            client, _ = server.accept()
            reap()
            if os.fork() == 0:
                server.close()
                answer(client)
            client.close()


def reap() -> None:
    """Wait for the forks that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def answer(client: socket.socket) -> None:
    """Run the command that a client names, and send its exit code. Ends this process."""
    _, descriptors, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as request:
        arguments, folder, environment = json.load(request)
    child = os.fork()
    if child == 0:
        client.close()
        os.environ.clear()
        os.environ.update(environment)
        become_sweep(arguments, Path(folder), (descriptors[0], descriptors[1], descriptors[2]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    client.sendall(bytes([code % 256]))
    os._exit(0)


if __name__ == "__main__":
    main()
