"""What programs use: seconds of them and of all their children, and the most memory that one of them had."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
METER = """
import resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, wall, used.ru_minflt)
sys.stdout.write(done.stdout.decode(errors="replace")[-2000:])
"""
"""A small process between: Linux charges a program with the memory of the one that started it."""


@dataclass(frozen=True)
class Used:
    """What a program and all its children used."""

    seconds: float
    """Of CPU."""
    mebibytes: float
    """Of the largest process."""
    wall: float
    """Seconds of the clock."""
    faults: int
    """Pages that were not there, and needed no disk."""


def measured(
    argv: Sequence[str], folder: Path, *, variables: Mapping[str, str] | None = None, code: int = 0
) -> Used:
    """Run a program to its end, by default with our variables and the package, whose compiled files are kept.

    Raises RuntimeError, with what it printed last, if it ends with another code.
    """
    if variables is None:
        own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables = {**own, "PYTHONPATH": str(ROOT)}
    meter = [sys.executable, "-I", "-S", "-c", METER, *argv]
    done = subprocess.run(meter, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    figures, _, printed = done.stdout.partition("\n")
    ended, seconds, mebibytes, wall, faults = figures.split()
    if int(ended) != code:
        raise RuntimeError(f"{list(argv)} ended with {ended}: {printed}")
    return Used(float(seconds), float(mebibytes), float(wall), int(faults))


def used_by(work: Callable[[], object]) -> Used:
    """Do some work, and return what the processes that it started and waited for used, without their memory."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Used(seconds, 0, wall, after.ru_minflt - before.ru_minflt)
