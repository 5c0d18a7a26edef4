"""What ran in a box ends with it, and leaves nothing on the machine, however the box ends.

Other boxes may run at the same time: what is looked at bears the name of this one, or has changed since.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import box, images, preparing
from tests.cluster.children import until

ROOT = Path(__file__).parents[2]
SECONDS = 300.0
NAMESPACES = ("mnt", "net", "pid")
SIGNALS = {"ctrl-c": signal.SIGINT, "terminated": signal.SIGTERM, "killed": signal.SIGKILL}


@dataclass(frozen=True)
class Tenancy:
    """A box with a whole node in it, and how the machine was before."""

    process: subprocess.Popen[bytes]
    name: str
    namespaces: frozenset[str]
    before: frozenset[str]

    def end(self, ending: str) -> int:
        """Let the box end so, and wait for the process that holds it."""
        if ending == "ctrl-c":  # reaches all of a terminal's foreground processes
            os.killpg(self.process.pid, SIGNALS[ending])
        elif ending in SIGNALS:
            self.process.send_signal(SIGNALS[ending])
        return self.process.wait(SECONDS)

    def leftovers(self) -> list[str]:
        """Name whatever of the box is on the machine still, or differs from what was before."""
        return sorted({*self.processes(), *_named(self.name), *(_told() - self.before)})

    def processes(self) -> list[str]:
        """Name the processes of the box and of its pods."""
        return [
            f"process {folder.name}" for folder in Path("/proc").glob("[0-9]*") if self._is_of_box(folder)
        ]

    def _is_of_box(self, process: Path) -> bool:
        try:
            says = (process / "cmdline").read_text(errors="replace") + (process / "cgroup").read_text()
            return self.name in says or bool(_namespaces(process) & self.namespaces)
        except OSError:  # it has ended meanwhile
            return False


@contextmanager
def _tenancy(folder: Path, ending: str) -> Iterator[Tenancy]:
    """Start a box, and wait until all that it is to hold stands; whatever a test does, it is ended."""
    before = _told()
    settled = folder / "settled"
    lodger = [sys.executable, "-m", "tests.e2e.lodger", str(settled), ending]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.box", *lodger],
            cwd=ROOT,
            start_new_session=True,
            stdout=log,
            stderr=log,
        )
    try:
        until("the box stands", lambda: _first(process.pid) is not None, seconds=SECONDS, pause=0.1)
        (lock,) = box.HOME.glob(f"{box.PREFIX}{process.pid}-*.lock")
        namespaces = _namespaces(_first(process.pid))

        def is_settled() -> bool:
            assert process.poll() is None or settled.is_file(), (folder / "log").read_text()
            return settled.is_file()

        until("a pod runs in the box", is_settled, seconds=SECONDS)
        yield Tenancy(process, lock.stem, namespaces, before)
    finally:
        process.kill()
        process.wait()


def _first(outer: int) -> Path | None:
    """Find the first process in a box; None before there is one."""
    made = box.first_process(outer)
    first = made and box.first_process(made)
    return Path(f"/proc/{first}") if first else None


def _namespaces(process: Path | None) -> frozenset[str]:
    assert process is not None
    return frozenset(str((process / "ns" / kind).readlink()) for kind in NAMESPACES)


def _named(name: str) -> Iterator[str]:
    """Name files, mounts, cgroups and loop devices that bear a box's name."""
    yield from (f"file {path}" for path in box.HOME.glob(f"{name}*"))
    yield from (f"cgroup {path}" for path in box.below(box.CGROUPS, f"**/{name}*"))
    mounted = Path("/proc/self/mountinfo").read_text().splitlines()
    yield from (f"mount {line}" for line in mounted if name in line)
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # it is being let go
            if name in path.read_text():
                yield f"loop device {path.parts[3]}"


def _told() -> frozenset[str]:
    """Name the machine's network interfaces, and what its kernel was told."""
    interfaces = (f"interface {path.name}" for path in Path("/sys/class/net").iterdir())
    tuned = (f"{name} = {(Path('/proc/sys') / name).read_text().strip()}" for name in box.WANTED_BY_KUBELETS)
    return frozenset((*interfaces, *tuned))


@pytest.mark.parametrize("ending", ["pass", "failure", *SIGNALS])
def test_a_box_leaves_nothing_on_the_machine_however_it_ends(tmp_path: Path, ending: str) -> None:
    if reason := preparing.lacking() or (images.built() is None and "no images"):
        pytest.skip(f"skipped: no cluster tools ({reason})")
    with _tenancy(tmp_path, ending) as tenancy:
        if ending in SIGNALS:  # the others end while somebody looks
            assert {leftover.split()[0] for leftover in tenancy.leftovers()} == {
                "process",
                "file",
                "cgroup",
                "loop",
            }

        status = tenancy.end(ending)

        assert (status == 0) == (ending == "pass")
        if ending == "killed":
            # Its processes die at once; what only a program can remove is removed by the next box.
            until("the processes are gone", lambda: not tenancy.processes(), seconds=SECONDS)
            box.sweep_out()
        assert tenancy.leftovers() == []
