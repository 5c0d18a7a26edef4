"""An additive model of the objective: one effect a group of each parameter, found by least squares.

By backfitting (Friedman and Stuetzle, 1981): each parameter in turn takes the mean of what the others leave.
On a full grid the first round ends it, and the effects are the means by value less the mean of all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

ABSENT = -1
"""Of a trial that does not have the parameter: it has no effect there."""
MOST_ROUNDS = 50
STEADY = 1e-7
"""Of places between 0 and 1: nothing below it is seen."""

Kinds = Sequence[int]
"""Of each trial the number of its group, or ABSENT."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What the parameters explain, and what is left."""

    explained: tuple[float, ...]
    """Sum of the squares of each parameter's effects over the trials."""
    left: float
    """Sum of the squares of what no parameter explains."""
    total: float
    """The sum of all these: where parameters went together a little, not quite that of the trials."""
    free: int
    """Degrees of freedom of what is left."""


def fit(parts: Sequence[float], kinds: Sequence[Kinds]) -> Fit:
    """Fit the places of trials by the groups that they belong to."""
    mean = math.fsum(parts) / len(parts)
    left = [part - mean for part in parts]
    counts = [_counts(each) for each in kinds]
    effects = [[0.0] * len(count) for count in counts]
    for _ in range(MOST_ROUNDS):
        changes = [_improve(left, *each) for each in zip(kinds, counts, effects, strict=True)]
        if max(changes, default=0.0) < STEADY:
            break
    explained = tuple(
        math.fsum(number * effect * effect for number, effect in zip(count, effect_of, strict=True))
        for count, effect_of in zip(counts, effects, strict=True)
    )
    remains = math.fsum(each * each for each in left)
    free = len(parts) - 1 - sum(len(count) - 1 for count in counts)
    return Fit(explained, remains, math.fsum([*explained, remains]), free)


def _counts(kinds: Kinds) -> list[int]:
    counts = [0] * (max(kinds) + 1)
    for kind in kinds:
        if kind != ABSENT:
            counts[kind] += 1
    return counts


def _improve(left: list[float], kinds: Kinds, counts: Sequence[int], effects: list[float]) -> float:
    """Move the effects of one parameter to the means of what is left; tell how far at most."""
    sums = [0.0] * len(counts)
    for kind, value in zip(kinds, left, strict=True):
        if kind != ABSENT:
            sums[kind] += value
    middle = math.fsum(sums) / sum(counts)
    changes = [value / count - middle for value, count in zip(sums, counts, strict=True)]
    for place, kind in enumerate(kinds):
        if kind != ABSENT:
            left[place] -= changes[kind]
    for kind, change in enumerate(changes):
        effects[kind] += change
    return max(map(abs, changes))
