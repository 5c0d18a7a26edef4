"""A server that runs `sweep` in its forks: real files, descriptors and exit codes, without the start of a process.

A short command spends most of its time on imports. The server has them. Arguments, folder, environment and descriptors
are the client's, and everything that a command does to its process ends with it. It is a process of its own because a
fork of the test process, with all that the tests import, takes longer than most commands.
"""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import typer.main

import sweepledger
from sweepledger.cli.app import all_commands, app
from sweepledger.cli.app import main as sweep
from sweepledger.results import readme
from tests import builds

ROOT = Path(__file__).parent.parent

IMPORTED_LATE = (
    *("encodings.ascii", "git", "jsonschema", "jsonschema_rs", "pydantic", "pydantic.plugin._loader"),
    *("rich._emoji_codes", "rich.console", "rich.table", "rich.text", "ruamel.yaml"),
    *("typer._adapters", "typer._click.decorators"),
)
"""Libraries that sweepledger, or Typer, imports where it uses them."""
SPEC = """name: first
description: The first spec that a process reads takes it five times as long as the next.
method: grid
metric: {name: score, goal: maximize}
parameters: {x: {values: [1, 2]}}
command: [python, code/train.py, "${args}"]
run: {code: {path: code}, resources: {cpu: 1, memory: 256Mi}, parallelism: 1, timeout: 1m}
"""

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"x"], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    code = server.recv(16)
sys.exit(int(code or 70))
"""
"""A program `sweep` that asks a server."""


@cache
def address() -> str:
    """Start a server, which ends with this process, and return the path of its socket."""
    folder = tempfile.mkdtemp(prefix="sweep-server-")
    path = f"{folder}/socket"
    command = [sys.executable, "-m", "tests.sweep_server", path]
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/generator"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def end() -> None:
        server.communicate()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    assert server.stdout
    assert server.stdout.readline() == b"ready\n"
    return path


def ask(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Sequence[int]
) -> int:
    """Run `sweep` with these descriptors as stdin, stdout and stderr, and return its exit code."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address())
        socket.send_fds(server, [b"x"], list(streams))
        server.sendall(json.dumps([arguments, str(folder), dict(environment)]).encode())
        server.shutdown(socket.SHUT_WR)
        return int(server.recv(16))


def main() -> None:
    import_sweep()
    if builds.FOLDER in os.environ:
        builds.remember(Path(os.environ[builds.FOLDER]))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        serve(server)


def serve(server: socket.socket) -> None:
    """Start a fork for each client, and send each the exit code of its own."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    clients: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([server, woken, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        if woken in ready:
            woken.recv(4096)
            for process, code in ended():
                with clients.pop(process) as client, suppress(BrokenPipeError):
                    client.sendall(str(code).encode())
        if server in ready:
            client, _ = server.accept()
            process = start(client)
            clients[process] = client


def ended() -> Iterator[tuple[int, int]]:
    """Yield the forks that have ended, and their exit codes."""
    with suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            yield one[0], os.waitstatus_to_exitcode(one[1])


def start(client: socket.socket) -> int:
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile("rb") as request:
        arguments, folder, environment = json.load(request)
    process = os.fork()
    if process == 0:
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        become_sweep(arguments, Path(folder), streams)
    for stream in streams:
        os.close(stream)
    return process


@cache
def import_sweep() -> None:
    """Import everything that a command may need, before any fork."""
    for module in pkgutil.walk_packages(sweepledger.__path__, "sweepledger."):
        if not module.name.endswith(
            ("__main__", "pod_supervisor", "cma_es", "nsga2", "optuna_proposer", "tpe")
        ):
            importlib.import_module(module.name)
    for name in IMPORTED_LATE:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    environment = readme._template().environment  # noqa: SLF001 - compiled once per process, as are its parts
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)
    command = all_commands()
    # Typer makes all commands from their signatures whenever it runs.
    typer.main.get_command = lambda typer_instance: command  # noqa: ARG005
    read_options(command)
    rehearse()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory of everything that is imported


def read_options(command: Any) -> None:
    """Let Typer look at the types of all options, which it does at the first value of each."""
    for parameter in command.params:
        parameter.get_runtime_param()
    for one in getattr(command, "commands", {}).values():
        read_options(one)


def rehearse() -> None:
    """Run a command once, so that no fork is the first: schemas, patterns, tables and compiled paths stay.

    That is half of what a short command takes in a fork, and it reads nothing that tests change.
    """
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        subprocess.run(["git", "init", "-q"], check=True)
        Path("sweepledger.yaml").write_text("version: 1\n")
        for name in ("code", "sweeps"):
            Path(name).mkdir()
        Path("code/train.py").touch()
        Path("sweeps/first.yaml").write_text(SPEC)
        code = app(["validate"], standalone_mode=False)
    assert not code


def become_sweep(arguments: Sequence[str], folder: Path, streams: Sequence[int]) -> NoReturn:
    """Run `sweep` in this process, which is a fork, with these descriptors as stdin, stdout and stderr; and end it."""
    code = 70
    try:
        atexit._clear()  # noqa: SLF001 - what the server has registered is not the command's
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(folder)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
        sys.argv = ["sweep", *arguments]
        code = _exit_code()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - a fork must never return into the server
        traceback.print_exc()
    finally:
        os._exit(code)


def _exit_code() -> int:
    try:
        sweep()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        code = 0
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - as at the end of any process
    atexit._run_exitfuncs()  # noqa: SLF001
    return code


if __name__ == "__main__":
    main()
