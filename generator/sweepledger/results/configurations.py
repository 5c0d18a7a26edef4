"""The trials of one configuration together: mean, deviation and interval over its replicates."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.results import inference
from sweepledger.results.inference import Interval
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.values import canonical_json


@dataclass(frozen=True, slots=True)
class ConfigurationResults:
    """A configuration and its trials under one program."""

    assignment: Mapping[str, Any]
    in_spec: bool | None
    """Whether the current spec contains any of its trials; None if that is unknown."""
    trials: tuple[TrialResult, ...]
    """By replicate. If the spec contains some of them, only these."""
    values: tuple[float, ...]
    """Objectives of its ok trials."""
    mean: float | None
    deviation: float | None
    """Standard deviation of a sample; None for fewer than two values."""
    interval: Interval | None
    """95 % interval of the mean; None for fewer than two values."""

    @property
    def count(self) -> int:
        """Number of ok trials."""
        return len(self.values)

    @property
    def is_ranked(self) -> bool:
        """Whether it has a result, and the current spec, as far as it is known, contains it."""
        return self.mean is not None and self.in_spec is not False

    @property
    def trial(self) -> TrialResult:
        """The trial that represents the configuration: the first ok trial, or the first if none is."""
        return min(self.trials, key=lambda one: (one.status is not Status.OK, one.replicate))


def group_configurations(outcomes: Iterable[TrialResult], metric: Metric) -> tuple[ConfigurationResults, ...]:
    """Return the configurations of each program, best mean first.

    Ties go to the smaller trial id. Those without a result follow; those that the spec does not contain are last.
    """
    groups: dict[tuple[str, str], list[TrialResult]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.program, canonical_json(outcome.assignment)), []).append(outcome)
    configurations = [_configuration_results(group, metric.name) for group in groups.values()]
    return tuple(
        sorted(
            configurations,
            key=lambda each: (
                each.in_spec is False,
                each.mean is None,
                metric.sort_key(each.mean or 0.0),
                each.trial.trial,
            ),
        )
    )


def _configuration_results(group: Iterable[TrialResult], metric: str) -> ConfigurationResults:
    trials = sorted(group, key=lambda one: one.replicate)
    wanted = [one for one in trials if one.in_spec is not False]
    known = wanted or trials
    values = tuple(value for one in known if (value := one.metric(metric)) is not None)
    return ConfigurationResults(
        assignment=known[0].assignment,
        in_spec=known[0].in_spec,
        trials=tuple(known),
        values=values,
        mean=inference.mean(values) if values else None,
        deviation=inference.deviation(values),
        interval=inference.interval(values),
    )
