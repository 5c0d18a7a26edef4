"""The trials of each configuration, the verdict on the best configuration, and warnings about it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sweepledger.results import inference
from sweepledger.results.display import count_trials, format_number, one_line
from sweepledger.results.inference import Interval
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import RAN_PROCESS, Status, TrialResult
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
        """Whether it has a result and the current spec, if known, contains it."""
        return self.mean is not None and self.in_spec is not False

    @property
    def trial(self) -> TrialResult:
        """The trial that represents the configuration: the first ok trial, or the first if none is."""
        return min(self.trials, key=lambda one: (one.status is not Status.OK, one.replicate))


def group_configurations(outcomes: Iterable[TrialResult], metric: Metric) -> tuple[ConfigurationResults, ...]:
    """Return the configurations of each program, best mean first.

    Ties go to the smaller trial id. Configurations without a result follow; those outside the spec are last.
    """
    groups: dict[tuple[str, str], list[TrialResult]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.program, canonical_json(outcome.assignment)), []).append(outcome)
    configurations = [_configuration_results(group, metric.name) for group in groups.values()]

    def order(each: ConfigurationResults) -> tuple[bool, bool, float, str]:
        return each.in_spec is False, each.mean is None, metric.sort_key(each.mean or 0.0), each.trial.trial

    return tuple(sorted(configurations, key=order))


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


class Verdict(StrEnum):
    """Why there is a best trial, or none."""

    BEST = "best"
    """The best trial, without replicates: its effect cannot be separated from seed noise."""
    CLEAR = "clear"
    """With replicates: the interval of the best mean does not overlap that of the second best."""
    ALONE = "alone"
    """With replicates: no other configuration has a result."""
    OVERLAP = "overlap"
    """No best trial: the intervals of the best two means overlap."""
    TOO_FEW = "too-few"
    """No best trial: one of the best two configurations has a single result, and so no interval."""
    NOTHING_OK = "nothing-ok"
    """No best trial: no eligible trial has a result."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """All configurations of a sweep, by whether they are eligible; each part best first."""

    ranked: tuple[ConfigurationResults, ...]
    """Of the ranked program, in the current spec, with a result."""
    outside: tuple[ConfigurationResults, ...]
    """Of the ranked program, not in the current spec."""
    others: tuple[ConfigurationResults, ...]
    """Of other programs."""
    metric: Metric
    trials: int
    """Number of eligible trials, with or without a result."""
    has_replicates: bool
    """Whether any eligible trial is a repetition."""


def decide(field: Ranking) -> Verdict:
    """Return the verdict over the ranked configurations."""
    ranked = field.ranked
    if not ranked:
        return Verdict.NOTHING_OK
    if not field.has_replicates:
        return Verdict.BEST
    if len(ranked) == 1:
        return Verdict.ALONE
    first, second = (one.interval for one in ranked[:2])
    if first is None or second is None:
        return Verdict.TOO_FEW
    # Whichever end is the worst of the first, it must be better than the best of the second.
    better = field.metric.better
    is_clear = better(first.low, second.high) and better(first.high, second.low)
    return Verdict.CLEAR if is_clear else Verdict.OVERLAP


def verdict_reason(verdict: Verdict, field: Ranking) -> str:
    """Return the reason for a verdict, with the numbers behind it."""
    name, ranked = one_line(field.metric.name), field.ranked
    trials = sum(one.count for one in ranked)
    both = " and ".join(
        f"{format_number(one.interval.low)} to {format_number(one.interval.high)} over {one.count}"
        + " trials" * (one is ranked[0])
        for one in ranked[:2]
        if one.interval is not None
    )
    match verdict:
        case Verdict.NOTHING_OK:
            return f"no trial of the ranked program ended ok with a finite {name} (0 of {field.trials})"
        case Verdict.BEST:
            return f"the best {name} of {count_trials(trials)}, one per configuration"
        case Verdict.ALONE:
            return f"no other configuration has a result for {name}"
        case Verdict.CLEAR:
            return f"the 95 % intervals of the best two means of {name} do not overlap: {both}"
        case Verdict.OVERLAP:
            return f"the 95 % intervals of the best two means of {name} overlap: {both}"
        case Verdict.TOO_FEW:
            counts = " and ".join(str(one.count) for one in ranked[:2])
            return f"the best two configurations have {counts} results, and an interval needs two of each"


def ranking_warnings(field: Ranking, outcomes: Iterable[TrialResult]) -> Iterator[str]:
    """Yield warnings about misleading rankings: better ineligible trials, mixed engines, unusable records."""
    listed = tuple(outcomes)
    if any(one.in_spec is None for one in listed):
        yield "the current spec cannot be read or expanded, so trials that it no longer contains may be ranked"
    yield from _better(field, field.outside, "the current spec does not contain it")
    yield from _better(field, field.others, "it ran another program")
    places = Counter(
        one.record.ran == RAN_PROCESS
        for each in field.ranked
        for one in each.trials
        if one.record is not None and one.status is Status.OK
    )
    if places[True] and places[False]:
        yield (
            f"{places[True]} of the ranked trials ran as processes of `sweep cluster local` and {places[False]} in "
            "containers, which alone can make results differ"
        )
    for status, kind in ((Status.CORRUPT, "that cannot be read"), (Status.FOREIGN, "of other trials")):
        count = sum(outcome.status is status for outcome in listed)
        if count:
            yield f"{count_trials(count)} left only records {kind}"


def _better(field: Ranking, others: Sequence[ConfigurationResults], why: str) -> Iterator[str]:
    """Yield a warning if one of `others`, which are not eligible, is better than all ranked trials."""
    known = [
        (field.metric.sort_key(other.mean), other.trial.trial, other.mean)
        for other in others
        if other.mean is not None
    ]
    if not known:
        return
    _, trial, value = min(known)
    best = field.ranked[0].mean if field.ranked else None
    if best is None or field.metric.better(value, best):
        number = f"{one_line(field.metric.name)} {format_number(value)}"
        yield f"trial {trial} ({number}) is better than all ranked trials, but {why}"
