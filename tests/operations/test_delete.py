"""A sweep is listed, asked for its best trial, and deleted with all that was recorded of it; history keeps that."""

import pytest

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.verbs.delete import delete_sweep
from tests.operations.test_run import spied
from tests.repository import Sandbox, append_to
from tests.searches import hill


@pytest.fixture
def recorded(sandbox: Sandbox) -> Sandbox:
    """A sweep that has run on a laptop."""
    list(spied(sandbox).run("peak"))
    return sandbox


def states(sandbox: Sandbox) -> dict[str, str]:
    return {sweep.sweep: str(sweep.state) for sweep in sandbox.verify().sweeps}


def test_a_list_has_what_is_new_first_and_the_best_trial_of_each(recorded: Sandbox) -> None:
    recorded.spec("later", xs="5, 6")

    listed = recorded.sweep("list").stdout.splitlines()
    best = recorded.sweep("best", "peak").stdout
    none = recorded.sweep("best", "later")

    assert [line.split()[:4] for line in listed] == [
        ["sweep", "ended", "best", "changed"],
        ["later", "0", "of", "0"],
        ["peak", "3", "of", "3"],
    ]
    trial = listed[2].split("(")[1].split(")")[0]
    assert "x" in best
    assert f"sweep show peak/{trial}" in best
    assert "nothing is recorded of 'later'" in none.stdout


def test_a_deleted_sweep_is_gone_from_every_view_and_a_revert_brings_it_back(recorded: Sandbox) -> None:
    deleted = recorded.sweep("delete", "peak")

    assert deleted.returncode == 0, deleted.stderr
    assert "deleted peak with 3 trials" in deleted.stdout
    assert recorded.git("ls-files", "sweeps/peak.yaml", "results", "overlays/archive").split() == [
        "overlays/archive/.gitkeep"
    ]
    assert recorded.git("status", "--porcelain") == ""
    assert states(recorded) == {"peak": "deleted"}
    assert recorded.check(base="HEAD").problems == ()
    assert "peak" not in recorded.sweep("list").stdout

    recorded.git("revert", "--no-edit", "HEAD")
    assert states(recorded) == {"peak": "unsigned"}
    assert recorded.sweep("best", "peak").returncode == 0


def test_a_removal_of_results_alone_is_no_deletion(recorded: Sandbox) -> None:
    recorded.git("rm", "-rq", "results/peak")
    recorded.commit("Forget what was measured")

    assert states(recorded) == {"peak": "differs"}


def test_with_a_controller_only_the_spec_is_deleted(recorded: Sandbox) -> None:
    append_to(recorded.root / "sweepledger.yaml", "controller: flux\n")
    recorded.commit("Run in a cluster")

    deleted = delete_sweep(recorded.workspace, "peak")

    assert deleted.keeps_results
    assert not (recorded.root / "sweeps/peak.yaml").exists()
    assert (recorded.root / "results/peak/summary.csv").exists()
    assert recorded.verify().is_good
    with pytest.raises(UsageError, match="deleted already"):
        delete_sweep(recorded.workspace, "peak")


def test_what_runs_is_edited_or_is_not_committed_stays(sandbox: Sandbox) -> None:
    sandbox.merged("peak")
    sandbox.spec("draft")

    with pytest.raises(RepositoryError, match="is not recorded yet") as running:
        delete_sweep(sandbox.workspace, "peak")
    with pytest.raises(RepositoryError, match="is in no commit"):
        delete_sweep(sandbox.workspace, "draft")
    sandbox.commit("Keep the draft")
    append_to(sandbox.root / "sweeps/draft.yaml", "# edited\n")
    with pytest.raises(RepositoryError, match="changes that are not committed"):
        delete_sweep(sandbox.workspace, "draft")
    with pytest.raises(UsageError, match="no sweep 'unknown'"):
        delete_sweep(sandbox.workspace, "unknown")

    assert "`sweep cancel peak`" in (running.value.hint or "")


def test_a_sweep_from_which_another_starts_stays(recorded: Sandbox) -> None:
    hill(recorded, "next", more="start: [peak]\n")
    recorded.commit("Search further")

    with pytest.raises(UsageError, match="next starts from the trials of peak"):
        delete_sweep(recorded.workspace, "peak")
