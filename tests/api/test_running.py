"""Sweeps that run from Python, on the branch that is checked out, without a remote."""

import pytest

import sweepledger
from tests.repository import Sandbox


def test_a_sweep_runs_and_returns_with_its_results(sandbox: Sandbox) -> None:
    sandbox.use_as_laptop()
    sandbox.spec("peak", "1, 2")
    train = sandbox.root / "code/train.py"
    train.write_text(train.read_text() + "# changed\n")
    repository = sweepledger.open(sandbox.root)

    left_out = pytest.warns(UserWarning, match="not committed: code/train.py")
    with left_out, pytest.raises(sweepledger.GeneratorError, match="uncommitted changes"):
        repository.run("peak")
    (sweep,) = repository.run("peak", parallel=2, commit_code=True)

    assert [(trial.params["x"], trial.metrics["score"]) for trial in sweep.ranked] == [(2, 0.5), (1, -0.5)]
    assert sweep.commit == repository.commit
    assert repository.sweep("peak").best == sweep.best


def test_a_fixed_commit_runs_nothing(sandbox: Sandbox) -> None:
    with pytest.raises(sweepledger.GeneratorError, match="sweeps run at HEAD only"):
        sweepledger.open(sandbox.root, "HEAD").run("peak")
