"""Results that a person merges, squashes or rebases: every command that reads them says the same."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.generation import next_batch
from sweepledger.operations.reports import results, status
from sweepledger.repo import batches
from sweepledger.verbs.log import log
from sweepledger.verbs.retry import retry_trials
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


def copy(sandbox: Sandbox, folder: Path) -> Sandbox:
    made = Sandbox(folder / "remote.git", folder / "work tree")
    made.copy_from(sandbox)
    return made


def command_results(sandbox: Sandbox, state: Path) -> dict[str, Any]:
    workspace = sandbox.workspace
    trial = stored(sandbox).rows[0].trial
    (verified,) = verify_results(workspace).sweeps
    listed = results.rank_trials(workspace, "peak")
    answers = {
        "log": [
            (entry.sweep, entry.kind, entry.text, entry.best)
            for entry in answer(log, workspace, "peak")["entries"]
            if entry.kind != "spec"
        ],
        "show": trial_details(workspace, trial).as_data(),
        "recorded": [did for did, _ in trial_details(workspace, trial).commits],
        "results": [asdict(row) for row in listed.rows],
        "status": [
            (item.sweep, dict(item.counts), item.best)
            for item in status.sweep_statuses(workspace, state=state)
        ],
        "generate": [generated_batch.batch for generated_batch in next_batch.generate_batches(workspace)],
        "verify": (str(verified.state), verified.differences, verified.trials),
    }
    sandbox.push()
    again = retry_trials(workspace, "peak")
    table = batches.of_sweep(sandbox.batches(), "peak")[-1]
    return answers | {"retry": (again.batch, [row.trial for row in table.rows])}


def without_commits(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {key: without_commits(item) for key, item in answer.items() if key not in NOT_THE_SAME}
    return answer


def test_merged_squashed_or_rebased_every_command_says_the_same(proposed: Sandbox, tmp_path: Path) -> None:
    ways: tuple[Callable[[Sandbox], None], ...] = (fast_forward, merge, squash, rebase)
    document = {}
    for way in ways:
        sandbox = copy(proposed, tmp_path / way.__name__)
        sandbox.git(
            "fetch", "-q", "origin", sandbox.git("ls-remote", "origin", "refs/heads/results/*").split()[1]
        )
        way(sandbox)
        document[way.__name__] = without_commits(command_results(sandbox, tmp_path / "no state"))

    wanted = document["fast_forward"]
    assert wanted["log"][-1][2].startswith("2/3 trials ok, best score 0.5")
    assert wanted["recorded"] == ["requested", "generated", "recorded"]
    assert wanted["generate"] == [None]
    assert wanted["verify"] == ("unsigned", (), 3)
    for name, answers in document.items():
        assert answers == wanted, name
