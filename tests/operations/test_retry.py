import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.errors import IdleError, RepositoryError, SpecError, UsageError
from sweepledger.operations.reports.results import rank_trials
from sweepledger.operations.repository.spec_edit import SpecEdit
from sweepledger.spec import ParsedSpec
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Retry, Sweep
from sweepledger.verbs.retry import retry_trials
from tests.builders import present
from tests.operations.test_collect import leave
from tests.repository import Sandbox, append_to, cancelled, followed_by

FAILED: dict[str, object] = {"status": "failed", "reason": "exit-7", "metrics": {}}
DIVERGED: dict[str, object] = {"status": "diverged", "reason": "bad-hyperparameters", "metrics": {}}


def the_sweep(sandbox: Sandbox) -> Sweep:
    (sweep,) = sandbox.workspace.sweeps(["peak"])
    return sweep


def play(sandbox: Sandbox, results: Path, name: str, **ends: dict[str, object]) -> None:
    """Let the trials of a batch end: each as said, by its place, the rest without a record; record that."""
    batch = sandbox.batch(name)
    for place, changes in ends.items():
        leave(results, batch, int(place.removeprefix("t")), **changes)
    assert sandbox.record(results, {name})


def requested_values(sandbox: Sandbox, name: str) -> list[object]:
    return [row.values["x"] for row in sandbox.batch(name).rows]


