"""The trial's contract: environment variables in, exit codes and problems out.

Every other module may import this one; it imports none of them, and not torch.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

BAD_HYPERPARAMETERS = 42
"""These values cannot be trained, but other values of the same sweep can. Not retried."""
BAD_SWEEP = 43
"""Every trial would fail in this way: an unknown hyperparameter, data with a wrong checksum."""
STORAGE_FAILED = 74
"""A file could not be read or written; a retry may help. EX_IOERR of sysexits.h."""
OUT_OF_MEMORY = 71
"""The machine ran out of memory; a retry on another machine may help. EX_OSERR of sysexits.h."""
STOPPED = 143
"""Stopped by SIGTERM after saving a checkpoint, from which the next attempt resumes."""

LARGEST_SEED = 2**63 - 1
"""The largest seed that torch accepts on every device."""
MOST_THREADS = 1024
"""More threads than this are a typing error, but OpenMP would start them."""

FRACTION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})?", re.ASCII)
CGROUP = Path("/sys/fs/cgroup")
"""Where a container sees its own limits, in cgroup v1 and v2."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an input breaks, its location, and how to fix it."""

    location: str
    """What a user would search for: `--learning_rate`, `SWEEP_SEED`, a file."""
    message: str
    exit_code: int
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class TrialError(Exception):
    """The trial cannot run because of its inputs or its machine; carries every problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def exit_code(self) -> int:
        """The highest exit code of the problems: a bad sweep outweighs bad values."""
        return max(problem.exit_code for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Environment:
    """The inputs of a trial besides its hyperparameters."""

    seed: int = 0
    threads: int = 1
    """Never the host's core count: trials run side by side, and OpenMP threads that share a core crawl."""
    data: Path | None = None
    """Folder of the dataset; None means the digits of an installed package."""
    result: Path | None = None
    """File for the result; None means standard output only."""
    checkpoints: Path | None = None
    """Folder that all attempts share; None disables checkpoints."""
    gpu_fraction: float = 1.0
    """Which part of the GPU's memory this process may use: trials share it."""
    parent: Path | None = None
    """Folder with the checkpoint of another trial, from which this trial continues."""


def read_environment(environ: Mapping[str, str], cgroup: Path = CGROUP) -> Environment:
    """Read SWEEP_SEED, OMP_NUM_THREADS and the paths; empty counts as unset. Raises TrialError."""
    problems: list[Problem] = []

    def whole_number(name: str, *, default: int, low: int, high: int) -> int:
        text = environ.get(name) or str(default)
        if text.isascii() and text.isdigit() and low <= int(text[:20]) <= high:
            return int(text)
        message = f"must be a whole number from {low} to {high}, got {text[:40]!r}"
        problems.append(Problem(name, message, BAD_SWEEP))
        return default

    def path(name: str) -> Path | None:
        return Path(environ[name]) if environ.get(name) else None

    def fraction(name: str) -> float:
        text = environ.get(name) or "1"
        if FRACTION.fullmatch(text) and 0 < float(text) <= 1:
            return float(text)
        message = f"must be a number above 0 and at most 1, got {text[:40]!r}"
        problems.append(Problem(name, message, BAD_SWEEP))
        return 1.0

    environment = Environment(
        seed=whole_number("SWEEP_SEED", default=0, low=0, high=LARGEST_SEED),
        threads=whole_number("OMP_NUM_THREADS", default=container_cpus(cgroup), low=1, high=MOST_THREADS),
        data=path("SWEEP_DATA"),
        result=path("SWEEP_RESULT"),
        checkpoints=path("SWEEP_CHECKPOINTS"),
        gpu_fraction=fraction("SWEEP_GPU_FRACTION"),
        parent=path("SWEEP_PARENT"),
    )
    if problems:
        raise TrialError(problems)
    return environment


def container_cpus(cgroup: Path) -> int:
    """Return the container's CPU limit, rounded up; 1 without a limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join((cgroup / name).read_text(encoding="ascii") for name in names).split()
            quota, period = map(int, words)
        except (OSError, ValueError):  # the file is missing, or says `max`
            continue
        if quota > 0 < period:
            return min(math.ceil(quota / period), MOST_THREADS)
    return 1
