"""The contract with whoever starts a trial: environment variables in, exit codes and problems out.

Ground of the package: imports nothing of it, and not torch.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

BAD_HYPERPARAMETERS = 42
"""These values cannot be trained; other values of the same sweep can. Never retried."""
BAD_SWEEP = 43
"""Every trial would fail in this way: a knob that does not exist, data with a wrong sum."""
STORAGE_FAILED = 74
"""The disk refused. The number is EX_IOERR of sysexits.h; a retry may help."""
OUT_OF_MEMORY = 71
"""The machine refused. The number is EX_OSERR of sysexits.h; a retry elsewhere may help."""
STOPPED = 143
"""Ended when asked to, all saved: what a shell gives for SIGTERM. The next attempt goes on."""

LARGEST_SEED = 2**63 - 1
"""What torch takes as a seed on every device."""
MOST_THREADS = 1024
"""More is a typing error; OpenMP would start them all the same."""

CGROUP = Path("/sys/fs/cgroup")
"""Where a container sees its own limits, of the second and of the first kind."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an input breaks, where it breaks it, and the way out."""

    place: str
    """What a person would look for: `--learning_rate`, `SWEEP_SEED`, a file."""
    message: str
    exit_code: int
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class TrialError(Exception):
    """The trial cannot be done, for reasons that are no bug of this package; carries all of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def exit_code(self) -> int:
        """The worst of the problems: a bad sweep outweighs bad values."""
        return max(problem.exit_code for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a trial is given besides its hyperparameters."""

    seed: int = 0
    threads: int = 1
    """Never the host's cores: trials run side by side, and OpenMP threads that share a core crawl."""
    data: Path | None = None
    """Folder of the dataset; None means the digits that come with an installed package."""
    result: Path | None = None
    """Where the result goes, beside standard output; None means nowhere else."""
    checkpoints: Path | None = None
    """Folder that all attempts share; None means that none is kept."""
    parent: Path | None = None
    """Folder of the checkpoint of another trial, from which this one goes on."""


def surroundings(environ: Mapping[str, str], cgroup: Path = CGROUP) -> Surroundings:
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

    found = Surroundings(
        seed=whole_number("SWEEP_SEED", default=0, low=0, high=LARGEST_SEED),
        threads=whole_number("OMP_NUM_THREADS", default=threads_of(cgroup), low=1, high=MOST_THREADS),
        data=path("SWEEP_DATA"),
        result=path("SWEEP_RESULT"),
        checkpoints=path("SWEEP_CHECKPOINTS"),
        parent=path("SWEEP_PARENT"),
    )
    if problems:
        raise TrialError(problems)
    return found


def threads_of(cgroup: Path) -> int:
    """Give the CPUs that a container is limited to, rounded up; 1 where it has no limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join((cgroup / name).read_text(encoding="ascii") for name in names).split()
            quota, period = map(int, words)
        except (OSError, ValueError):  # no such file, or `max`
            continue
        if quota > 0 < period:
            return min(math.ceil(quota / period), MOST_THREADS)
    return 1
