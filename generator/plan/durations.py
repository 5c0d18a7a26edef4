"""How long trials take, learned from recorded ones: a factor for each parameter that matters, and noise.

Seconds are compared by their logarithms, as twice the epochs is twice the time whatever the batch size is.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance, variance

from generator.plan.effects import Effect, Grouping, fitted, grouping, is_number
from generator.plan.past import Past
from generator.structs.values import Value, identity

FEWEST = 3
"""Recorded trials, to say anything at all."""
ENOUGH = 12
"""Recorded trials, to tell which parameters matter."""
MOST_EFFECTS = 3
TELLING = 0.1
"""The share of all variance that a parameter must explain, beyond what chance explains."""
STEADY = 1e-4
"""Variance of the logarithms: times that differ by one in a hundred need no explanation."""

USUAL_DRIFT = 0.1
"""By which the mean of one batch differs from the next with everything equal, until batches tell."""
USUAL_BATCHES = 2
"""So much does that count beside batches that were seen."""
SHORTEST = 1e-3
"""Seconds; nothing has a logarithm of zero."""


@dataclass(frozen=True, slots=True)
class Durations:
    """What recorded trials tell of new ones."""

    records: int
    centre: float
    """The mean logarithm of seconds."""
    effects: tuple[Effect, ...]
    """Of the parameters that matter, most telling first."""
    noise: tuple[float, ...]
    """Factors by which single trials differ within a batch, sorted."""
    drift: float
    """Standard deviation of the logarithm of the factor by which a whole new batch differs."""
    unproven: Mapping[str, tuple[Value | None, ...]]
    """Parameters of which nobody can say whether they matter, with their recorded values."""
    known: frozenset[str]
    """Every parameter that is recorded."""

    def seconds(self, assignment: Mapping[str, Value]) -> float | None:
        """Give what a trial takes on average; None for one unlike all that are recorded."""
        if self.foreign(assignment) is not None:
            return None
        found = [effect.at(assignment.get(effect.parameter)) for effect in self.effects]
        return math.exp(self.centre + sum(one for one in found if one is not None))

    def foreign(self, assignment: Mapping[str, Value]) -> str | None:
        """Name a parameter by which a trial is unlike all that are recorded; None if there is none."""
        for effect in self.effects:
            if effect.at(assignment.get(effect.parameter)) is None:
                return effect.parameter
        for name, values in self.unproven.items():
            if not _is_like(assignment.get(name), values):
                return name
        return next((name for name in assignment if name not in self.known), None)


def durations(past: Past) -> Durations | None:
    """Learn from what is recorded; None where that is too little."""
    if len(past.ended) < FEWEST:
        return None
    logs = [math.log(max(SHORTEST, one.seconds)) for one in past.ended]
    centre = fmean(logs)
    names = sorted({name for one in past.ended for name in one.assignment})
    columns = {name: [one.assignment.get(name) for one in past.ended] for name in names}
    telling = _telling(columns, [one - centre for one in logs]) if len(logs) >= ENOUGH else []
    effects, _ = fitted(telling, [one - centre for one in logs])
    told = {effect.parameter for effect in effects}
    unproven = {
        name: tuple({identity(value): value for value in column}.values())
        for name, column in columns.items()
        if name not in told and (len(logs) < ENOUGH or len({identity(value) for value in column}) == 1)
    }
    left = [
        log - centre - sum(effect.at(one.assignment.get(effect.parameter)) or 0 for effect in effects)
        for log, one in zip(logs, past.ended, strict=True)
    ]
    noise, drift = _noise([one.batch for one in past.ended], left, sum(one.count - 1 for one in telling))
    return Durations(len(logs), centre, effects, noise, drift, unproven, frozenset(names))


def _telling(columns: Mapping[str, Sequence[Value | None]], logs: Sequence[float]) -> list[Grouping]:
    """Choose the parameters that matter, most telling first: each by what it adds to those before."""
    chosen: list[Grouping] = []
    found = (grouping(name, column) for name, column in columns.items())
    candidates = [one for one in found if one is not None]
    total = _unexplained(logs, 1)
    best = total
    while candidates and len(chosen) < MOST_EFFECTS and best > STEADY:
        scored = [(_after([*chosen, one], logs), place) for place, one in enumerate(candidates)]
        least, place = min(scored)
        if best - least < TELLING * total:
            break
        best = least
        chosen.append(candidates.pop(place))
    return chosen


def _after(groupings: Sequence[Grouping], logs: Sequence[float]) -> float:
    _, left = fitted(groupings, logs)
    return _unexplained(left, 1 + sum(one.count - 1 for one in groupings))


def _unexplained(left: Sequence[float], used: int) -> float:
    """Estimate the variance that is left, at the expense of so many numbers that were fitted."""
    return math.fsum(one * one for one in left) / max(1, len(left) - used)


def _noise(batches: Sequence[str], left: Sequence[float], used: int) -> tuple[tuple[float, ...], float]:
    """Part what is left into how batches differ, and how trials within one do."""
    held: dict[str, list[float]] = defaultdict(list)
    for batch, one in zip(batches, left, strict=True):
        held[batch].append(one)
    means = {batch: fmean(found) for batch, found in held.items()}
    inside = [one - means[batch] for batch, one in zip(batches, left, strict=True)]
    # Fitting takes its part of the noise away, and a small sample has seen too little of it.
    fair = math.sqrt((len(left) + 1) / max(1, len(left) - used - len(held)))
    noise = tuple(sorted(math.exp(one * fair) for one in inside))
    between = 0.0
    if len(held) > 1:
        chance = pvariance(inside) * fmean(1 / len(found) for found in held.values())
        between = max(0.0, variance(means.values()) - chance)
    seen = len(held) - 1
    pooled = (USUAL_BATCHES * USUAL_DRIFT**2 + seen * between) / (USUAL_BATCHES + seen)
    return noise, math.sqrt(pooled * (1 + 1 / len(held)))


def _is_like(value: Value | None, recorded: Sequence[Value | None]) -> bool:
    numbers = [one for one in recorded if is_number(one)]
    if is_number(value) and len(numbers) == len(recorded):
        return min(numbers) <= value <= max(numbers)
    return identity(value) in {identity(one) for one in recorded}