@pytest.fixture
def recorded(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """Four trials: ok, failed, without a record, diverged."""
    batch = sandbox.merged(xs="1, 2, 3, 4")
    play(sandbox, tmp_path / "results", batch, t0={}, t1=FAILED, t3=DIVERGED)
    return sandbox


def first(sandbox: Sandbox) -> str:
    return sandbox.batches()[0].name


def test_what_did_not_end_is_asked_once_more_in_one_commit(recorded: Sandbox) -> None:
    recorded.write("code/train.py", "dirty")

    made = recorded.retry()

    assert requested_values(recorded, made.batch) == [2, 3]
    assert the_sweep(recorded).retry == (Retry(first(recorded)),)
    assert recorded.git("log", "-1", "--format=%s").strip() == "retry(peak): 2 trials"
    assert recorded.git("status", "--porcelain").split() == ["M", "code/train.py"]
    assert not recorded.generate()[0].is_pending


def test_an_edited_spec_is_committed_before_the_retry(recorded: Sandbox) -> None:
    spec = recorded.root / "sweeps/peak.yaml"
    changed = re.sub("description: .*", "description: 'A: peak'  # with a comment", spec.read_text())
    spec.write_text(changed)

    recorded.retry()

    assert recorded.git("log", "-2", "--format=%s").split("\n")[1] == "spec(peak): change before a retry"
    assert recorded.git("status", "--short", "sweeps").strip() == ""
    assert spec.read_text().startswith(changed.rstrip())


def test_a_commit_during_a_retry_is_kept(recorded: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    append = SpecEdit.append

    def append_then_commit(self: SpecEdit, *items: tuple[str, object]) -> tuple[ParsedSpec, bytes]:
        """Commit another change after the first edit is computed, and before it is committed."""
        edit = append(self, *items)
        monkeypatch.undo()
        append_to(recorded.root / "sweeps/peak.yaml", "# added in between\n")
        recorded.commit("Add a comment")
        return edit

    monkeypatch.setattr(SpecEdit, "append", append_then_commit)

    made = recorded.retry()

    assert requested_values(recorded, made.batch) == [2, 3]
    assert the_sweep(recorded).retry == (Retry(first(recorded)),)
    assert "# added in between" in recorded.git("show", "HEAD:sweeps/peak.yaml")
    assert not recorded.generate()[0].is_pending


def test_trials_are_selected_by_end(recorded: Sandbox) -> None:
    done = recorded.sweep("retry", "peak", "--failed", "--status", "cancelled")

    assert "retries 1 trial, in " in done.stdout
    assert requested_values(recorded, recorded.active()[0]) == [2]
    assert the_sweep(recorded).retry == (
        Retry(first(recorded), frozenset({Status.FAILED, Status.CANCELLED})),
    )


def test_the_spec_alone_makes_generate_ask_again_and_only_once(recorded: Sandbox) -> None:
    spec = recorded.root / "sweeps/peak.yaml"
    text = spec.read_text().replace("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]")
    spec.write_text(f"{text}retry: [{first(recorded)}]\n")

    (made,) = recorded.generate()

    assert requested_values(recorded, present(made.batch).name) == [2, 3, 5]
    assert (made.known, made.retried) == (2, 2)
    recorded.publish("Again")
    assert recorded.generate()[0].batch is None


def test_what_the_spec_asks_for_already_is_not_written_twice(recorded: Sandbox) -> None:
    spec = recorded.root / "sweeps/peak.yaml"
    append_to(spec, f"retry: [{first(recorded)}]\n")
    recorded.commit("Ask")
    text = spec.read_text()

    made = recorded.retry(statuses=frozenset({Status.FAILED}))

    assert spec.read_text() == text
    assert requested_values(recorded, made.batch) == [2, 3]


def test_a_retry_that_a_results_commit_makes_due_stops_nobody_elses_merge(recorded: Sandbox) -> None:
    append_to(recorded.root / "sweeps/peak.yaml", f"retry: [{first(recorded)}]\n")

    (problem,) = [item for item in recorded.check().problems if item.code in {"drift", "pending"}]

    assert problem.severity == "warning"


def test_where_nothing_can_be_retried_it_says_why(recorded: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(IdleError, match="no recorded trial of peak is cancelled"):
        recorded.retry(statuses=frozenset({Status.CANCELLED}))
    with pytest.raises(UsageError, match="no merged batch 'peak-b9-00000000'"):
        recorded.retry(batch="peak-b9-00000000")
    made = recorded.retry()
    recorded.push()

    with pytest.raises(IdleError, match="nothing to retry"):
        recorded.retry()
    assert requested_values(recorded, made.batch) == [2, 3]


def test_asked_twice_before_it_is_pushed_nothing_is_written_twice(recorded: Sandbox) -> None:
    made = recorded.retry()
    head = recorded.git("rev-parse", "HEAD")

    done = recorded.sweep("retry", "peak")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{made.batch} retries 2 trials already\n"
        "next: `sweep run peak` here; or push the commit, or open a pull request\n"
    )
    assert recorded.git("rev-parse", "HEAD") == head


@pytest.mark.parametrize("verb", [retry_trials, cancelled])
def test_without_a_branch_no_commit_is_made(recorded: Sandbox, verb: Callable[..., object]) -> None:
    recorded.git("checkout", "-q", "--detach")
    head = recorded.git("rev-parse", "HEAD")

    with pytest.raises(RepositoryError, match="no branch is checked out") as raised:
        verb(recorded.workspace, "peak")

    assert "`git switch main`" in (raised.value.hint or "")
    assert recorded.git("rev-parse", "HEAD") == head


def test_a_batch_that_is_not_committed_or_not_pushed_is_in_the_way(recorded: Sandbox) -> None:
    spec = recorded.root / "sweeps/peak.yaml"
    text = spec.read_text()
    spec.write_text(text.replace("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]"))
    recorded.generate()
    spec.write_text(text)
    with pytest.raises(RepositoryError, match="is not committed"):
        recorded.retry()

    recorded.git("clean", "-qfd", "overlays")
    made = recorded.retry()
    spec.write_text(spec.read_text().replace("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]"))
    recorded.commit("One more")

    with pytest.raises(RepositoryError, match=f"{made.batch} is committed here and not on main yet"):
        recorded.retry()


def test_an_entry_that_asks_for_less_is_widened_by_hand(recorded: Sandbox) -> None:
    recorded.retry(statuses=frozenset({Status.FAILED}))

    with pytest.raises(UsageError, match="under retry, only for failed") as raised:
        recorded.retry()
    assert "`only:`" in (raised.value.hint or "")


def test_where_nothing_is_to_be_retried_scripts_go_on(sandbox: Sandbox) -> None:
    sandbox.merged()

    done = sandbox.sweep("retry", "peak")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing to retry: no recorded trial of peak is cancelled or failed")


def test_a_checkout_that_lacks_the_results_is_told_to_pull(recorded: Sandbox) -> None:
    recorded.git("reset", "-q", "--hard", "HEAD~1")

    with pytest.raises(RepositoryError, match="does not contain") as raised:
        recorded.retry()

    assert raised.value.hint == "update it: `git pull origin main`"


def test_without_an_image_nothing_is_asked_of_a_cluster_again(recorded: Sandbox) -> None:
    recorded.commit("Use Argo CD", {"sweepledger.yaml": followed_by("argocd")})

    with pytest.raises(SpecError) as raised:
        recorded.retry()

    (problem,) = raised.value.problems
    assert problem.code == "image-missing"
    assert "`sweep generate peak --update`" in (problem.hint or "")


FLAKY = """import json, os
x = float(os.environ["SWEEP_PARAM_X"])
if x == BROKEN:
    raise SystemExit(7)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": x}, file)
"""


def failing(sandbox: Sandbox, broken: int) -> None:
    sandbox.commit(f"Fail at {broken}", {"code/train.py": FLAKY.replace("BROKEN", str(broken))})


@pytest.fixture
def failed(sandbox: Sandbox) -> Sandbox:
    """A sweep that ran here, whose second trial failed by its code."""
    sandbox.use_as_laptop()
    failing(sandbox, 2)
    sandbox.spec()
    list(sandbox.run("peak"))
    return sandbox


def test_failed_trials_run_the_current_code_and_no_others_do(failed: Sandbox) -> None:
    failing(failed, 0)

    made = failed.retry(update=True)
    list(failed.run("peak"))
    (review,) = failed.plan("peak").reviews

    first_batch, repaired = failed.batches()
    assert repaired.name == made.batch
    assert requested_values(failed, made.batch) == [2]
    assert (first_batch.lock.repairs, repaired.lock.repairs) == (False, True)
    assert first_batch.lock.program.digest != repaired.lock.program.digest
    assert review.counts.new == 0, "no other trial runs the later code"
    text = (failed.root / "results/peak/README.md").read_text()
    assert f"`{made.batch}` ran 1 trial that had failed with later code, and is not ranked." in " ".join(
        text.split()
    )
    shown = rank_trials(failed.workspace, "peak", state=failed.root / ".sweepledger")
    assert shown.ranked_program == first_batch.lock.program.digest
    assert [row.assignment["x"] for row in shown.rows[:2]] == [3, 1]
    assert [row.status for row in shown.rows].count(Status.OK) == 3
    every = rank_trials(failed.workspace, "peak", state=failed.root / ".sweepledger", all_programs=True)
    assert [row.assignment["x"] for row in every.rows[:3]] == [3, 2, 1]
    assert failed.verify().sweeps[0].differences == ()
    assert failed.check().problems == ()


def test_the_current_code_is_refused_where_it_is_the_same_or_was_tried(failed: Sandbox) -> None:
    with pytest.raises(UsageError, match="have not changed since its newest batch"):
        failed.retry(update=True)
    failed.write("code/train.py", f"{(failed.root / 'code/train.py').read_text()}# still broken\n")
    with pytest.raises(RepositoryError, match="uncommitted changes"):
        failed.retry(update=True)
    failed.commit("Try to mend it")
    failed.retry(update=True)
    list(failed.run("peak"))

    with pytest.raises(IdleError, match="has been requested for these trials"):
        failed.retry(update=True)
    failing(failed, 0)
    assert requested_values(failed, failed.retry(update=True).batch) == [2]


def test_an_update_of_all_trials_ranks_the_repaired_ones_among_them(failed: Sandbox) -> None:
    failing(failed, 0)
    failed.retry(update=True)
    list(failed.run("peak"))

    list(failed.run("peak", updates=True))

    last = failed.batches()[-1]
    assert requested_values(failed, last.name) == [1, 3]
    shown = rank_trials(failed.workspace, "peak", state=failed.root / ".sweepledger")
    assert [row.assignment["x"] for row in shown.rows[:3]] == [3, 2, 1]
