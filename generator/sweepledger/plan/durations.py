"""Durations of trials, learned from recorded ones: a factor for each parameter that matters, and noise.

The model uses logarithms of seconds, because effects multiply: twice the epochs take twice the time at any batch size.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from statistics import fmean, pvariance, variance

from sweepledger.structs.record import Record
from sweepledger.structs.values import Value, identity, is_number

FITTING_PASSES = 10
"""Enough for overlapping effects to converge."""

MIN_RECORDS = 3
"""Recorded trials that a model requires."""
ENOUGH_RECORDS = 12
"""Recorded trials that are required to select parameters."""
MAX_EFFECTS = 3
MIN_EXPLAINED = 0.1
"""The share of the variance that a parameter must explain, after correction for its groups."""
STEADY_VARIANCE = 1e-4
"""Variance of the logarithms below which nothing is explained: durations differ by one percent."""

PRIOR_DRIFT = 0.1
"""Prior standard deviation between the mean logarithms of equal batches."""
PRIOR_BATCHES = 2
"""Weight of the prior, in batches."""
MIN_SECONDS = 1e-3
"""Shortest duration, because zero has no logarithm."""

MANY_VALUES = 8
"""If a parameter has more different numbers, neighbours share a group."""
GROUPS = 6
MIN_PER_GROUP = 2
"""Mean number of records per group; smaller groups would explain noise."""
SHRINKAGE = 0.1
"""Shrinks the means of small groups: adds this share of a record without an effect."""


@dataclass(frozen=True, slots=True)
class TimedTrial:
    """A finished trial."""

    batch: str
    configuration: Mapping[str, Value]
    seconds: float


@dataclass(frozen=True, slots=True)
class TimingHistory:
    """Durations in the recorded batches of one program."""

    finished: tuple[TimedTrial, ...] = ()
    failed: tuple[float, ...] = ()
    """Seconds of failed attempts."""
    overheads: tuple[float, ...] = ()
    """Mean seconds between two commands in a slot, one number per batch."""

    @property
    def failure_rate(self) -> float:
        """The share of attempts that fail."""
        attempts = len(self.finished) + len(self.failed)
        return len(self.failed) / attempts if attempts else 0.0


NO_HISTORY = TimingHistory()
"""For a program without recorded batches."""


def timing_history(
    batches: Sequence[tuple[str, Sequence[tuple[Record, Mapping[str, Value]]]]],
) -> TimingHistory:
    """Collect durations from batches: each has a name, and records with their configurations."""
    attempts = [(name, record, values) for name, entries in batches for record, values in entries]
    overheads = (slot_overhead([record for record, _ in entries]) for _, entries in batches)
    return TimingHistory(
        tuple(
            TimedTrial(name, values, record.seconds)
            for name, record, values in attempts
            if record.status.is_final
        ),
        tuple(record.seconds for _, record, _ in attempts if not record.status.is_final),
        tuple(overhead for overhead in overheads if overhead is not None),
    )


def slot_overhead(records: Sequence[Record]) -> float | None:
    """Estimate how long a slot is idle between two commands; None if no slot was used twice.

    A trial starts after another trial ends: if all slots are in use, the next start belongs to the first end.
    Records contain whole seconds, so only the mean is meaningful.
    """
    spans = sorted((_timestamp(record.started), _timestamp(record.finished)) for record in records)
    # Ends sort before starts of the same second.
    events = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    slots = max(1, *accumulate(change for _, change in events)) if events else 1
    ends = sorted(end for _, end in spans)
    gaps = [start - end for (start, _), end in zip(spans[slots:], ends, strict=False)]
    if not gaps:
        return None
    outside_command = fmean(
        _timestamp(record.finished) - _timestamp(record.started) - record.seconds for record in records
    )
    return max(0.0, fmean(gaps) + outside_command)


def _timestamp(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


@dataclass(frozen=True, slots=True)
class Grouping:
    """The recorded values of a parameter in groups."""

    parameter: str
    members: tuple[int, ...]
    """The group of each record."""
    centres: tuple[float, ...]
    """The mean of each group; empty if values are not numbers."""
    bounds: tuple[float, float]
    """Smallest and largest recorded value."""
    keys: Mapping[object, int]
    """The group of each value."""
    is_log: bool

    @property
    def count(self) -> int:
        """Number of groups."""
        return max(self.members) + 1

    def means(self, residuals: Sequence[float]) -> tuple[float, ...]:
        """Return the mean residual of each group, shrunk towards zero."""
        sums, counts = [0.0] * self.count, [0] * self.count
        for group, residual in zip(self.members, residuals, strict=True):
            sums[group] += residual
            counts[group] += 1
        return tuple(total / (count + SHRINKAGE) for total, count in zip(sums, counts, strict=True))


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a parameter on the logarithm of seconds."""

    grouping: Grouping
    means: tuple[float, ...]

    @property
    def parameter(self) -> str:
        """Name of the parameter."""
        return self.grouping.parameter

    def at(self, value: Value | None) -> float | None:
        """Return the effect of a value; None if it is outside the recorded values."""
        known = self.grouping.keys.get(identity(value))
        if known is not None:
            return self.means[known]
        low, high = self.grouping.bounds
        if not self.grouping.centres or not is_number(value) or not low <= value <= high:
            return None
        centres, x = self.grouping.centres, math.log(value) if self.grouping.is_log else value
        # Between the outermost centres and the recorded bounds, the line is extrapolated.
        after = min(max(1, bisect_right(centres, x)), len(centres) - 1)
        share = (x - centres[after - 1]) / (centres[after] - centres[after - 1])
        return self.means[after - 1] * (1 - share) + self.means[after] * share


