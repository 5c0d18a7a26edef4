"""Results that a person merges, squashes or rebases: every command that reads them says the same."""

from pathlib import Path
from typing import Any

import pytest

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.reports import results, status
from sweepledger.verbs.log import log
from sweepledger.verbs.show import trial_details
from sweepledger.verbs.verify import verify_results
from tests.operations.test_collect import leave, stored
from tests.repository import Sandbox, answer

NOT_THE_SAME = frozenset({"commit", "commits"})
"""Members that name commits: those differ, and nothing else may."""


def fast_forward(sandbox: Sandbox) -> None:
    """Take the commit as the collector made it; main had to stand still for that."""
    sandbox.git("merge", "-q", "--ff-only", "FETCH_HEAD")


def merge(sandbox: Sandbox) -> None:
    """Merge after main has moved, by a commit of two parents."""
    move(sandbox)
    sandbox.git("merge", "-q", "--no-ff", "-m", "Merge branch 'results/peak' (#7)", "FETCH_HEAD")


def squash(sandbox: Sandbox) -> None:
    """Lose the commit, its message and its trailers."""
    move(sandbox)
    sandbox.git("merge", "-q", "--squash", "FETCH_HEAD")
    sandbox.commit("Results of peak (#7)")


def rebase(sandbox: Sandbox) -> None:
    """Have another commit of the same change."""
    move(sandbox)
    sandbox.git("checkout", "-q", "--detach", "FETCH_HEAD")
    sandbox.git("rebase", "-q", "main")
    made = sandbox.head()
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "--ff-only", made)


def move(sandbox: Sandbox) -> None:
    sandbox.commit("Move main", {"NOTES.md": "Main has moved.\n"})


@pytest.fixture
def proposed(sandbox: Sandbox, results: Path) -> Sandbox:
    """Results of three trials, one of which failed, on a branch for a person to merge."""
    name = sandbox.merged()
    batch = stored(sandbox)
    for index in range(2):
        leave(results, batch, index)
    leave(results, batch, 2, status="failed", reason="exit-1", metrics={})
    commit_results(sandbox.target(is_reviewed=True), on_volume(results), {name})
    return sandbox


def command_results(sandbox: Sandbox, state: Path) -> dict[str, Any]:
    workspace = sandbox.workspace
    details = trial_details(workspace, stored(sandbox).rows[0].trial)
    (verified,) = verify_results(workspace).sweeps
    (counted,) = status.sweep_statuses(workspace, state=state)
    answers = {
        "log": [
            (entry.kind, entry.text, entry.best)
            for entry in answer(log, workspace, "peak")["entries"]
            if entry.kind != "spec"
        ],
        "show": {key: item for key, item in details.as_data().items() if key not in NOT_THE_SAME},
        "recorded": [did for did, _ in details.commits],
        "results": results.rank_trials(workspace, "peak").rows,
        "status": (counted.counts, counted.best),
        "generate": [generated.batch for generated in sandbox.generate()],
        "verify": (str(verified.state), verified.differences, verified.trials),
    }
    sandbox.push()
    again = sandbox.retry()
    return answers | {"retry": (again.batch, [row.trial for row in sandbox.batch(again.batch).rows])}


def test_merged_squashed_or_rebased_every_command_says_the_same(proposed: Sandbox, tmp_path: Path) -> None:
    said = {}
    for way in (fast_forward, merge, squash, rebase):
        folder = tmp_path / way.__name__
        sandbox = Sandbox(folder / "remote.git", folder / "work tree")
        sandbox.copy_from(proposed)
        branch = sandbox.git("ls-remote", "origin", "refs/heads/results/*").split()[1]
        sandbox.git("fetch", "-q", "origin", branch)
        way(sandbox)
        said[way.__name__] = command_results(sandbox, tmp_path / "no state")

    wanted = said["fast_forward"]
    assert wanted["log"][-1][1].startswith("2/3 trials ok, best score 0.5")
    assert wanted["recorded"] == ["requested", "generated", "recorded"]
    assert wanted["generate"] == [None]
    assert wanted["verify"] == ("unsigned", (), 3)
    for name, answers in said.items():
        assert answers == wanted, name
