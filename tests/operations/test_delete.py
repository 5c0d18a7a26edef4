"""A sweep is listed, asked for its best trial, and deleted with all that was recorded of it; history keeps that."""

from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.verbs.delete import delete_sweep
from tests.operations.test_run import spied, starts
from tests.repo.test_signatures import key, line, signed_commit
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
    assert {problem.code for problem in recorded.check(base="HEAD~1").problems} == {"history-unsigned"}
    assert "peak" not in recorded.sweep("list").stdout

    recorded.git("revert", "--no-edit", "HEAD")
    assert states(recorded) == {"peak": "unsigned"}
    assert recorded.sweep("best", "peak").returncode == 0


def test_a_sweep_with_a_deleted_name_is_measured_anew_and_what_was_written_stays(recorded: Sandbox) -> None:
    spec = (recorded.root / "sweeps/peak.yaml").read_text()
    before = starts(recorded)

    deleted = delete_sweep(recorded.workspace, str(recorded.root / "sweeps/peak.yaml"))
    recorded.write("sweeps/peak.yaml", spec)
    list(recorded.run("peak"))

    assert deleted.sweep == "peak"
    assert len(starts(recorded)) == 2 * len(before)
    assert deleted.kept is not None
    assert len(list((recorded.root / deleted.kept).glob("results/peak-b1-*/[0-9]"))) == len(before)
    assert states(recorded) == {"peak": "unsigned"}


def test_a_check_accepts_a_signed_deletion_of_all_of_a_sweep(recorded: Sandbox, tmp_path: Path) -> None:
    made = key(tmp_path, "listed")
    recorded.commit("List a key", {"sweepledger.yaml": f"version: 1\nsigners:\n- '{line(made)}'\n"})
    recorded.git("rm", "-rq", "overlays/archive", "results")
    signed_commit(recorded, made, "Keep the spec")
    assert recorded.codes(base="HEAD~1") == {"batch-vanished"}

    recorded.git("rm", "-q", "sweeps/peak.yaml")
    signed_commit(recorded, made, "Delete the spec, too")
    assert recorded.codes(base="HEAD~2") == set()


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
