"""How much memory the containers of a collector's run have held, as the kernel tells while it runs."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import box
from tests.e2e.collecting import Run

PAUSE = 0.02
MIB = 2**20
HIGHEST = ("memory.max_usage_in_bytes", "memory.peak")
"""Of either hierarchy: all that was charged, with file cache, which the kernel takes back under pressure."""
OWN = ("total_rss", "anon")
"""In `memory.stat`: what nothing can take back."""

MARKS = {"clone": "git clone", "collect": "python sweep"}
"""What a container shows itself by."""


@dataclass
class Peak:
    """Of one container, in bytes."""

    charged: int = 0
    own: int = 0
    processes: dict[str, int] = field(default_factory=dict)
    """The highest resident set of each program."""

    def __str__(self) -> str:
        shown = {name: f"{size / MIB:.0f}" for name, size in self.processes.items() if size > MIB}
        return f"{self.charged / MIB:.0f} MiB charged, {self.own / MIB:.0f} of its own; resident {shown}"


def peaks(run: Run) -> dict[str, Peak]:
    """Watch a run until it is over; give the peaks of its containers, by name."""
    results: dict[str, Peak] = {}
    has_begun = False
    while not has_begun or not run.is_over:
        deadline = time.monotonic() + 1  # asking the API each time would slow down what is measured
        while time.monotonic() < deadline:
            for pid, argv in run.processes().items():
                has_begun = True
                with suppress(OSError):
                    _look(results, pid, argv)
            time.sleep(PAUSE)
    return {name: peak for peak in results.values() for name in MARKS if MARKS[name] in peak.processes}


def _look(results: dict[str, Peak], pid: int, argv: tuple[str, ...]) -> None:
    folder = _folder(pid)
    if not folder.parent.name.startswith("pod"):
        return  # it is ending, and was put elsewhere
    peak = results.setdefault(folder.name[:12], Peak())
    peak.charged = max([peak.charged, *_numbers(folder, *HIGHEST)])
    stat = (folder / "memory.stat").read_text().splitlines()
    peak.own = max([peak.own, *(int(line.split()[1]) for line in stat if line.split()[0] in OWN)])
    name = " ".join(word.rpartition("/")[2] for word in argv[:2])
    status = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    resident = [int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")]
    peak.processes[name] = max([peak.processes.get(name, 0), *resident])


def _folder(pid: int) -> Path:
    for line in (Path("/proc") / str(pid) / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return box.CGROUPS / "memory" / path.lstrip("/")
        if controllers == "" and (box.CGROUPS / "cgroup.controllers").is_file():
            return box.CGROUPS / path.lstrip("/")
    raise FileNotFoundError(f"{pid} is in no memory cgroup")


def _numbers(folder: Path, *names: str) -> Iterator[int]:
    for name in names:
        if (folder / name).is_file():
            yield int((folder / name).read_text())
