"""A sweep under another name takes its records along: nothing that is recorded is requested or trained again."""

import csv

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.plan import plan
from sweepledger.commands.rename import rename
from sweepledger.commands.repository.costs import usage_in
from sweepledger.commands.verify import verify
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.repo import batches
from tests.command_line import run_sweep
from tests.commands.test_run import playing, spied, starts, subjects
from tests.repository import Sandbox
from tests.searches import begun


@pytest.fixture
def recorded(sandbox: Sandbox) -> Sandbox:
    """A sweep that has run on a laptop; its program tells of every start."""
    list(playing(spied(sandbox)))
    return sandbox


def move_by_hand(sandbox: Sandbox, new: str) -> None:
    sandbox.git("mv", "sweeps/peak.yaml", f"sweeps/{new}.yaml")
    path = sandbox.root / f"sweeps/{new}.yaml"
    path.write_text(path.read_text().replace("name: peak", f"name: {new}"))


def summary(sandbox: Sandbox, name: str) -> list[tuple[str, str, str]]:
    text = (sandbox.root / f"results/{name}/summary.csv").read_text()
    return [(row["trial"], row["status"], row["metrics.score"]) for row in csv.DictReader(text.splitlines())]


@pytest.mark.parametrize("by_hand", [False, True], ids=["by the verb", "moved by hand before"])
def test_a_renamed_sweep_has_its_records_and_trains_nothing(recorded: Sandbox, *, by_hand: bool) -> None:
    before, trained = summary(recorded, "peak"), starts(recorded)
    if by_hand:
        move_by_hand(recorded, "summit")

    renamed = rename(recorded.workspace, "peak", "summit")
    (review,) = plan(recorded.workspace, ["summit"]).reviews
    list(playing(recorded, "summit"))

    assert (renamed.trials, renamed.left, len(renamed.batches)) == (3, 0, 1)
    assert summary(recorded, "summit") == before
    assert starts(recorded) == trained
    assert (review.counts.new, review.counts.recorded) == (0, 3)
    assert recorded.git("status", "--porcelain") == ""
    results, moved, *_ = subjects(recorded)
    assert results.startswith("results(summit): 3/3 trials")
    assert moved == "rename(summit): 3 recorded trials of peak"
    assert summary(recorded, "peak") == before, "what was recorded stays in its place"
    assert [sweep.differences for sweep in verify(recorded.workspace).sweeps] == [(), ()]
    (copies,) = (recorded.root / "results/summit/records").iterdir()
    assert [usage.seconds for usage in usage_in(copies.read_bytes()).values()] == [0, 0, 0], "charged once"
    assert check(recorded.workspace).problems == ()


def test_what_was_not_recorded_is_requested_under_the_new_name_alone(recorded: Sandbox) -> None:
    trained = starts(recorded)
    rename(recorded.workspace, "peak", "summit")
    path = recorded.root / "sweeps/summit.yaml"
    path.write_text(path.read_text().replace("[1, 2, 3]", "[1, 2, 3, 4]"))

    list(playing(recorded, "summit"))

    assert len(starts(recorded)) == len(trained) + 1
    stored = batches.of_sweep(batches.in_work_tree(recorded.root), "summit")
    assert [len(batch.rows) for batch in stored] == [3, 1]
    assert verify(recorded.workspace).sweeps[0].differences == ()


def test_a_sweep_that_was_moved_by_hand_is_answered_with_the_verb(recorded: Sandbox) -> None:
    trained = starts(recorded)
    move_by_hand(recorded, "summit")

    with pytest.raises(SpecError) as refused:
        list(playing(recorded, "summit"))
    shown = run_sweep("plan", "summit", cwd=recorded.root)
    recorded.commit("Move it")
    with pytest.raises(SpecError):
        list(playing(recorded, "summit"))

    (problem,) = refused.value.problems
    assert (problem.code, problem.file) == ("sweep-renamed", "sweeps/summit.yaml")
    assert "`sweep rename peak summit`" in (problem.hint or "")
    assert "`sweep rename peak summit`" in shown.stdout + shown.stderr
    assert starts(recorded) == trained


def test_another_new_sweep_is_no_renamed_one(recorded: Sandbox) -> None:
    recorded.spec("other", "1, 2, 3")

    list(playing(recorded, "other"))

    assert len(starts(recorded)) == 6


def test_a_retried_trial_and_two_programs_are_taken_along(recorded: Sandbox) -> None:
    train = recorded.root / "code/train.py"
    train.write_text(train.read_text() + "# changed\n")
    recorded.commit("Change the program")
    list(playing(recorded, updates=True))
    trained, before = starts(recorded), summary(recorded, "peak")

    renamed = rename(recorded.workspace, "peak", "summit")
    list(playing(recorded, "summit"))

    assert len(renamed.batches) == 2
    assert starts(recorded) == trained
    assert sorted(summary(recorded, "summit")) == sorted(before)
    assert verify(recorded.workspace).sweeps[0].differences == ()


def test_a_name_that_is_taken_and_a_batch_that_runs_are_refused(recorded: Sandbox) -> None:
    recorded.spec("other", "7")
    with pytest.raises(UsageError, match="exists, beside"):
        rename(recorded.workspace, "peak", "other")
    with pytest.raises(UsageError, match="there is no sweeps/nothing"):
        rename(recorded.workspace, "nothing", "summit")
    recorded.spec("peak", "1, 2, 3, 4")
    with pytest.raises(RepositoryError, match="not committed"):
        rename(recorded.workspace, "peak", "summit")


def test_a_search_keeps_its_name(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=2)
    sandbox.use_as_laptop()
    list(playing(sandbox, "hill"))

    with pytest.raises(UsageError, match="hill has rounds"):
        rename(sandbox.workspace, "hill", "slope")
