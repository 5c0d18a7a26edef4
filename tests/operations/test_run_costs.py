"""What `sweep run` costs beside its trials: programs that it starts, counted, because seconds depend on the machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.laptop import repository

MOST_GIT = 53
"""Git processes of a first sweep in a repository, from validation to the results commit."""


def git_processes(folder: Path, trials: int) -> int:
    """Run a sweep of trivial trials in a repository of its own, and return how many git processes it started."""
    lab, trace = folder / f"lab-{trials}", folder / f"trace-{trials}"
    repository(lab, trials)
    trace.mkdir()
    subprocess.run(
        [sys.executable, "-m", "sweepledger.cli", "run", "score"],
        cwd=lab,
        env={**os.environ, "GIT_TRACE2_EVENT": str(trace)},
        capture_output=True,
        check=True,
    )
    return len(list(trace.iterdir()))


@pytest.mark.full_suite("two whole sweeps")
def test_more_trials_start_no_more_git_processes(tmp_path: Path) -> None:
    few, many = git_processes(tmp_path, 2), git_processes(tmp_path, 8)

    assert few == many
    assert 20 < many <= MOST_GIT
