"""Processes that outlive a function, known by the files of a folder: started, recognised, ended."""

import os
import random
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path


def spawn(folder: Path, name: str, argv: list[str]) -> None:
    """Start a process that outlives the one that starts it, where a person wants a server for a while."""
    log = str(folder / f"{name}.log")
    outputs = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # A group of its own: what interrupts the tests ends the server through its owner, after the last test.
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=outputs, setpgroup=0)
    (folder / f"{name}.pid").write_text(str(pid))


PORTS = range(12_000, 23_000)
"""Outside the range from which the system assigns ports to connections, and without default ports of servers.

Otherwise a connection of another process could take a port after it was found free and before a server listens.
"""


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that are free at the moment, in a random order, so that processes differ."""
    ports: list[int] = []
    with ExitStack() as held:
        for port in random.SystemRandom().sample(PORTS, len(PORTS)):
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(f"no {count} ports of {PORTS} are free")


def end(pid: int, folder: Path) -> None:
    """End a process that names the folder in its arguments: asked first, then killed."""
    for number, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 60.0)):
        if not is_ours(pid, folder):
            return
        os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while is_ours(pid, folder) and time.monotonic() < deadline:
            _reap(pid)
            time.sleep(0.02)


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):  # it is another's child, who reaps it
        os.waitpid(pid, os.WNOHANG)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def is_ours(pid: int, folder: Path) -> bool:
    """Tell a process of ours from a stranger who got its number after it ended."""
    shown = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return str(folder) in shown.stdout
