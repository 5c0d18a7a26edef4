"""What the engine does where the system has no /proc, no prctl and no CPU affinity, as macOS."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sweepledger import process_tree
from sweepledger.engine.local import machine
from sweepledger.formats import summary_csv
from sweepledger.process_tree import PR_SET_CHILD_SUBREAPER, prctl
from sweepledger.structs.record import Status
from tests.repository import Sandbox

ROOT = Path(__file__).parents[2]


def test_without_affinity_all_cpus_count_and_none_is_pinned() -> None:
    system = SimpleNamespace(cpu_count=lambda: 8)

    assert machine.cpus(system) == tuple(range(8))
    assert not machine.can_pin_cpus(system)


def test_without_proc_memory_is_that_of_the_pages(tmp_path: Path) -> None:
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    assert machine.memory(tmp_path / "meminfo") == pages


def test_without_prctl_nothing_is_adopted_and_nothing_fails() -> None:
    assert not prctl(PR_SET_CHILD_SUBREAPER, 1, library=SimpleNamespace())


def test_without_proc_no_descendants_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "PROC", str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"MARK": "x"})
    try:
        assert not process_tree.has_proc()
        assert [*process_tree.descendants(os.getpid())] == []
        assert process_tree.with_variable("MARK", ["x"]) == ()
        assert process_tree.proportional_bytes(child.pid) == 0
    finally:
        child.communicate(b"\n")


def test_a_sweep_runs_and_is_recorded_without_them(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged(xs="1, 2")

    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("without_linux.py")),
            str(sandbox.remote),
            str(tmp_path / "s"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    sandbox.pull()
    rows = summary_csv.read((sandbox.root / "results/peak/summary.csv").read_text()).rows
    assert [(row.status, row.metric("score")) for row in rows] == [(Status.OK, -0.5), (Status.OK, 0.5)]
