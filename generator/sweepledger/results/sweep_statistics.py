"""Statistics of a sweep's configurations with uncertainty: best, mean of the best, and best so far.

The uncertainty is a bootstrap over configurations: how much the numbers would differ if other configurations
of the same kind had been tried. A configuration counts with the mean of its replicates. An interval of a best
value never extends beyond the best value that was seen, and seed noise within a configuration is not part of it.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sweepledger.quantiles import interpolated_quantile
from sweepledger.results.inference import CONFIDENCE, FEWEST, Interval, mean
from sweepledger.structs.metric import Goal

RESAMPLES = 2000
"""Resamples of a bootstrap: the ends of an interval vary by a fiftieth of its width between seeds."""
SEED = 0
TOP = 5
"""Configurations whose mean is compared: a best value alone depends on one draw."""
CURVE_POINTS = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None
    """None for a single configuration."""


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """The best value after some configurations."""

    configurations: int
    value: float
    """In the order in which the configurations ended."""
    low: float
    high: float
    """The interval of the best of as many configurations, drawn at random from all."""


@dataclass(frozen=True)
class SweepStatistics:
    """The configurations of a sweep by value."""

    values: tuple[float, ...]
    """Value of each configuration in the order in which they ended."""
    goal: Goal

    @cached_property
    def best_first(self) -> tuple[float, ...]:
        """The values, best first."""
        return tuple(sorted(self.values, reverse=self.goal is Goal.MAXIMIZE))

    @property
    def best(self) -> Estimate | None:
        """The best value; None without configurations."""
        return self._estimate(1)

    @property
    def top(self) -> Estimate | None:
        """The mean of the best configurations, at most `TOP`; None without configurations."""
        return self._estimate(min(TOP, len(self.values)))

    def _estimate(self, count: int) -> Estimate | None:
        if not self.values:
            return None
        ends = _interval([*self.resampled_means(count)]) if len(self.values) >= FEWEST else ()
        return Estimate(mean(self.best_first[:count]), *ends)

    def resampled_means(self, count: int, *, seed: int = SEED) -> Iterator[float]:
        """Yield the mean of the best of each resample, which has as many configurations, drawn with replacement."""
        total = len(self.best_first)
        for places in _best_places(total, total, count, seed=seed):
            yield mean([self.best_first[place] for place in places])

    @cached_property
    def best_so_far(self) -> tuple[BestSoFar, ...]:
        """The best value after 1, 2, … configurations, at most `CURVE_POINTS` points, evenly spaced."""
        total = len(self.values)
        points = sorted({max(1, round(total * part / CURVE_POINTS)) for part in range(1, CURVE_POINTS + 1)})
        choose = max if self.goal is Goal.MAXIMIZE else min
        curve: list[BestSoFar] = []
        for count in points if total else ():
            resampled = [self.best_first[first] for (first,) in _best_places(total, count, 1, seed=SEED)]
            curve.append(BestSoFar(count, choose(self.values[:count]), *_interval(resampled)))
        return tuple(curve)


@dataclass(frozen=True, slots=True)
class StatisticsDifference:
    """The statistics of B minus those of A."""

    best: Estimate
    top: Estimate
    b_better: float
    """Share of the resamples in which the mean of the best configurations of B is better; ties count half."""


def statistics_difference(a: SweepStatistics, b: SweepStatistics) -> StatisticsDifference | None:
    """Return how B differs from A; None if one has no configuration."""
    if not a.values or not b.values:
        return None
    count = min(TOP, len(a.values), len(b.values))
    sign = 1 if a.goal is Goal.MAXIMIZE else -1
    has_interval = min(len(a.values), len(b.values)) >= FEWEST

    def resampled(count: int) -> tuple[Estimate, list[float]]:
        pairs = zip(a.resampled_means(count), b.resampled_means(count, seed=SEED + 1), strict=True)
        differences = [theirs - mine for mine, theirs in pairs]
        value = mean(b.best_first[:count]) - mean(a.best_first[:count])
        return Estimate(value, *(_interval(differences) if has_interval else ())), differences

    (best, _), (top, tops) = resampled(1), resampled(count)
    better = sum((sign * each > 0) + 0.5 * (each == 0) for each in tops) / len(tops)
    return StatisticsDifference(best, top, better)


def _interval(values: Sequence[float]) -> Interval:
    ordered, tail = sorted(values), (1 - CONFIDENCE) / 2
    return Interval(interpolated_quantile(ordered, tail), interpolated_quantile(ordered, 1 - tail))


def _best_places(total: int, drawn: int, count: int, *, seed: int) -> Iterator[tuple[int, ...]]:
    """Yield, for each resample of `drawn` of `total` places, its `count` lowest places in order.

    The smallest of n uniform numbers is computed from one, and the next smallest from the rest, so the time does
    not depend on the number of configurations.
    """
    # Python guarantees that `random()` gives the same numbers for a seed in every version.
    rng = random.Random(seed)  # noqa: S311 - statistics
    for _ in range(RESAMPLES):
        lowest, places = 0.0, []
        for number in range(count):
            lowest = 1 - (1 - lowest) * (1 - rng.random()) ** (1 / (drawn - number))
            places.append(min(int(lowest * total), total - 1))
        yield tuple(places)
