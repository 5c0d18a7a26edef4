"""The scale on which objectives are compared: logarithmic, or without outliers that hide the rest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweepledger.structs.metric import Goal

LOG_RATIO = 1000.0
"""Losses with a wider range are compared by their orders of magnitude."""
FENCE = 3.0
"""Interquartile ranges beyond the quartile: Tukey's outer fence (Exploratory Data Analysis, 1977)."""
FEWEST_FENCED = 8
FLATTENED = 4.0
"""Outliers are cut off if all other trials would have less than the inverse of this of the axis."""


@dataclass(frozen=True, slots=True)
class ObjectiveScale:
    """The range of objectives that distinguishes trials."""

    low: float
    high: float
    log: bool
    beyond: int
    """Number of trials that are worse than the range: they count, and are drawn, as its worst end."""
    worst: float
    """The worst objective of all trials."""
    is_empty: bool = False
    """Whether there are no trials."""

    @classmethod
    def of(cls, values: Sequence[float], goal: Goal) -> "ObjectiveScale":
        """Return the scale of some objectives; 0 to 1 if there are none."""
        if not values:
            return cls(0.0, 1.0, log=False, beyond=0, worst=0.0, is_empty=True)
        low, high = min(values), max(values)
        smaller_is_better = goal is Goal.MINIMIZE
        log = smaller_is_better and low > 0 and high / low >= LOG_RATIO
        # Negated so that larger is worse; the fence of a logarithmic scale is computed from logarithms.
        bad = sorted(scaled(value, log=log) * (1 if smaller_is_better else -1) for value in values)
        end = _fence(bad)
        beyond = sum(value > end for value in bad)
        worst = high if smaller_is_better else low
        if beyond:
            last = bad[len(bad) - beyond - 1]
            last = (10.0**last if log else last) * (1 if smaller_is_better else -1)
            low, high = (low, last) if smaller_is_better else (last, high)
        return cls(low, high, log=log, beyond=beyond, worst=worst)

    def part(self, value: float) -> float:
        """Return the position of an objective: 0 at the low end, 1 at the high end."""
        low, high = scaled(self.low, log=self.log), scaled(self.high, log=self.log)
        # Halves, because the difference of two finite numbers need not be finite.
        width = high / 2 - low / 2
        if width <= 0:
            return 0.5
        return min(1.0, max(0.0, (scaled(value, log=self.log) / 2 - low / 2) / width))

    def at(self, part: float) -> float:
        """Return the objective at a position: the inverse of `part`."""
        low, high = scaled(self.low, log=self.log), scaled(self.high, log=self.log)
        number = low * (1 - part) + high * part
        return 10.0**number if self.log else number

    def holds(self, value: float) -> bool:
        """Return whether an objective is inside the range."""
        return self.low <= value <= self.high


def scaled(value: float, *, log: bool) -> float:
    """Return a value in the unit of a scale: the exponent of ten if it is logarithmic."""
    return math.log10(value) if log else float(value)


def _fence(ordered: Sequence[float]) -> float:
    """Return the value beyond which the largest values are cut off; infinite if none are."""
    count = len(ordered)
    lower, upper = ordered[count // 4], ordered[(3 * count) // 4]
    if count < FEWEST_FENCED or lower == upper:
        return math.inf
    fence = upper + FENCE * (upper - lower)
    inside = next(value for value in reversed(ordered) if value <= fence)
    flattens = (ordered[-1] / 2 - ordered[0] / 2) > FLATTENED * (inside / 2 - ordered[0] / 2)
    return fence if flattens else math.inf
