"""Which attempt counts, whatever the order of reading (catalogue R4, R5, R9, R10)."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepledger.formats.record_json import read, to_line
from sweepledger.results.outcomes import BatchRecords, evaluate, substitute_records
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import RAN_NOTHING, RAN_PROCESS, Record, Status
from tests.builders import DATA, TREE, a_lock, a_program, a_record, an_expected_trial

IMAGE = "registry/t@sha256:" + "a" * 64


def a_batch(*records: Record, trials: int = 1, **lock: Any) -> BatchRecords:
    expected = tuple(an_expected_trial(index) for index in range(trials))
    return BatchRecords(a_lock(trials=trials, **lock), expected, records)


def failed(**changes: Any) -> Record:
    return a_record(
        **{"status": Status.FAILED, "reason": "exit-1", "metrics": {}, "uid": "failed", **changes}
    )


def pruned(**changes: Any) -> Record:
    return diverged(**{"status": Status.PRUNED, "reason": "median", "uid": "pruned", **changes})


def diverged(**changes: Any) -> Record:
    return failed(
        **{"status": Status.DIVERGED, "reason": "bad-hyperparameters", "uid": "diverged", **changes}
    )


END = "2026-01-01T00:00:"
HOLLOW = a_record(metrics={"Test_Accuracy": 0.9}, uid="hollow", finished="2025-01-01T00:00:00Z")


def at(second: str) -> Record:
    return a_record(uid=second, finished=END + second)


def test_every_row_has_an_outcome_with_its_values_and_the_locks_program() -> None:
    judged = evaluate(a_batch(a_record(1), trials=3))

    assert [outcome.status for outcome in judged.outcomes] == [Status.MISSING, Status.OK, Status.MISSING]
    assert [outcome.index for outcome in judged.outcomes] == [0, 1, 2]
    result = judged.outcomes[1]
    assert result.assignment == {"learning_rate": 0.1, "batch_size": 64}
    assert (result.program, result.code, result.data) == (a_program().digest, TREE, DATA)
    assert (result.attempts, result.reason, result.record) == (1, None, a_record(1))
    missing = judged.outcomes[0]
    assert (missing.attempts, missing.reason, missing.record) == (0, None, None)


@pytest.mark.parametrize(
    ("records", "pool", "known"),
    [
        pytest.param((a_record(ran=IMAGE),), "a100", "a100", id="an image"),
        pytest.param((failed(ran=IMAGE),), "a100", "a100", id="an image that failed"),
        pytest.param((a_record(ran=IMAGE),), None, None, id="no pool"),
        pytest.param((a_record(ran=RAN_PROCESS),), "a100", None, id="a process"),
        pytest.param((failed(ran=RAN_NOTHING),), "a100", None, id="a container that never began"),
        pytest.param((), "a100", None, id="no record"),
    ],
)
def test_the_pool_of_a_trial(records: tuple[Record, ...], pool: str | None, known: str | None) -> None:
    (outcome,) = evaluate(a_batch(*records, pool=pool)).outcomes

    assert outcome.node_class == known


@pytest.mark.parametrize(
    ("records", "counts"),
    [
        pytest.param((failed(), a_record()), a_record(), id="ok-before-failed"),
        pytest.param((diverged(), a_record()), a_record(), id="ok-before-diverged"),
        pytest.param((failed(), diverged()), diverged(), id="diverged-before-failed"),
        pytest.param((diverged(), pruned()), pruned(), id="pruned-before-diverged"),
        pytest.param((pruned(), a_record()), a_record(), id="ok-before-pruned"),
        pytest.param((at("04Z"), at("03Z")), at("03Z"), id="the-earliest-of-two-ok"),
        pytest.param((at("03.5Z"), at("03Z")), at("03Z"), id="a-second-before-its-fractions"),
        pytest.param((HOLLOW, a_record()), a_record(), id="ok-before-ok-without-its-metric"),
        pytest.param((failed(uid="b", finished=END + "09Z"), failed()), failed(), id="earliest-failed"),
    ],
)
def test_of_several_attempts_one_counts(records: tuple[Record, ...], counts: Record) -> None:
    for order in itertools.permutations(records):
        outcome = evaluate(a_batch(*order)).outcomes[0]

        assert outcome.record == counts
        assert outcome.attempts == len(records)


RECORDS = st.lists(
    st.builds(
        lambda index, status, second, uid: a_record(
            index,
            status=status,
            reason=None if status is Status.OK else "exit-1",
            finished=f"2026-01-01T00:00:0{second}Z",
            uid=uid,
        ),
        st.integers(0, 3),
        st.sampled_from([Status.OK, Status.DIVERGED, Status.FAILED]),
        st.integers(0, 3),
        st.sampled_from("abc"),
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(records=RECORDS, data=st.data())
def test_order_and_duplicates_never_matter(records: list[Record], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(records))
    repeated = data.draw(st.lists(st.sampled_from(records), max_size=4)) if records else []

    assert evaluate(a_batch(*shuffled, *repeated, trials=3)) == evaluate(a_batch(*records, trials=3))


@settings(max_examples=80, deadline=None)
@given(records=RECORDS)
def test_a_record_more_can_only_improve_a_status(records: list[Record]) -> None:
    order = [Status.OK, Status.DIVERGED, Status.FAILED, Status.MISSING]
    ranks = []
    for number in range(len(records) + 1):
        judged = evaluate(a_batch(*records[:number], trials=3))
        ranks.append([order.index(outcome.status) for outcome in judged.outcomes])

    for before, after in itertools.pairwise(ranks):
        assert all(new <= old for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("timeout", Status.TIMEOUT),
        ("oom", Status.OOM),
        ("evicted", Status.EVICTED),
        ("preempted", Status.EVICTED),
        ("node-lost", Status.EVICTED),
        ("exit-1", Status.FAILED),
        (None, Status.FAILED),
    ],
)
def test_a_failure_is_called_by_what_ended_it(reason: str | None, status: Status) -> None:
    (outcome,) = evaluate(a_batch(failed(reason=reason))).outcomes

    assert (outcome.status, outcome.reason) == (status, reason)
    assert outcome.record is not None
    assert outcome.record.status is Status.FAILED


def test_a_trial_whose_files_cannot_be_used_has_a_record_of_the_collectors() -> None:
    batch = a_batch(a_record(1), a_record(3, row="0" * 64), trials=5, retries=2)

    made = tuple(substitute_records(batch, {0: ("truncated", "foreign"), 1: ("empty",), 2: ("foreign",) * 9}))

    assert [(record.index, record.reason, record.attempt) for record in made] == [
        (0, "corrupt", 2),
        (2, "foreign", 3),
        (3, "foreign", 1),
    ]
    outcomes = evaluate(replace(batch, records=(*batch.records, *made))).outcomes
    assert [(outcome.status, outcome.reason, outcome.record) for outcome in outcomes] == [
        (Status.CORRUPT, "foreign truncated", None),
        (Status.OK, None, a_record(1)),
        (Status.FOREIGN, "foreign", None),
        (Status.FOREIGN, "foreign", None),
        (Status.MISSING, None, None),
    ]


def test_a_substitute_is_read_back_from_git_and_gives_way_to_a_record() -> None:
    (made,) = substitute_records(a_batch(), {0: ("wrong-type:metrics",)})

    assert read(to_line(made).encode()) == made
    assert evaluate(a_batch(made)).outcomes[0].reason == "wrong-type:metrics"
    for real in (a_record(), failed()):
        assert evaluate(a_batch(made, real)).outcomes[0].record == real


def test_a_trial_that_calls_itself_corrupt_chooses_no_words_of_the_summary() -> None:
    forged = failed(reason="corrupt", details={"passed_over": {"=cmd|'/C calc'!A0": 1, "empty\n": 1}})

    (outcome,) = evaluate(a_batch(forged)).outcomes

    assert (outcome.status, outcome.reason) == (Status.CORRUPT, "corrupt")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"row": "0" * 64}, id="another-row-digest"),
        pytest.param({"trial": "tffffffffff0"}, id="another-trial"),
        pytest.param({"batch": "mnist-grid-b2-00000000"}, id="another-batch"),
        pytest.param({"index": 1}, id="another-row-of-the-table"),
        pytest.param({"index": 7}, id="beyond-the-table"),
        pytest.param({"code": "beef" * 10}, id="other-code"),
        pytest.param({"data": None}, id="other-data"),
    ],
)
def test_a_foreign_record_is_counted_and_never_used(changes: dict[str, Any]) -> None:
    foreign = replace(a_record(0), **changes)

    judged = evaluate(a_batch(foreign, foreign, trials=2))

    assert judged.foreign == 1
    assert {outcome.status for outcome in judged.outcomes} == {Status.MISSING}
    assert judged.attempts == ((), ())


def test_a_program_without_data_has_records_without() -> None:
    judged = evaluate(a_batch(a_record(data=None), program=a_program(data=None)))

    assert judged.foreign == 0
    assert judged.outcomes[0].data is None


def test_ok_without_the_metric_is_a_failure() -> None:
    (outcome,) = evaluate(a_batch(HOLLOW)).outcomes

    assert (outcome.status, outcome.reason) == (Status.FAILED, "metric-missing")
    assert outcome.metric("test_accuracy") is None


DIVERGED, MISSING = ("diverged", "metric-not-finite"), ("failed", "metric-missing")
SECOND, THIRD = Metric("latency", Goal.MINIMIZE), Metric("size", Goal.MINIMIZE)


@pytest.mark.parametrize(
    ("reported", "others", "expected"),
    [
        ({}, (), ("ok", None, None)),
        ({"latency": 1.0}, (SECOND,), ("ok", None, None)),
        ({"test_accuracy": None}, (), (*DIVERGED, "no finite number: test_accuracy")),
        ({"latencey": 1.0}, (SECOND,), (*MISSING, "no number latency; its numbers: latencey, test_accuracy")),
        ({"latency": None}, (SECOND,), (*DIVERGED, "no finite number: latency")),
        (
            {"latency": 1.0},
            (SECOND, THIRD),
            (*MISSING, "no number size; its numbers: latency, test_accuracy"),
        ),
        ({"latency": None}, (SECOND, THIRD), (*MISSING, "no number size; its numbers: test_accuracy")),
    ],
)
def test_a_trial_is_ok_only_with_every_metric(
    reported: dict[str, float | None], others: tuple[Metric, ...], expected: tuple[str | None, ...]
) -> None:
    record = a_record(metrics={"test_accuracy": 0.9, **reported})

    outcome = evaluate(a_batch(record, other_metrics=others)).outcomes[0]

    assert (outcome.status, outcome.reason, outcome.error) == expected


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_metric_that_the_launcher_wrote_as_text_is_not_finite(text: str) -> None:
    record = a_record(metrics={"test_accuracy": 0.9}, details={"latency": text, "device": ["cpu"]})

    outcome = evaluate(a_batch(record, other_metrics=(SECOND,))).outcomes[0]

    assert (outcome.status, outcome.reason) == (Status.DIVERGED, "metric-not-finite")


def test_attempts_are_listed_in_the_order_of_time() -> None:
    first, second = failed(attempt=1, uid="z"), a_record(attempt=2, uid="a")

    judged = evaluate(a_batch(second, first))

    assert [attempt.record for attempt in judged.attempts[0]] == [first, second]


@pytest.mark.parametrize(
    ("numbers", "counted"),
    [
        pytest.param((2,), 2, id="the first left nothing"),
        pytest.param((1, 1), 2, id="nobody counted the first"),
        pytest.param((9999,), 3, id="more than are allowed"),
    ],
)
def test_later_attempts_count_those_without_a_record(numbers: tuple[int, ...], counted: int) -> None:
    records = [failed(attempt=number, uid=f"uid-{place}") for place, number in enumerate(numbers)]

    (outcome,) = evaluate(a_batch(*records, retries=2)).outcomes

    assert outcome.attempts == counted


@pytest.mark.parametrize(
    ("records", "status", "reason"),
    [
        ((), Status.CANCELLED, "batch-cancelled"),
        ((failed(reason="signal-15"),), Status.CANCELLED, "batch-cancelled"),
        (
            (failed(), failed(reason="signal-15", uid="later", attempt=2, started="2026-01-01T00:01:00Z")),
            Status.CANCELLED,
            "batch-cancelled",
        ),
        ((failed(),), Status.FAILED, "exit-1"),
        ((diverged(),), Status.DIVERGED, "bad-hyperparameters"),
        ((a_record(), failed(reason="signal-15")), Status.OK, None),
    ],
)
def test_cancelled_batches(records: tuple[Record, ...], status: Status, reason: str | None) -> None:
    (outcome,) = evaluate(replace(a_batch(*records), is_cancelled=True)).outcomes
    (running,) = evaluate(a_batch(*records)).outcomes

    assert (outcome.status, outcome.reason) == (status, reason)
    assert running.status is not Status.CANCELLED
