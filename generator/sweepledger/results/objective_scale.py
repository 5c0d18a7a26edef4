"""On which scale objectives are compared: logarithmic, or without outliers, where these hide the rest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from generator.structs.sweep import Goal

LOG_RATIO = 1000.0
"""Losses that span more are seen by their orders of magnitude."""
FENCE = 3.0
"""Quartile distances beyond the quartile: Tukey's outer fence (Exploratory Data Analysis, 1977)."""
FEWEST_FENCED = 8
FLATTENED = 4.0
"""Outliers are let go where they would leave all others less than the inverse of this of an axis."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The stretch of objectives that tells trials apart."""

    low: float
    high: float
    log: bool
    beyond: int
    """Trials that are worse than the stretch: they count, and are drawn, as its worst end."""
    worst: float
    """The worst objective of all."""

    @classmethod
    def of(cls, values: Sequence[float], goal: Goal) -> "Spread":
        """Find it; of no values it is 0 to 1."""
        if not values:
            return cls(0.0, 1.0, log=False, beyond=0, worst=0.0)
        low, high = min(values), max(values)
        smaller_is_better = goal is Goal.MINIMIZE
        log = smaller_is_better and low > 0 and high / low >= LOG_RATIO
        # Turned so that larger is worse; what a logarithm keeps apart is fenced by it.
        bad = sorted(
            (math.log10(value) if log else value) * (1 if smaller_is_better else -1) for value in values
        )
        end = _fence(bad)
        beyond = sum(value > end for value in bad)
        worst = high if smaller_is_better else low
        if beyond:
            last = bad[len(bad) - beyond - 1]
            last = (10.0**last if log else last) * (1 if smaller_is_better else -1)
            low, high = (low, last) if smaller_is_better else (last, high)
        return cls(low, high, log=log, beyond=beyond, worst=worst)

    def part(self, value: float) -> float:
        """Place an objective on it: 0 at its low end, 1 at its high end."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        # Halves, because the difference of two finite numbers need not be finite.
        width = high / 2 - low / 2
        if width <= 0:
            return 0.5
        return min(1.0, max(0.0, (self._scaled(value) / 2 - low / 2) / width))

    def at(self, part: float) -> float:
        """Give the objective of a place on it: the inverse of `part`."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        number = low * (1 - part) + high * part
        return 10.0**number if self.log else number

    def holds(self, value: float) -> bool:
        """Tell whether an objective lies on it, and not beyond."""
        return self.low <= value <= self.high

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def _fence(ordered: Sequence[float]) -> float:
    """Give the value beyond which the largest of these are let go; infinite if none should be."""
    count = len(ordered)
    lower, upper = ordered[count // 4], ordered[(3 * count) // 4]
    if count < FEWEST_FENCED or lower == upper:
        return math.inf
    fence = upper + FENCE * (upper - lower)
    inside = next(value for value in reversed(ordered) if value <= fence)
    flattens = (ordered[-1] / 2 - ordered[0] / 2) > FLATTENED * (inside / 2 - ordered[0] / 2)
    return fence if flattens else math.inf
