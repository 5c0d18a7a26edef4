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
    trials = []
    for outcome in summary.outcomes:
        if outcome.record is not None and outcome.status is Status.OK and summary.is_eligible(outcome):
            values = [outcome.record.metrics.get(metric.name) for metric in metrics(summary)]
            finite = tuple(value for value in values if value is not None)
            trials += [(outcome, finite)] if len(finite) == len(values) else []
    return trials


def pareto_front(summary: Summary) -> list[TrialMetrics]:
    """Return the trials of the front, best in the first metric first; empty with one metric."""
    objectives = metrics(summary)
    if len(objectives) == 1:
        return []
    known = sorted(trials_with_all_metrics(summary), key=lambda each: each[0].trial)
    return [known[place] for place in pareto_indices([values for _, values in known], objectives)]