def group_values(parameter: str, column: Sequence[Value | None]) -> Grouping | None:
    """Group recorded values; None if all are equal or nearly all are different."""
    distinct = {identity(value): value for value in column}
    if len(distinct) == 1:
        return None
    numbers = [float(value) for value in column if is_number(value)]
    if len(numbers) == len(column):
        return _group_numbers(parameter, numbers, len(distinct))
    if len(distinct) * MIN_PER_GROUP > len(column):
        return None
    keys = {key: group for group, key in enumerate(distinct)}
    members = tuple(keys[identity(value)] for value in column)
    return Grouping(parameter, members, (), (0.0, 0.0), keys, is_log=False)


def _group_numbers(parameter: str, numbers: Sequence[float], distinct: int) -> Grouping | None:
    is_log = min(numbers) > 0
    ordered = sorted(numbers)
    groups = min(GROUPS, len(numbers) // MIN_PER_GROUP) if distinct > MANY_VALUES else distinct
    if groups * MIN_PER_GROUP > len(numbers):
        return None
    if distinct > MANY_VALUES:
        cuts = sorted({ordered[len(ordered) * cut // groups] for cut in range(1, groups)})
    else:
        cuts = sorted(set(ordered))[1:]
    members = tuple(bisect_right(cuts, number) for number in numbers)
    grouped: list[list[float]] = [[] for _ in range(len(cuts) + 1)]
    for group, number in zip(members, numbers, strict=True):
        grouped[group].append(math.log(number) if is_log else number)
    if not all(grouped):
        return None
    keys = (
        {}
        if distinct > MANY_VALUES
        else {identity(value): bisect_right(cuts, value) for value in set(numbers)}
    )
    centres = tuple(map(fmean, grouped))
    return Grouping(parameter, members, centres, (ordered[0], ordered[-1]), keys, is_log=is_log)


def fit_effects(
    groupings: Sequence[Grouping], outcomes: Sequence[float]
) -> tuple[tuple[Effect, ...], list[float]]:
    """Fit additive effects by backfitting; return them and the residuals."""
    means = [(0.0,) * grouping.count for grouping in groupings]
    residuals = list(outcomes)
    for _ in range(FITTING_PASSES if len(groupings) > 1 else 1):
        for at, grouping in enumerate(groupings):
            residuals = [
                residual + means[at][group]
                for residual, group in zip(residuals, grouping.members, strict=True)
            ]
            means[at] = grouping.means(residuals)
            residuals = [
                residual - means[at][group]
                for residual, group in zip(residuals, grouping.members, strict=True)
            ]
    return tuple(map(Effect, groupings, means)), residuals


@dataclass(frozen=True, slots=True)
class DurationModel:
    """A model of the durations of new trials."""

    records: int
    centre: float
    """The mean logarithm of seconds."""
    effects: tuple[Effect, ...]
    """Effects of the selected parameters, the strongest first."""
    noise: tuple[float, ...]
    """Factors by which single trials differ within a batch, sorted."""
    drift: float
    """Standard deviation of the logarithm of the factor by which a whole new batch differs."""
    unproven: Mapping[str, tuple[Value | None, ...]]
    """Parameters whose effect is unknown, with their recorded values."""
    known: frozenset[str]
    """All recorded parameters."""

    def seconds(self, configuration: Mapping[str, Value]) -> float | None:
        """Return the mean duration of a configuration; None if no recorded trial is like it."""
        if self.unlike_parameter(configuration) is not None:
            return None
        effects = [effect.at(configuration.get(effect.parameter)) for effect in self.effects]
        return math.exp(self.centre + sum(effect for effect in effects if effect is not None))

    def unlike_parameter(self, configuration: Mapping[str, Value]) -> str | None:
        """Return a parameter whose value differs from those of all recorded configurations; None if there is none."""
        for effect in self.effects:
            if effect.at(configuration.get(effect.parameter)) is None:
                return effect.parameter
        for name, recorded in self.unproven.items():
            value, numbers = configuration.get(name), [each for each in recorded if is_number(each)]
            if is_number(value) and len(numbers) == len(recorded):
                is_like = min(numbers) <= value <= max(numbers)
            else:
                is_like = identity(value) in set(map(identity, recorded))
            if not is_like:
                return name
        return next((name for name in configuration if name not in self.known), None)


def fit_durations(history: TimingHistory) -> DurationModel | None:
    """Fit a model to recorded durations; None if there are too few."""
    if len(history.finished) < MIN_RECORDS:
        return None
    logs = [math.log(max(MIN_SECONDS, trial.seconds)) for trial in history.finished]
    centre = fmean(logs)
    names = sorted({name for trial in history.finished for name in trial.configuration})
    columns = {name: [trial.configuration.get(name) for trial in history.finished] for name in names}
    centred = [log - centre for log in logs]
    selected = _select_parameters(columns, centred) if len(logs) >= ENOUGH_RECORDS else []
    effects, _ = fit_effects(selected, centred)
    explained = {effect.parameter for effect in effects}
    unproven = {
        name: tuple({identity(value): value for value in column}.values())
        for name, column in columns.items()
        if name not in explained
        and (len(logs) < ENOUGH_RECORDS or len({identity(value) for value in column}) == 1)
    }
    residuals = [
        log - centre - sum(effect.at(trial.configuration.get(effect.parameter)) or 0 for effect in effects)
        for log, trial in zip(logs, history.finished, strict=True)
    ]
    fitted = sum(grouping.count - 1 for grouping in selected)
    noise, drift = _noise([trial.batch for trial in history.finished], residuals, fitted)
    return DurationModel(len(logs), centre, effects, noise, drift, unproven, frozenset(names))


def _select_parameters(
    columns: Mapping[str, Sequence[Value | None]], logs: Sequence[float]
) -> list[Grouping]:
    """Select parameters stepwise, each by the variance that it explains in addition to those before."""
    chosen: list[Grouping] = []
    groupings = (group_values(name, column) for name, column in columns.items())
    candidates = [grouping for grouping in groupings if grouping is not None]
    total = _unexplained(logs, ())
    best = total
    while candidates and len(chosen) < MAX_EFFECTS and best > STEADY_VARIANCE:
        least, at = min(
            (_unexplained(fit_effects(groupings, logs)[1], groupings), at)
            for at, candidate in enumerate(candidates)
            for groupings in [[*chosen, candidate]]
        )
        if best - least < MIN_EXPLAINED * total:
            break
        best = least
        chosen.append(candidates.pop(at))
    return chosen


def _unexplained(residuals: Sequence[float], groupings: Sequence[Grouping]) -> float:
    """Estimate the variance of residuals after the mean and the effects of some groupings were fitted."""
    fitted = 1 + sum(grouping.count - 1 for grouping in groupings)
    return math.fsum(residual * residual for residual in residuals) / max(1, len(residuals) - fitted)


def _noise(
    batches: Sequence[str], residuals: Sequence[float], fitted: int
) -> tuple[tuple[float, ...], float]:
    """Divide residuals into differences between trials of a batch and differences between batches."""
    by_batch: dict[str, list[float]] = defaultdict(list)
    for batch, residual in zip(batches, residuals, strict=True):
        by_batch[batch].append(residual)
    means = {batch: fmean(values) for batch, values in by_batch.items()}
    inside = [residual - means[batch] for batch, residual in zip(batches, residuals, strict=True)]
    # Fitted coefficients and batch means remove part of the noise from a small sample.
    correction = math.sqrt((len(residuals) + 1) / max(1, len(residuals) - fitted - len(by_batch)))
    noise = tuple(sorted(math.exp(value * correction) for value in inside))
    between = 0.0
    if len(by_batch) > 1:
        chance = pvariance(inside) * fmean(1 / len(values) for values in by_batch.values())
        between = max(0.0, variance(means.values()) - chance)
    seen = len(by_batch) - 1
    pooled = (PRIOR_BATCHES * PRIOR_DRIFT**2 + seen * between) / (PRIOR_BATCHES + seen)
    return noise, math.sqrt(pooled * (1 + 1 / len(by_batch)))
