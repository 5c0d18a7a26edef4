"""A foreign program on untrusted input: bounded in time, memory and output, and ended with all it started.

Memory is the resident set of the program and its descendants, looked at again and again: a limit on address
space kills every Go program below a gibibyte, whatever it uses.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOOK_SECONDS = 0.01
LOOK_SECONDS_WITHOUT_PROC = 0.2
"""There, each look is a process of its own."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a program may use."""

    seconds: float
    memory: int
    """Bytes."""
    output: int
    """Bytes on standard output; as many on standard error."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a program ended."""

    code: int
    stdout: bytes
    stderr: bytes


class ExceededError(Exception):
    """A program went beyond its bounds and was killed; the text says beyond which."""


def run(argv: Sequence[str], bounds: Bounds, *, env: Mapping[str, str]) -> Done:
    """Run a program to its end. Raises ExceededError, OSError where it cannot be started."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(env), start_new_session=True
        )
        try:
            _watch(process, bounds, (out.fileno(), err.fileno()))
        finally:
            # Also after a good end: what it left behind would hold the limits of nobody.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        # Between two looks it can have written more, and ended.
        _refuse_much(bounds, (out.fileno(), err.fileno()))
        out.seek(0)
        err.seek(0)
        return Done(process.returncode, out.read(), err.read())


def _watch(process: subprocess.Popen[bytes], bounds: Bounds, outputs: tuple[int, int]) -> None:
    deadline = time.monotonic() + bounds.seconds
    pause = LOOK_SECONDS if PROC.is_dir() else LOOK_SECONDS_WITHOUT_PROC
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=pause)
            return
        if time.monotonic() > deadline:
            raise ExceededError(f"was stopped after {bounds.seconds:g} s")
        _refuse_much(bounds, outputs)
        if resident_bytes(process.pid) > bounds.memory:
            raise ExceededError(f"was stopped as it used more than {bounds.memory >> 20} MiB of memory")


def _refuse_much(bounds: Bounds, outputs: tuple[int, int]) -> None:
    if max(os.fstat(descriptor).st_size for descriptor in outputs) > bounds.output:
        raise ExceededError(f"was stopped as it printed more than {bounds.output >> 20} MiB")


def resident_bytes(pid: int) -> int:
    """Add up the resident sets of a process and its descendants; 0 when it is gone."""
    if not PROC.is_dir():
        return _asked_of_ps(pid)
    total = 0
    waiting = [pid]
    while waiting:
        place = PROC / str(waiting.pop())
        with suppress(OSError, IndexError):  # it may end at any moment
            total += int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            for task in (place / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


def _asked_of_ps(pid: int) -> int:
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,rss="], capture_output=True, text=True, check=False)
    rows = (line.split() for line in listed.stdout.splitlines())
    return sum(int(rss) for group, rss in rows if group == str(pid)) * 1024
