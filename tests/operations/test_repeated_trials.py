"""Trials that infrastructure ended are requested again, within a bound, by whoever records them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sweepledger.cli.text.rounds import pushed_round_text
from sweepledger.operations.collection.collector import Collection, collect_from_state
from sweepledger.operations.reports.status import sweep_statuses
from sweepledger.operations.repository.workspace import Target
from sweepledger.operations.rounds import next_round
from sweepledger.operations.rounds.next_round import (
    ResultsPending,
    RoundBlocked,
    next_repeat_at,
)
from sweepledger.operations.rounds.round_commit import (
    PushedBatch,
    push_due,
    push_repeats,
    step_trailers,
)
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import Infrastructure
from sweepledger.verbs.why import explain_waiting
from tests.builders import present
from tests.operations.test_budgets import budget
from tests.operations.test_collect import leave
from tests.repository import Sandbox, replace_in
from tests.searches import active, begun, due, followed
from tests.searches import leave as leave_search

REFUSED: Mapping[str, object] = {
    "status": "failed",
    "reason": "refused-by-node",
    "metrics": {},
    "seconds": 0.0,
    "ran": "nothing",
}
"""The record of a pod that its kubelet refused, as UnexpectedAdmissionError."""
FAILED: Mapping[str, object] = {"status": "failed", "reason": "exit-7", "metrics": {}}
BROKEN_GPU: Mapping[str, object] = {**FAILED, "reason": "exit-91"}
ALLOWED = "infrastructure: {retries: 2, exit_codes: [91]}"


def write_key(sandbox: Sandbox, text: str = ALLOWED) -> None:
    spec = sandbox.root / "sweeps/peak.yaml"
    lines = [line for line in spec.read_text().splitlines() if "infrastructure" not in line]
    place = next(number for number, line in enumerate(lines) if line.startswith("run:"))
    spec.write_text(
        "\n".join([*lines[: place + 1], *([f"  {text}"] if text else []), *lines[place + 1 :], ""])
    )


def requested(sandbox: Sandbox, xs: str = "1, 2, 3") -> str:
    """Merge a sweep whose trials may be repeated; return the name of its batch."""
    sandbox.spec(xs=xs)
    write_key(sandbox)
    made = sandbox.new_batch()
    sandbox.publish("Request trials")
    return made.name


def play(sandbox: Sandbox, results: Path, name: str, *ends: Mapping[str, object]) -> None:
    """Let the trials of a batch end, each as said, and record that."""
    batch = sandbox.batch(name)
    assert len(ends) == batch.lock.trials
    for place, changes in enumerate(ends):
        leave(results, batch, place, **changes)
    assert sandbox.record(results, {name})


def repeated(sandbox: Sandbox) -> StoredBatch | None:
    """Let the collector request what is due; return the batch that it added."""
    pushed = list(push_due(sandbox.target()))
    sandbox.pull()
    if not pushed:
        return None
    (repeat,) = pushed
    assert isinstance(repeat, PushedBatch)
    return sandbox.batch(repeat.due.batch.name)


def values(batch: StoredBatch | None) -> list[object]:
    return [] if batch is None else [row.values["x"] for row in batch.rows]


def statuses(sandbox: Sandbox) -> list[str]:
    lines = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    return [line.split(",")[5] for line in lines]


def test_each_request_is_reported_once(sandbox: Sandbox, tmp_path: Path) -> None:
    play(sandbox, tmp_path, requested(sandbox), {}, {}, REFUSED)
    (repeat,) = push_due(sandbox.target())
    blocked = RoundBlocked("other", "its values are used up")
    steps = [(repeat,), (blocked,), (blocked,)]

    joined = Collection.joined(Collection(rounds=rounds) for rounds in steps)

    assert joined.rounds == (repeat, blocked)


def test_only_what_infrastructure_ended_is_repeated(sandbox: Sandbox, tmp_path: Path) -> None:
    lost = ("refused-by-node", "image-not-pulled", "start-failed", "node-lost", "disrupted")
    own = ("exit-7", "start-failed", "evicted", "timeout", "oom")
    ends: list[Mapping[str, object]] = [
        *({**REFUSED, "reason": reason} for reason in lost),
        BROKEN_GPU,
        *({**FAILED, "reason": reason} for reason in own),
        {**FAILED, "status": "diverged", "reason": "bad-hyperparameters"},
        {},
    ]
    first = requested(sandbox, xs=", ".join(str(number) for number in range(len(ends))))

    play(sandbox, tmp_path, first, *ends)

    assert values(repeated(sandbox)) == [0, 1, 2, 3, 4, 5]


def test_trials_are_repeated_until_the_bound_and_no_further(sandbox: Sandbox, tmp_path: Path) -> None:
    name = requested(sandbox)
    play(sandbox, tmp_path, name, {}, REFUSED, BROKEN_GPU)

    second = repeated(sandbox)
    assert values(second) == [2, 3]
    assert second is not None
    assert repeated(sandbox) is None, "it is requested already"
    play(sandbox, tmp_path, second.name, REFUSED, {})
    third = repeated(sandbox)
    assert values(third) == [2]
    assert third is not None
    play(sandbox, tmp_path, third.name, REFUSED)

    assert repeated(sandbox) is None
    assert statuses(sandbox) == ["ok", "failed", "ok"]
    assert second.lock.after_infrastructure
    assert second.lock.parent == name
    assert sandbox.git("log", "-1", "--format=%s", f"--grep={third.name}").startswith("results(peak)")
    assert not sandbox.verify().sweeps[0].differences


def test_two_collectors(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(sandbox, tmp_path, requested(sandbox), {}, REFUSED, {})
    other: list[PushedBatch | RoundBlocked] = []

    def after_another(*arguments: Any) -> Any:
        due = next_repeat_at(*arguments)
        monkeypatch.setattr(next_round, "next_repeat_at", next_repeat_at)
        other.extend(push_repeats(sandbox.target()))
        return due

    monkeypatch.setattr(next_round, "next_repeat_at", after_another)

    mine = list(push_repeats(sandbox.target()))

    (made,) = other
    assert isinstance(made, PushedBatch)
    # Within one second both make the same commit, and both have pushed it.
    assert mine in ([], [made])
    sandbox.pull()
    assert sandbox.active() == [made.due.batch.name]
    assert sandbox.git("log", "--format=%s").count("repeat(peak)") == 1


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        pytest.param("infrastructure: {retries: 5}", [2, 3], id="a larger number is for later batches"),
        pytest.param("", [], id="the key is gone"),
    ],
)
def test_a_restricted_spec_counts(sandbox: Sandbox, tmp_path: Path, text: str, repeats: list[int]) -> None:
    play(sandbox, tmp_path, requested(sandbox), {}, REFUSED, BROKEN_GPU)
    write_key(sandbox, text)
    sandbox.publish("Change the key")

    batch = repeated(sandbox)

    assert values(batch) == repeats
    assert batch is None or batch.lock.run.infrastructure == Infrastructure(2, (91,))


def test_a_trial_that_its_author_removed_is_not_repeated(sandbox: Sandbox, tmp_path: Path) -> None:
    play(sandbox, tmp_path, requested(sandbox), {}, REFUSED, REFUSED)
    sandbox.spec(xs="1, 2")
    write_key(sandbox)
    sandbox.publish("Try fewer values")

    assert values(repeated(sandbox)) == [2]


def test_a_trial_of_another_program_or_an_earlier_key_is_not_repeated(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    name = sandbox.merged(xs="1, 2")
    write_key(sandbox)
    sandbox.publish("Allow repetitions of later batches")
    play(sandbox, tmp_path, name, {}, REFUSED)
    assert repeated(sandbox) is None

    play(sandbox, tmp_path, requested(sandbox), REFUSED)
    replace_in(sandbox.root / "sweeps/peak.yaml", "code/train.py,", "code/train.py, --fast,")
    sandbox.publish("Run another command")

    assert repeated(sandbox) is None


def test_a_cancelled_batch_is_not_started_again(sandbox: Sandbox, tmp_path: Path) -> None:
    name = requested(sandbox)
    (batch,) = sandbox.batches()
    leave(tmp_path, batch, 1, **REFUSED)
    sandbox.cancel(push=True)
    assert sandbox.record(tmp_path, {name}, alive={})

    assert repeated(sandbox) is None


def test_while_a_batch_is_paused_nothing_is_repeated(sandbox: Sandbox, tmp_path: Path) -> None:
    first = requested(sandbox)
    sandbox.spec(xs="1, 2, 3, 4")
    write_key(sandbox)
    sandbox.publish_batches("One more value")
    play(sandbox, tmp_path, first, {}, REFUSED, {})
    sandbox.pause(push=True)

    (blocked,) = push_repeats(sandbox.target())

    assert isinstance(blocked, RoundBlocked)
    assert "is paused" in blocked.reason


def test_a_lost_attempt_does_not_use_up_the_retries_of_a_trial(sandbox: Sandbox, tmp_path: Path) -> None:
    ends_of: Mapping[int, list[Mapping[str, object]]] = {
        0: [REFUSED, REFUSED],
        1: [FAILED, REFUSED],
        2: [REFUSED, FAILED],
        3: [FAILED, FAILED],
        4: [{**REFUSED, "reason": "preempted"}, FAILED, FAILED],
        5: [REFUSED, {}],
    }
    sandbox.spec(xs=", ".join(map(str, ends_of)))
    write_key(sandbox, f"retries: 1\n  {ALLOWED}")
    sandbox.publish_batches("Request trials with a retry")
    (batch,) = sandbox.batches()
    for place, ends in ends_of.items():
        for number, changes in enumerate(ends, start=1):
            times = {"started": f"2026-01-01T00:0{number}:00Z", "finished": f"2026-01-01T00:0{number}:02Z"}
            uid = f"uid-{place}-{number}"
            leave(tmp_path, batch, place, **{"uid": uid, "attempt": number, **times, **changes})
    sandbox.record(tmp_path, {batch.name})

    assert values(repeated(sandbox)) == [0, 1, 2], "neither both of its own, nor ok in the second"


def test_only_the_proposed_batch_passes(sandbox: Sandbox, tmp_path: Path, needs_kustomize: None) -> None:
    play(sandbox, tmp_path, requested(sandbox), {}, REFUSED, BROKEN_GPU)
    sandbox.git("checkout", "-q", "-b", "proposal")
    (made,) = push_repeats(Target(sandbox.workspace.repository, branch="proposal"))
    assert isinstance(made, PushedBatch)
    assert not [problem for problem in sandbox.check().problems if problem.code != "pending"]

    spec = sandbox.root / "sweeps/peak.yaml"
    sandbox.git("reset", "-q", "--hard", "origin/main")
    results = sandbox.root / "results/peak/records"
    (records,) = results.iterdir()
    replace_in(records, "exit-91", "exit-7")
    sandbox.commit("Judge by other records")
    base = sandbox.head()
    sandbox.git("checkout", "-q", made.commit, "--", "overlays")
    sandbox.commit("Request both")

    problems = sandbox.check(base=base).problems

    assert {"drift", "trial-repeated"} & {problem.code for problem in problems}
    assert spec.is_file()


def test_why_says_what_happens_and_when_the_bound_is_reached(sandbox: Sandbox, tmp_path: Path) -> None:
    name = requested(sandbox, xs="1")
    play(sandbox, tmp_path, name, REFUSED)

    (due,) = explain_waiting(sandbox.workspace, "peak").batches
    assert "infrastructure ended it once, last by refused-by-node" in due.causes[0].cause.text
    assert "requests it again" in due.causes[0].cause.remedy
    for _ in range(2):
        batch = repeated(sandbox)
        play(sandbox, tmp_path, present(batch).name, REFUSED)

    for reference in ("peak", due.ids[0]):
        (over,) = explain_waiting(sandbox.workspace, reference).batches
        assert "in 3 batches" in over.causes[0].cause.text
        assert "run.infrastructure.retries was 2, so nothing requests it again" in over.causes[0].cause.text
        assert "sweep retry peak" in over.causes[0].cause.remedy
    (shown,) = sweep_statuses(sandbox.workspace, "peak", state=tmp_path / "none")
    (remark,) = shown.remarks
    assert remark.kind == "infrastructure"
    assert remark.message.startswith("1 trial(s): it is recorded: infrastructure ended it in 3 batches")
    by_hand = sandbox.retry()
    sandbox.push()
    play(sandbox, tmp_path, by_hand.batch, {})
    assert statuses(sandbox) == ["ok"], "a person may request it beyond the bound"


def test_verify_finds_a_trial_that_was_repeated_without_a_loss(sandbox: Sandbox, tmp_path: Path) -> None:
    play(sandbox, tmp_path, requested(sandbox), {}, REFUSED, {})
    batch = repeated(sandbox)
    play(sandbox, tmp_path, present(batch).name, {})
    first, _ = sorted((sandbox.root / "results/peak/records").iterdir())
    replace_in(first, "refused-by-node", "exit-7")
    sandbox.commit("Forge a reason")

    differences = sandbox.verify().sweeps[0].differences

    assert any("must have been ended by infrastructure in 1 to 2" in str(one) for one in differences)


def test_a_search_waits_for_repeated_trials(sandbox: Sandbox, tmp_path: Path) -> None:
    first = begun(sandbox, more=f"  {ALLOWED}\n")
    (batch,) = active(sandbox.workspace)
    leave_search(tmp_path, batch)
    leave(tmp_path, batch, 1, **REFUSED)

    (collected,) = sandbox.record(tmp_path, {first})

    assert isinstance(collected.step, ResultsPending)
    assert step_trailers(collected.step) == "Next: none before 1 trial(s) that infrastructure ended\n"
    assert [item.status for item in collected.step.evidence.observations].count(Status.MISSING) == 1
    repeat, *others = push_due(sandbox.target())
    assert isinstance(repeat, PushedBatch)
    assert others == []
    sandbox.pull()
    assert isinstance(followed(sandbox.workspace).step, ResultsPending)
    (again,) = active(sandbox.workspace)
    leave_search(tmp_path, again)
    (ended,) = sandbox.collect(tmp_path, {again.name})
    assert due(ended).round.number == 2
    assert {item.status for item in due(ended).evidence.observations} == {Status.OK}


def test_a_used_budget_keeps_trials_from_being_repeated(sandbox: Sandbox, tmp_path: Path) -> None:
    budget(sandbox, 4)
    spec = sandbox.spec("vision-a", xs="1, 2", parallelism=2)
    lines = spec.read_text().replace("memory: 256Mi", "memory: 256Mi, gpu: 1")
    spec.write_text(lines.replace("timeout: 1m", f"timeout: 1h\n  max_disruptions: 0\n  {ALLOWED}"))
    sandbox.publish_batches("Request trials")
    (batch,) = sandbox.batches()
    leave(tmp_path, batch, 0, seconds=3600.0)
    leave(tmp_path, batch, 1, **REFUSED)
    assert sandbox.record(tmp_path, {batch.name})
    budget(sandbox, 1)

    (blocked,) = push_repeats(sandbox.target())

    assert isinstance(blocked, RoundBlocked)
    assert "the budget of vision has less than 1 gpu_hours left" in blocked.reason
    budget(sandbox, 4)
    (repeat,) = push_repeats(sandbox.target())
    assert isinstance(repeat, PushedBatch)


def test_whoever_records_on_one_machine_requests_them_again_too(sandbox: Sandbox, tmp_path: Path) -> None:
    name = requested(sandbox)
    results = tmp_path / "results"
    (batch,) = sandbox.batches()
    for place, changes in enumerate(({}, BROKEN_GPU, {})):
        leave(results, batch, place, **changes)

    collection = collect_from_state(sandbox.target(), results, tmp_path / "none", over={name})

    (pushed,) = collection.rounds
    assert isinstance(pushed, PushedBatch)
    assert pushed_round_text(pushed).startswith("requested 1 trials that infrastructure ended again in ")
    assert pushed.as_data()["state"] == "repeated"
