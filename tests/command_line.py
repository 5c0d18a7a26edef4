"""The command `sweep`, as tests run it: in a fork of a server that has its imports, or as a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from tests import sweep_server

ROOT = Path(__file__).parent.parent
OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "MALLOC_")
"""Variables that take effect when a process starts: a command that is given one of them runs as a process."""


def run_sweep(
    *arguments: str, cwd: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `sweep` and return its exit code and output."""
    if any(name.startswith(OF_THE_INTERPRETER) for name in environment):
        assert not stdin
        return run_sweep_process(*arguments, cwd=cwd, **environment)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _input(stdin) as given:
        streams = (given.fileno(), out.fileno(), err.fileno())
        code = sweep_server.ask(arguments, cwd, {**os.environ, **environment}, streams)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["sweep", *arguments], code, _text(out), _text(err))


def run_sweep_process(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `sweep` as a process of its own, which loads everything anew."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "generator"), **environment}
    return captured([sys.executable, "-m", "sweepledger.cli", *arguments], cwd=cwd, env=variables)


def captured(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its exit code and output."""
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=check)


def run_program(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run another program and return its exit code and output."""
    variables = {**os.environ, **environment}
    return subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, check=False)


def git(folder: Path, *arguments: str) -> str:
    """Return what a command of git prints."""
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def install_sweep(folder: Path) -> Path:
    """Write a program `sweep` that asks the server, for tests in which another program starts it; return its path."""
    program = folder / "sweep"
    program.write_text(sweep_server.CLIENT.format(python=sys.executable, address=sweep_server.address()))
    program.chmod(0o755)
    return program


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
