"""The front of a search by several metrics: the trials that no other beats in all of them."""

from generator.results.summary import Summary
from generator.structs.front import unbeaten
from generator.structs.record import Outcome, Status
from generator.structs.sweep import Metric

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
    known = sorted(valued(summary), key=lambda each: each[0].trial)
    return [known[place] for place in unbeaten([values for _, values in known], asked)]
