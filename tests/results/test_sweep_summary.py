"""Counts, best trial and top of a sweep (catalogue R9, R11)."""

from dataclasses import replace

import pytest

from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Status
from tests.builders import a_grid, a_record
from tests.results.test_best_trial import LATER, of, scores


def test_an_extension_of_the_same_program_competes_with_what_was() -> None:
    extension = a_grid({"number": [7]}, lambda _: 0.6, **LATER)
    expected = tuple(replace(row, trial="t77777777777") for row in extension.expected)
    records = tuple(replace(each, trial="t77777777777") for each in extension.records)

    summary = of(scores(0.99), replace(extension, expected=expected, records=records))

    assert summary.best == 0.99
    assert len(summary.outcomes) == 2


def test_a_retried_trial_has_one_row_with_the_better_outcome() -> None:
    missing, retried = scores(0.5, None), scores(0.5, 0.8, **LATER)
    retry = replace(retried, expected=retried.expected[1:], records=retried.records[1:])

    summary = of(missing, retry)

    assert [(outcome.index, outcome.status, outcome.batch) for outcome in summary.outcomes] == [
        (0, Status.OK, missing.lock.name),
        (1, Status.OK, retry.lock.name),
    ]


def test_a_summary_is_of_one_sweep() -> None:
    with pytest.raises(ValueError, match="one sweep"):
        of()
    with pytest.raises(ValueError, match="one sweep"):
        of(scores(0.5), scores(0.5, sweep="other", **LATER))


def test_the_newest_lock_names_metric_and_program() -> None:
    newer = a_grid({"x": [1]}, lambda _: 0.1, metric=Metric("loss", Goal.MINIMIZE), **LATER)
    older = replace(scores(0.5), records=(a_record(metrics={"test_accuracy": 0.5, "loss": 0.05}),))

    summary = of(older, newer)

    assert summary.metric.name == "loss"
    assert summary.best == 0.05
