"""Sweeps that run from Python, on the branch that is checked out, without a remote."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sweepledger
from tests.repository import Sandbox, append_to
from tests.searches import begun

GENERATOR = Path(__file__).parents[2] / "generator"


def test_a_sweep_runs_and_returns_with_its_results(sandbox: Sandbox) -> None:
    sandbox.use_as_laptop()
    sandbox.spec("peak", "1, 2")
    append_to(sandbox.root / "code/train.py", "# changed\n")
    repository = sweepledger.open(sandbox.root)

    left_out = pytest.warns(UserWarning, match="not committed: code/train.py")
    with left_out, pytest.raises(sweepledger.GeneratorError, match="uncommitted changes"):
        repository.run("peak")
    (sweep,) = repository.run("peak", parallel=2, commit_code=True)

    assert [(trial.params["x"], trial.metrics["score"]) for trial in sweep.ranked] == [(2, 0.5), (1, -0.5)]
    assert sweep.commit == repository.commit
    assert repository.sweep("peak").best == sweep.best


def test_a_blocked_search_raises_after_its_results_are_recorded(sandbox: Sandbox, tmp_path: Path) -> None:
    begun(sandbox, size=2, rounds=3)
    sandbox.use_as_laptop()
    (tmp_path / "optuna.py").write_text("raise ImportError\n")

    run = "import sweepledger; sweepledger.open().run('hill')"
    paths = f"{tmp_path}{os.pathsep}{GENERATOR}"
    blocked = subprocess.run(
        [sys.executable, "-c", run],
        cwd=sandbox.root,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    recorded = len(sweepledger.open(sandbox.root).sweep("hill").trials)
    (sweep,) = sweepledger.open(sandbox.root).run("hill")

    assert "GeneratorError: the search hill is blocked: " in blocked.stderr
    assert (recorded, len(sweep.trials)) == (2, 6)


def test_a_fixed_commit_runs_nothing(sandbox: Sandbox) -> None:
    with pytest.raises(sweepledger.GeneratorError, match="sweeps run at HEAD only"):
        sweepledger.open(sandbox.root, "HEAD").run("peak")
