"""What a results commit may touch, and that only what changed is looked at."""

from pathlib import Path

import pytest

from sweepledger.errors import UsageError
from sweepledger.repo.batches import StoredBatch
from sweepledger.verbs.verify import VerificationState, verify_since
from tests.operations.test_read import recorded
from tests.repository import Sandbox


@pytest.fixture
def batch(sandbox: Sandbox, tmp_path: Path) -> StoredBatch:
    return recorded(sandbox, tmp_path / "volume")


def since(sandbox: Sandbox, revision: str) -> tuple[set[str], set[str], set[str]]:
    """Give the sweeps that were looked at, what strays, and what else differs."""
    verification = verify_since(sandbox.workspace, revision)
    differ = {difference.path for sweep in verification.sweeps for difference in sweep.differences}
    return (
        {item.sweep for item in verification.sweeps},
        {difference.path for difference in verification.stray},
        differ,
    )


def test_a_results_commit_of_the_collector_keeps_to_its_places(sandbox: Sandbox, batch: StoredBatch) -> None:
    verification = verify_since(sandbox.workspace, "HEAD^")

    assert verification.is_good
    assert [(sweep.sweep, sweep.trials, sweep.state) for sweep in verification.sweeps] == [
        ("peak", 3, VerificationState.UNSIGNED)
    ]
    sandbox.commit("Say hello", {"README.md": "hello\n"})
    assert since(sandbox, "HEAD^") == (set(), set(), set()), "a commit without results is not looked at"
    with pytest.raises(UsageError, match="'nowhere' is not a commit"):
        verify_since(sandbox.workspace, "nowhere")


def test_a_commit_that_touches_more_is_refused(sandbox: Sandbox, batch: StoredBatch) -> None:
    others = {
        "base/trial/v1/job.yaml",
        "sweeps/peak.yaml",
        "sweepledger.yaml",
        ".github/workflows/check.yaml",
        "overlays/active/peak-b9-00000000/job.yaml",
        "overlays/active/other-b1-00000000/job.yaml",
        "overlays/archive/peak-b9-00000000/job.yaml",
        "clusters/flux/active/peak-b9-00000000.yaml",
        "clusters/other.yaml",
    }
    for path in others:
        sandbox.write(path, "version: 1\n# and more\n")
    sandbox.amend()

    _, stray, _ = since(sandbox, "HEAD^")

    assert stray == others


def test_a_commit_that_records_two_sweeps_is_refused(sandbox: Sandbox, batch: StoredBatch) -> None:
    sandbox.write("results/other/summary.csv", "trial\n")
    sandbox.amend()

    assert since(sandbox, "HEAD^")[1] == {"results"}


def test_a_row_that_was_made_up_is_named(sandbox: Sandbox, batch: StoredBatch) -> None:
    summary = sandbox.root / "results/peak/summary.csv"
    summary.write_text(summary.read_text().replace(",ok,", ",failed,", 1))
    sandbox.commit("results(peak): better")

    looked, stray, differ = since(sandbox, "HEAD^")

    assert (looked, stray, differ) == ({"peak"}, set(), {"results/peak/summary.csv"})
