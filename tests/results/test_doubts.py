"""Numbers that look like results and are none: equal ones of other values, metrics that nobody reports, folds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from msgspec import structs

from sweepledger.results.importance import importance
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.readme import readme
from sweepledger.results.summary import Summary, summarise
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import CurvePoint, Status
from tests.builders import a_lock, a_program, a_record, an_expected_trial

Metrics = Mapping[str, float | None]
LOSS = Metric("loss", Goal.MINIMIZE)
ALL, PAIR = "does the program use its arguments?", "have other values, but agree to the last digit in"


def a_batch(
    *reported: Metrics,
    curves: Sequence[Sequence[CurvePoint]] = (),
    of: str = "loss",
    same: int = 0,
    name: str = "mnist-grid-b1-3f9a1c2e",
    number: int = 1,
    first: int = 0,
    **lock: object,
) -> BatchRecords:
    """A batch of trials with these metrics; the first `same` have one configuration, as replicates do."""
    held = a_lock(**{"metric": LOSS, "trials": len(reported), "name": name, "number": number, **lock})
    expected, records = [], []
    for index, metrics in enumerate(reported):
        values = MappingProxyType({"lr": 0.0 if index < same else float(first + index)})
        replicate = index if index < same else 0
        trial = f"t{first + index:011x}"
        expected.append(an_expected_trial(index, trial=trial, assignment=values, replicate=replicate))
        curve = curves[index] if index < len(curves) else ()
        record = a_record(
            index,
            trial=trial,
            batch=name,
            metrics=MappingProxyType(dict(metrics)),
            curves={of: curve} if curve else {},
        )
        records.append(replace(record, code=held.program.code.tree))
    return BatchRecords(held, tuple(expected), tuple(records))


def of(*batches: BatchRecords) -> Summary:
    return summarise(batches, description="")


def texts(*batches: BatchRecords) -> list[str]:
    return [doubt.text for doubt in of(*batches).doubts]


FALLING = ((1, 0.9), (2, 0.55), (3, 0.41))
ANY = tuple({"loss": 0.1 * number} for number in range(1, 5))


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(a_batch({"loss": 0.445043}, {"loss": 0.445043}), id="two trials, one metric"),
        pytest.param(a_batch(*[{"loss": 0.3}] * 5, same=2), id="replicates among them"),
        pytest.param(
            a_batch(*({"loss": 0.3, "time": 1.5 + number} for number in range(4))), id="only the time differs"
        ),
    ],
)
def test_one_number_whatever_the_values_is_no_result(batch: BatchRecords) -> None:
    (text,) = texts(batch)

    assert text.startswith("all ")
    assert text.endswith(ALL)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(a_batch(*[{"loss": 0.3}] * 3, same=3), id="replicates of one configuration"),
        pytest.param(a_batch({"loss": 0.3}), id="one trial"),
        pytest.param(
            a_batch(*({"loss": 0.1 * n, "epochs": 5.0, "rows": 70.5, "size": 3.5} for n in range(1, 5))),
            id="numbers that no trial changes",
        ),
        pytest.param(
            a_batch({"loss": 0.3, "acc": 0.97}, {"loss": 0.3, "acc": 0.97}, {"loss": 0.4, "acc": 0.9}),
            id="two metrics, by chance",
        ),
        pytest.param(
            a_batch(*[{"loss": 2.3, "acc": 0.1, "accuracy": 0.1, "top1": 0.1}] * 2, *ANY[:1]),
            id="one number under three names",
        ),
        pytest.param(
            a_batch(*ANY, curves=[tuple((n, 2.3) for n in (1, 2, 3))] * 2), id="a curve without change"
        ),
        pytest.param(a_batch(*ANY, curves=[FALLING] * 2, of="lr"), id="the curve of no metric of the sweep"),
        pytest.param(a_batch({"loss": None}, {"loss": None}), id="nothing finite"),
    ],
)
def test_what_is_equal_by_right_or_by_chance_is_not_doubted(batch: BatchRecords) -> None:
    assert texts(batch) == []


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        pytest.param(
            a_batch(*[{"loss": 0.31, "acc": 0.87, "f1": 0.861, "time": t} for t in (1.5, 2.5)]),
            "acc, f1, loss",
            id="three metrics of two trials",
        ),
        pytest.param(
            a_batch(
                *[{"loss": loss, "acc": 0.87, "f1": 0.861, "auc": 0.9} for loss in (0.3, 0.4)],
                {"loss": 0.5, "acc": 0.7, "f1": 0.71, "auc": 0.8},
            ),
            "acc, auc, f1",
            id="three metrics without the objective",
        ),
        pytest.param(a_batch(*ANY, curves=[FALLING, FALLING]), "a curve of 3 points", id="a curve"),
        pytest.param(
            a_batch(*ANY, curves=[FALLING, FALLING, FALLING], same=2),
            "a curve of 3 points",
            id="with replicates",
        ),
    ],
)
def test_two_trials_that_agree_too_well_are_named(batch: BatchRecords, what: str) -> None:
    (text,) = texts(batch)

    assert f" {PAIR} {what}:" in text


def test_an_earlier_program_is_no_news() -> None:
    equal = a_batch(*[{"loss": 0.3}] * 2, program=a_program(command=("python", "old.py")))
    mended = a_batch(*ANY, name="mnist-grid-b2-00000000", number=2)

    assert texts(equal, mended) == []


def test_a_trial_that_continues_another_has_its_numbers_by_right() -> None:
    batch = a_batch(*ANY, curves=[FALLING, FALLING])
    parents = {1: batch.expected[0].trial}

    assert texts(replace(batch, lock=structs.replace(batch.lock, parents=parents))) == []


SEVERAL = (Metric("latencey", Goal.MINIMIZE),)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param(
            a_batch(*({"loss": n, "latency": n} for n in (0.5, 0.6)), other_metrics=SEVERAL),
            ["no trial reports latencey; their numbers: latency, loss"],
            id="the second of two",
        ),
        pytest.param(
            a_batch({}, {}, other_metrics=SEVERAL),
            ["no trial reports loss; their numbers: none", "no trial reports latencey; their numbers: none"],
            id="none",
        ),
        pytest.param(
            a_batch({"loss": 0.5, "latencey": None}, {"loss": 0.4, "latencey": None}, other_metrics=SEVERAL),
            [],
            id="reported, and not finite",
        ),
        pytest.param(
            a_batch({"loss": 0.5, "latencey": 0.1}, {"loss": 0.4}, other_metrics=SEVERAL), [], id="one has it"
        ),
    ],
)
def test_a_metric_that_nobody_reports_is_named(batch: BatchRecords, expected: list[str]) -> None:
    assert texts(batch) == expected


def test_of_trials_that_crashed_no_metric_is_expected() -> None:
    batch = a_batch({}, {})
    records = tuple(replace(one, status=Status.FAILED, reason="exit-1") for one in batch.records)

    assert texts(replace(batch, records=records)) == []


@pytest.mark.parametrize(
    ("points", "is_doubted"),
    [
        pytest.param(((1, 0.9), (2, 0.8), (1, 0.7), (2, 0.6)), True, id="folds"),
        pytest.param(((0, 0.9), (0, 0.8)), True, id="the same step twice"),
        pytest.param(((5, 0.9), (10, None), (3, 0.8)), True, id="a later training"),
        pytest.param(((-2, 0.9), (-1, 0.8), (0, 0.7)), False, id="growing below 0"),
    ],
)
def test_steps_that_begin_again_are_reported(points: Sequence[CurvePoint], *, is_doubted: bool) -> None:
    doubted = texts(a_batch(*ANY, curves=[points]))
    beside = texts(a_batch(*ANY, curves=[points], of="lr"))

    assert [text.startswith("1 trial reports steps again") for text in doubted] == [True] * is_doubted
    assert beside == []


def test_the_report_says_it_above_its_numbers() -> None:
    summary = of(a_batch(*[{"loss": 0.25}] * 3))

    text = readme(summary, importance(summary))

    assert "Before you rely on this result:\n\n- all 3 trials of " in text
