"""What one parameter does to a quantity: a mean for each value, or a line through means of many."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeGuard

from generator.structs.values import Value, identity

MANY = 8
"""Of more different numbers than that, neighbours are taken together."""
GROUPS = 6
LEAST_EACH = 2
"""Records a group, on average: of fewer, groups explain chance."""
RELUCTANCE = 0.1
"""A mean of few is drawn towards zero, as if so much of a record had shown no effect."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The recorded values of a parameter, put into groups."""

    parameter: str
    members: tuple[int, ...]
    """The group of each record."""
    places: tuple[float, ...]
    """Where each group lies on the number line; empty for what are no numbers."""
    bounds: tuple[float, float]
    """Between which values were recorded."""
    keys: Mapping[object, int]
    """The group of each value."""
    is_log: bool

    @property
    def count(self) -> int:
        """How many groups there are."""
        return max(self.members) + 1

    def means(self, left: Sequence[float]) -> tuple[float, ...]:
        """Give each group's mean of what is left to explain, with some reluctance."""
        sums, counts = [0.0] * self.count, [0] * self.count
        for group, one in zip(self.members, left, strict=True):
            sums[group] += one
            counts[group] += 1
        return tuple(total / (count + RELUCTANCE) for total, count in zip(sums, counts, strict=True))


@dataclass(frozen=True, slots=True)
class Effect:
    """What a parameter's values add."""

    grouping: Grouping
    means: tuple[float, ...]

    @property
    def parameter(self) -> str:
        """Whose effect it is."""
        return self.grouping.parameter

    def at(self, value: Value | None) -> float | None:
        """Give what a value adds; None for one that lies outside of what is recorded."""
        known = self.grouping.keys.get(identity(value))
        if known is not None:
            return self.means[known]
        if not self.grouping.places or not is_number(value):
            return None
        return self._between(float(value))

    def _between(self, value: float) -> float | None:
        low, high = self.grouping.bounds
        if not low <= value <= high:
            return None
        places, place = self.grouping.places, math.log(value) if self.grouping.is_log else value
        # Beyond the outermost means, and within what is recorded, the line goes on.
        after = min(max(1, bisect_right(places, place)), len(places) - 1)
        share = (place - places[after - 1]) / (places[after] - places[after - 1])
        return self.means[after - 1] * (1 - share) + self.means[after] * share


def grouping(parameter: str, column: Sequence[Value | None]) -> Grouping | None:
    """Put recorded values into groups; None where all are the same, or nearly all are different."""
    distinct = {identity(value): value for value in column}
    if len(distinct) == 1:
        return None
    numbers = [float(value) for value in column if is_number(value)]
    if len(numbers) == len(column):
        return _of_numbers(parameter, numbers, len(distinct))
    if len(distinct) * LEAST_EACH > len(column):
        return None
    keys = {key: place for place, key in enumerate(distinct)}
    members = tuple(keys[identity(value)] for value in column)
    return Grouping(parameter, members, (), (0.0, 0.0), keys, is_log=False)


def _of_numbers(parameter: str, numbers: Sequence[float], distinct: int) -> Grouping | None:
    is_log = min(numbers) > 0
    ordered = sorted(numbers)
    groups = min(GROUPS, len(numbers) // LEAST_EACH) if distinct > MANY else distinct
    if groups * LEAST_EACH > len(numbers):
        return None
    if distinct > MANY:
        cuts = sorted({ordered[len(ordered) * cut // groups] for cut in range(1, groups)})
    else:
        cuts = sorted(set(ordered))[1:]
    members = tuple(bisect_right(cuts, number) for number in numbers)
    held: list[list[float]] = [[] for _ in range(len(cuts) + 1)]
    for member, number in zip(members, numbers, strict=True):
        held[member].append(math.log(number) if is_log else number)
    if not all(held):
        return None
    keys = {} if distinct > MANY else {identity(value): bisect_right(cuts, value) for value in set(numbers)}
    places = tuple(map(fmean, held))
    return Grouping(parameter, members, places, (ordered[0], ordered[-1]), keys, is_log=is_log)


def is_number(value: Value | None) -> TypeGuard[int | float]:
    """Tell whether a value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def fitted(
    groupings: Sequence[Grouping], outcomes: Sequence[float]
) -> tuple[tuple[Effect, ...], list[float]]:
    """Fit effects that add up, each to what the others leave; give them, and what all leave."""
    means = [tuple(0.0 for _ in range(one.count)) for one in groupings]
    left = list(outcomes)
    for _ in range(ROUNDS if len(groupings) > 1 else 1):
        for place, one in enumerate(groupings):
            left = [rest + means[place][group] for rest, group in zip(left, one.members, strict=True)]
            means[place] = one.means(left)
            left = [rest - means[place][group] for rest, group in zip(left, one.members, strict=True)]
    return tuple(map(Effect, groupings, means)), left


ROUNDS = 10
"""Until effects that overlap have settled."""
