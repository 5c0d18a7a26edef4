"""The front of a search by several metrics: the trials that no other beats in all of them."""

from collections.abc import Sequence

from generator.results.summary import Summary
from generator.structs.record import Outcome, Status
from generator.structs.sweep import Goal, Metric

Valued = tuple[Outcome, tuple[float, ...]]
"""A trial with its value of each metric."""


def metrics(summary: Summary) -> tuple[Metric, ...]:
    """List the metrics that the newest batch was asked by, the one that decides first."""
    return (summary.metric, *summary.lock.other_metrics)


def valued(summary: Summary) -> list[Valued]:
    """List the trials that may win and reported every metric."""
    found = []
    for one in summary.outcomes:
        if one.record is not None and one.status is Status.OK and summary.may_win(one):
            values = [one.record.metrics.get(metric.name) for metric in metrics(summary)]
            finite = tuple(value for value in values if value is not None)
            found += [(one, finite)] if len(finite) == len(values) else []
    return found


def front(summary: Summary) -> list[Valued]:
    """List the trials of the front, best in the first metric first; none where there is one metric."""
    asked = metrics(summary)
    if len(asked) == 1:
        return []
    known = [(_turned(values, asked), one, values) for one, values in valued(summary)]
    known.sort(key=lambda each: (*(-value for value in each[0]), each[1].trial))
    kept: list[tuple[tuple[float, ...], Valued]] = []
    for turned, one, values in known:
        # In this order nothing that comes later can beat what came before.
        if not any(_beats(other, turned) for other, _ in kept):
            kept.append((turned, (one, values)))
    return [each for _, each in kept]


def _turned(values: Sequence[float], asked: Sequence[Metric]) -> tuple[float, ...]:
    """Turn values so that larger is better."""
    return tuple(
        value if metric.goal is Goal.MAXIMIZE else -value for value, metric in zip(values, asked, strict=True)
    )


def _beats(left: Sequence[float], right: Sequence[float]) -> bool:
    return left != right and all(one >= other for one, other in zip(left, right, strict=True))
