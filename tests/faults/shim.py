"""Makes a command and all it starts end, or fail, at the N-th call that changes a file system.

`shim.c` is compiled by whatever C compiler the machine has, and preloaded. Commands run in the forks of one
process that has imported everything already: a kill at each of hundreds of points is a matter of seconds.
"""

import ctypes
import errno
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any

from tests.command_line import captured

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORKER = HERE / "worker.py"


class NoShimError(Exception):
    """This machine cannot put anything in front of system calls; the text says why."""


class Kind(IntFlag):
    """Calls that change a file system, as the shim tells them apart."""

    OPEN = 1
    WRITE = 2
    SYNC = 4
    RENAME = 8
    UNLINK = 16
    MKDIR = 32
    CHMOD = 64
    TRUNCATE = 128


ALL = Kind(255)


class Mode(IntEnum):
    """What happens at the chosen call."""

    COUNT = 0
    KILL = 1
    FAIL_ONCE = 2
    FAIL_ON = 3
    """It fails, and so does every later one: a disk that is full stays full."""


@dataclass(frozen=True)
class Plan:
    """What is to happen to one run of a command."""

    mode: Mode = Mode.COUNT
    at: int = 0
    error: int = 0
    kinds: Kind = ALL
    after: float | None = None
    """Seconds until it is killed, wherever it is."""


MAKING = Kind.OPEN | Kind.WRITE | Kind.SYNC | Kind.RENAME | Kind.MKDIR
ERRORS = {
    "ENOSPC": (errno.ENOSPC, Mode.FAIL_ON, MAKING),
    "EDQUOT": (errno.EDQUOT, Mode.FAIL_ON, MAKING),
    "EROFS": (errno.EROFS, Mode.FAIL_ON, ALL ^ Kind.WRITE ^ Kind.SYNC),
    "EIO": (errno.EIO, Mode.FAIL_ONCE, ALL),
    "EMFILE": (errno.EMFILE, Mode.FAIL_ONCE, Kind.OPEN),
    "EINTR": (errno.EINTR, Mode.FAIL_ONCE, Kind.OPEN | Kind.WRITE),
}
"""Each with the calls that a kernel answers so, and whether the next one fares better."""


@dataclass(frozen=True)
class Ended:
    """How a command ended, as whoever started it sees it."""

    code: int
    """Minus the signal that killed it."""
    out: str
    err: str
    calls: int
    """How many calls changed something, or would have."""
    struck: int


class Page(ctypes.Structure):
    """The page that all processes of a command share, as shim.c has it."""

    _fields_ = tuple(
        (name, ctypes.c_int)
        for name in ("armed", "count", "at", "mode", "error", "kinds", "struck", "group", "trace")
    )


def build(folder: Path) -> Path:
    """Compile the shim. Raises NoShimError."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux"):
        raise NoShimError("system calls can be watched on Linux only")
    if compiler is None:
        raise NoShimError("no C compiler: install gcc")
    made = folder / "shim.so"
    argv = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(HERE / "shim.c"), "-ldl"]
    done = captured(argv)
    if done.returncode:
        raise NoShimError(f"{compiler} cannot compile shim.c here: {done.stderr.strip()[-400:]}")
    if sysconfig.get_config_var("HAVE_FORK") == 0:
        raise NoShimError("this Python cannot fork")
    return made


class Shim:
    """A process that runs commands in its forks, and what they share with it."""

    def __init__(self, folder: Path) -> None:
        library = build(folder)
        self._trace = folder / "trace"
        self._trace.touch()
        shared = folder / "page"
        shared.write_bytes(bytes(mmap.PAGESIZE))
        with shared.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._page = Page.from_buffer(self._memory)
        self._worker = subprocess.Popen(
            [sys.executable, "-B", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
                "LD_PRELOAD": str(library),
                "FAULTS_PAGE": str(shared),
                "FAULTS_TRACE": str(self._trace),
                "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
            },
        )

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        plan: Plan | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run `sweep` with these arguments, or with an absolute path that program, under a plan."""
        chosen = plan or Plan()
        for name, value in (
            *(("count", 0), ("struck", 0), ("at", chosen.at), ("mode", chosen.mode.value)),
            *(("error", chosen.error), ("kinds", chosen.kinds.value)),
        ):
            setattr(self._page, name, value)
        requested = {
            "argv": list(argv),
            "cwd": str(cwd),
            "env": dict(environment or {}),
            "after": chosen.after,
        }
        assert self._worker.stdin
        assert self._worker.stdout
        self._worker.stdin.write(f"{json.dumps(requested)}\n")
        self._worker.stdin.flush()
        document: dict[str, Any] = json.loads(self._worker.stdout.readline())
        return Ended(document["code"], document["out"], document["err"], self._page.count, self._page.struck)

    def traced(
        self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None
    ) -> tuple[Ended, list[tuple[str, ...]]]:
        """Run it to its end; give every call that changed something, in order: process, name, paths."""
        self._trace.write_text("")
        self._page.trace = 1
        ended = self.run(argv, cwd=cwd, environment=environment)
        self._page.trace = 0
        lines = self._trace.read_text(errors="replace").splitlines()
        return ended, [tuple(line.split("\t")) for line in lines]

    def close(self) -> None:
        self._worker.send_signal(signal.SIGKILL)
        self._worker.communicate()
