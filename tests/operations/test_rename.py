"""A sweep under another name takes its records along: nothing that is recorded is requested or trained again."""

import csv
from contextlib import suppress
from pathlib import Path

import pytest

from sweepledger.errors import IdleError, RepositoryError, SpecError, UsageError
from sweepledger.operations.repository.costs import usage_in
from sweepledger.repo import batches
from sweepledger.verbs.rename import rename_sweep
from tests.operations.test_run import spied, starts, subjects
from tests.repository import Sandbox, append_to, replace_in
from tests.searches import begun


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sweep that has run on a laptop; its program tells of every start."""
    sandbox = Sandbox.create(tmp_path_factory.mktemp("recorded"))
    list(spied(sandbox).run("peak"))
    return sandbox


@pytest.fixture
def recorded(sandbox: Sandbox, pristine: Sandbox) -> Sandbox:
    """A copy of that."""
    sandbox.copy_from(pristine)
    return sandbox


def summary(sandbox: Sandbox, name: str) -> list[tuple[str, str, str]]:
    text = (sandbox.root / f"results/{name}/summary.csv").read_text()
    return [(row["trial"], row["status"], row["metrics.score"]) for row in csv.DictReader(text.splitlines())]


def test_a_renamed_sweep_has_its_records_and_trains_nothing(recorded: Sandbox) -> None:
    before, trained = summary(recorded, "peak"), starts(recorded)

    renamed = rename_sweep(recorded.workspace, "peak", "summit")
    (review,) = recorded.plan("summit").reviews
    list(recorded.run("summit"))

    assert (renamed.trials, renamed.remaining, len(renamed.batches)) == (3, 0, 1)
    assert summary(recorded, "summit") == before
    assert starts(recorded) == trained
    assert (review.counts.new, review.counts.recorded) == (0, 3)
    assert recorded.git("status", "--porcelain") == ""
    results, moved, *_ = subjects(recorded)
    assert results.startswith("results(summit): 3/3 trials")
    assert moved == "rename(summit): 3 recorded trials of peak"
    assert summary(recorded, "peak") == before, "what was recorded stays in its place"
    assert [sweep.differences for sweep in recorded.verify().sweeps] == [(), ()]
    (copies,) = (recorded.root / "results/summit/records").iterdir()
    assert [usage.seconds for usage in usage_in(copies.read_bytes()).values()] == [0, 0, 0], "charged once"
    assert recorded.check().problems == ()

    replace_in(recorded.root / "sweeps/summit.yaml", "[1, 2, 3]", "[1, 2, 3, 4]")
    list(recorded.run("summit"))
    assert len(starts(recorded)) == len(trained) + 1, "what was not recorded, under the new name"
    assert [len(batch.rows) for batch in batches.of_sweep(recorded.batches(), "summit")] == [3, 1]


def test_a_sweep_that_was_moved_by_hand_is_answered_with_the_verb(recorded: Sandbox) -> None:
    trained = starts(recorded)
    recorded.spec("other", "1, 2, 3")
    assert recorded.generate("other")[0].trials == 3, "a new sweep with the same trials is no renamed one"
    recorded.git("clean", "-qfd", "sweeps", "overlays")
    recorded.git("mv", "sweeps/peak.yaml", "sweeps/summit.yaml")
    replace_in(recorded.root / "sweeps/summit.yaml", "name: peak", "name: summit")

    with pytest.raises(SpecError) as refused:
        list(recorded.run("summit"))
    shown = recorded.sweep("plan", "summit")

    (problem,) = refused.value.problems
    assert (problem.code, problem.file) == ("sweep-renamed", "sweeps/summit.yaml")
    assert "`sweep rename peak summit`" in (problem.hint or "")
    assert "`sweep rename peak summit`" in shown.stdout + shown.stderr
    assert starts(recorded) == trained
    assert rename_sweep(recorded.workspace, "peak", "summit").trials == 3


def test_a_retried_trial_and_two_programs_are_taken_along(recorded: Sandbox) -> None:
    append_to(recorded.root / "code/train.py", "# changed\n")
    recorded.commit("Change the program")
    list(recorded.run("peak", updates=True))
    trained, before = starts(recorded), summary(recorded, "peak")

    renamed = rename_sweep(recorded.workspace, "peak", "summit")
    list(recorded.run("summit"))

    assert len(renamed.batches) == 2
    assert starts(recorded) == trained
    assert sorted(summary(recorded, "summit")) == sorted(before)
    assert recorded.verify().sweeps[0].differences == ()


FAILING = """\
import os
if os.environ["SWEEP_PARAM_X"] == "2" and not os.path.exists("{mark}"):
    raise SystemExit("broken")
