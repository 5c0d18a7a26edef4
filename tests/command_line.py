"""The command `sweep`, run in a fork of the test process: real files, descriptors and exit codes, without the start.

A Python process spends most of a short command on imports. The fork has them, and everything that the command does to
its process (folder, environment, signals, output) ends with it.
"""

import atexit
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

import sweepledger
from sweepledger.results import readme

ROOT = Path(__file__).parent.parent
OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "PATH", "HOME", "MALLOC_")
"""Variables that take effect when a process starts: a command that is given one of them runs as a process."""

IMPORTED_LATE = (
    *("git", "jsonschema", "pydantic", "rich.console", "rich.table", "rich.text", "ruamel.yaml"),
    "typer._adapters",
)
"""Libraries that sweepledger, or Typer, imports where it uses them."""


def run_sweep(
    *arguments: str, cwd: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `sweep` and return its exit code and output."""
    if any(name.startswith(OF_THE_INTERPRETER) for name in environment):
        assert not stdin
        return run_sweep_process(*arguments, cwd=cwd, **environment)
    import_sweep()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _input(stdin) as given:
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            become_sweep(arguments, cwd, (given.fileno(), out.fileno(), err.fileno()))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["sweep", *arguments], code, _text(out), _text(err))


def run_sweep_process(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sweep` as a process of its own, which loads everything anew."""
    return subprocess.run(
        [sys.executable, "-m", "sweepledger.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _input(content: bytes) -> BinaryIO:
    """Return a file to read the content from; as without input, the null device, if there is none."""
    if not content:
        return open(os.devnull, "rb")  # noqa: PTH123 - the caller closes it
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(content)
    file.seek(0)
    return cast("BinaryIO", file)


def _text(file: BinaryIO) -> str:
    return file.read().decode().replace("\r\n", "\n")


@cache
def import_sweep() -> None:
    """Import everything that a command may need, before any fork."""
    for module in pkgutil.walk_packages(sweepledger.__path__, "sweepledger."):
        if not module.name.endswith(("__main__", "pod_supervisor", "cma_es", "nsga2", "optuna_samplers")):
            importlib.import_module(module.name)
    for name in IMPORTED_LATE:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    readme._template()  # noqa: SLF001 - compiled once per process


def become_sweep(arguments: Sequence[str], cwd: Path, streams: tuple[int, int, int]) -> NoReturn:
    """Run `sweep` in this process, which is a fork, with these descriptors as stdin, stdout and stderr; and end it."""
    code = 70
    try:
        atexit._clear()  # noqa: SLF001 - what the test process has registered is not the command's
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        os.chdir(cwd)
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
        sys.argv = ["sweep", *arguments]
        code = _exit_code()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - a fork must never return into the tests
        traceback.print_exc()
    finally:
        os._exit(code)


def _exit_code() -> int:
    from sweepledger.cli.app import main  # noqa: PLC0415 - as the command does

    try:
        main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        code = 0
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - as at the end of any process
    atexit._run_exitfuncs()  # noqa: SLF001
    return code
