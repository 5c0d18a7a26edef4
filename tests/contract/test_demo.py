"""The README's first command, whole: real digits, real training, real git."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import captured

ROOT = Path(__file__).parents[2]


def demo(folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo as somebody whom git does not know, with nothing in the environment."""
    return captured(
        [sys.executable, str(ROOT / "examples/demo.py"), "--folder", str(folder)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"},
    )


@pytest.mark.full_suite("whole tutorials")
def test_the_demo_ends_with_sixteen_trials_in_git_and_never_trains_them_again(tmp_path: Path) -> None:
    folder, home = tmp_path / "a demo with spaces", tmp_path / "home"
    home.mkdir()

    first = demo(folder, home)

    assert first.returncode == 0, first.stderr
    assert "[16/16]" in first.stdout
    work = folder / "work"
    with (work / "results/mnist-grid/summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok"] * 16
    assert max(float(row["metrics.test_accuracy"]) for row in rows) >= 0.93
    log = captured(
        ["git", "-C", str(folder / "remote.git"), "show", "--format=%s", "--name-status", "-M100%", "main"],
        check=True,
    ).stdout
    assert log.startswith("results(mnist-grid): 16/16 trials, best test_accuracy 0.9")
    assert "A\tresults/mnist-grid/summary.csv" in log
    assert "R100\toverlays/active/mnist-grid-b1-" in log
    records = {path: path.stat() for path in (work / ".sweepledger/results").rglob("*.json")}
    assert len(records) == 16

    second = demo(folder, home)

    assert second.returncode == 0, second.stderr
    assert "nothing to run" in second.stdout
    assert "[1/16]" not in second.stdout
    assert {
        path: path.stat() for path in (work / ".sweepledger/results").rglob("*.json")
    }.keys() == records.keys()
    for path, before in records.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
