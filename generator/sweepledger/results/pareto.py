"""The Pareto front of a sweep with several metrics."""

from sweepledger.results.summary import Summary
from sweepledger.structs.metric import Metric, pareto_indices
from sweepledger.structs.record import Status, TrialResult

TrialMetrics = tuple[TrialResult, tuple[float, ...]]
"""A trial with its value of each metric."""


def metrics(summary: Summary) -> tuple[Metric, ...]:
    """Return the metrics of the newest batch, the objective first."""
    return (summary.metric, *summary.lock.other_metrics)


def trials_with_all_metrics(summary: Summary) -> list[TrialMetrics]:
    """Return the eligible trials that reported every metric."""
    found = []
    for one in summary.outcomes:
        if one.record is not None and one.status is Status.OK and summary.is_eligible(one):
            values = [one.record.metrics.get(metric.name) for metric in metrics(summary)]
            finite = tuple(value for value in values if value is not None)
            found += [(one, finite)] if len(finite) == len(values) else []
    return found


def pareto_front(summary: Summary) -> list[TrialMetrics]:
    """Return the trials of the front, best in the first metric first; empty with one metric."""
    asked = metrics(summary)
    if len(asked) == 1:
        return []
    known = sorted(trials_with_all_metrics(summary), key=lambda each: each[0].trial)
    return [known[place] for place in pareto_indices([values for _, values in known], asked)]