"""


@pytest.fixture
def failed(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """A sweep of which one trial has failed; it succeeds once `mark` exists."""
    spied(sandbox)
    train = sandbox.root / "code/train.py"
    train.write_text(FAILING.format(mark=tmp_path / "mark") + train.read_text())
    sandbox.commit("Let a trial fail")
    list(sandbox.run("peak"))
    return sandbox


def test_a_sweep_with_retries_keeps_its_rows(failed: Sandbox) -> None:
    failed.retry()
    list(failed.run("peak"))
    assert "retry:" in (failed.root / "sweeps/peak.yaml").read_text()
    trained = starts(failed)

    rename_sweep(failed.workspace, "peak", "summit")
    with suppress(IdleError):
        list(failed.run("summit"))

    assert "retry" not in (failed.root / "sweeps/summit.yaml").read_text()
    assert starts(failed) == trained
    assert sorted(status for _, status, _ in summary(failed, "summit")) == ["failed", "ok", "ok"]
    assert [each.differences for each in failed.verify().sweeps] == [()] * 2
    assert failed.check(base="HEAD").problems == ()


def test_a_retry_that_no_batch_lists_yet_is_run_before(failed: Sandbox, tmp_path: Path) -> None:
    path = failed.root / "sweeps/peak.yaml"
    (batch,) = failed.batches()
    append_to(path, f"retry: [{batch.name}]\n")
    failed.commit("Ask for a retry")

    with pytest.raises(RepositoryError, match=r"requests 1 trial\(s\) that no batch lists"):
        rename_sweep(failed.workspace, "peak", "summit")

    (tmp_path / "mark").touch()
    list(failed.run("peak"))
    assert rename_sweep(failed.workspace, "peak", "summit").trials == 3


def test_a_sweep_whose_batch_was_cancelled_is_renamed_with_what_is_recorded(recorded: Sandbox) -> None:
    recorded.spec("peak", "1, 2, 3, 4")
    recorded.commit("Ask for more")
    recorded.commit_batches("Add the batch")
    recorded.cancel()
    with suppress(IdleError):
        list(recorded.run("peak"))
    path = recorded.root / "sweeps/peak.yaml"
    assert "cancel:" in path.read_text()

    renamed = rename_sweep(recorded.workspace, "peak", "summit")

    assert renamed.trials == 3
    assert "cancel" not in (recorded.root / "sweeps/summit.yaml").read_text()
    assert [each.differences for each in recorded.verify().sweeps] == [()] * 2


def test_what_budgets_charge_for_pauses_keeps_its_name(recorded: Sandbox) -> None:
    path = recorded.root / "sweeps/peak.yaml"
    (batch,) = recorded.batches()
    append_to(path, f"running: {{{batch.name}: {{resumes: 1}}}}\n")
    recorded.commit("Say that it was resumed")

    with pytest.raises(UsageError, match="budgets charge what peak-b1"):
        rename_sweep(recorded.workspace, "peak", "summit")

    replace_in(path, "resumes: 1", "parallelism: 1")
    recorded.commit("Say how it ran")
    assert rename_sweep(recorded.workspace, "peak", "summit").trials == 3


def test_a_name_that_is_taken_and_a_batch_that_runs_are_refused(recorded: Sandbox) -> None:
    recorded.spec("other", "7")
    with pytest.raises(UsageError, match="exists, beside"):
        rename_sweep(recorded.workspace, "peak", "other")
    with pytest.raises(UsageError, match="there is no sweeps/nothing"):
        rename_sweep(recorded.workspace, "nothing", "summit")
    recorded.spec("peak", "1, 2, 3, 4")
    with pytest.raises(RepositoryError, match="not committed"):
        rename_sweep(recorded.workspace, "peak", "summit")


def test_a_search_keeps_its_name(sandbox: Sandbox) -> None:
    begun(sandbox, size=2, rounds=2)
    sandbox.use_as_laptop()
    list(sandbox.run("hill"))

    with pytest.raises(UsageError, match="hill has rounds"):
        rename_sweep(sandbox.workspace, "hill", "slope")
