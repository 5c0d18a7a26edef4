"""Trials of one assignment taken together: what its replicates say of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from generator.results import inference
from generator.results.inference import Interval
from generator.structs.record import Outcome, Status
from generator.structs.sweep import Goal, Metric
from generator.structs.values import canonical_json


@dataclass(frozen=True, slots=True)
class Replicated:
    """An assignment and its trials under one program."""

    assignment: Mapping[str, Any]
    in_spec: bool | None
    """Whether today's spec asks for any of its trials; None where nobody can say."""
    trials: tuple[Outcome, ...]
    """By replicate. Where the spec asks for some of them, these only."""
    values: tuple[float, ...]
    """Objectives of those that are ok."""
    mean: float | None
    deviation: float | None
    """Of a sample; None of fewer than two values."""
    interval: Interval | None
    """Of the mean, 95 %; None of fewer than two values."""

    @property
    def count(self) -> int:
        """How many trials are ok."""
        return len(self.values)

    @property
    def trial(self) -> Outcome:
        """Give the trial that stands for the assignment: of those that are ok the first, if any is."""
        return min(self.trials, key=lambda one: (one.status is not Status.OK, one.replicate))


def taken_together(outcomes: Iterable[Outcome], metric: Metric) -> tuple[Replicated, ...]:
    """Put the trials of each program and assignment together, best mean first.

    Ties go to the smaller trial id. What the spec does not ask for comes last, behind what has no result.
    """
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.program, canonical_json(outcome.assignment)), []).append(outcome)
    sign = -1 if metric.goal is Goal.MAXIMIZE else 1
    found = [_replicated(group, metric.name) for group in groups.values()]
    return tuple(
        sorted(
            found,
            key=lambda one: (
                one.in_spec is False,
                one.mean is None,
                sign * (one.mean or 0.0),
                one.trial.trial,
            ),
        )
    )


def _replicated(group: Iterable[Outcome], metric: str) -> Replicated:
    trials = sorted(group, key=lambda one: one.replicate)
    wanted = [one for one in trials if one.in_spec is not False]
    known = wanted or trials
    values = tuple(value for one in known if (value := one.metric(metric)) is not None)
    return Replicated(
        assignment=known[0].assignment,
        in_spec=known[0].in_spec,
        trials=tuple(known),
        values=values,
        mean=inference.mean(values) if values else None,
        deviation=inference.deviation(values),
        interval=inference.interval(values),
    )
