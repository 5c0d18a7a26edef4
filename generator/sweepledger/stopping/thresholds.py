"""Thresholds from recorded learning curves, for policies that compare a trial with others.

Equal input gives equal thresholds. As in Optuna's pruners, a trial's best value up to a step is compared with the best
values of other trials up to that step. A recorded curve is thinned: its best point is never better than the real one,
so a threshold errs towards continuing.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from sweepledger.structs.early_stopping import LearningCurve, StopRule
from sweepledger.structs.metric import Goal, Metric

MAX_THRESHOLDS = 200
"""The largest number of points in a recorded curve."""
Points = Sequence[tuple[int, float]]


class Reached(Struct, frozen=True):
    """A curve of the best value up to each step, in which larger values are better."""

    steps: tuple[int, ...]
    values: tuple[float, ...]
    bests: tuple[float, ...]

    @classmethod
    def of(cls, curve: LearningCurve, metric: Metric) -> "Reached":
        """Build the curve from a recorded one; change its sign if the metric is minimized."""
        sign = 1.0 if metric.goal is Goal.MAXIMIZE else -1.0
        values = tuple(-math.inf if value is None else sign * value for _, value in curve.points)
        return cls(tuple(step for step, _ in curve.points), values, tuple(accumulate(values, max)))

    def at(self, step: int, *, use_last: bool = False) -> float | None:
        """Return the best (`use_last`: the last) value up to a step; None if the curve does not cover the step."""
        index = bisect_right(self.steps, step) - 1
        if index < 0 or self.steps[-1] < step:
            return None
        return (self.values if use_last else self.bests)[index]


def thresholds(
    steps: Iterable[int],
    known: Sequence[Reached],
    min_curves: int,
    threshold: Callable[[list[float]], float],
    *,
    use_last: bool = False,
) -> Points:
    """Return the threshold of each step that at least `min_curves` curves reach."""
    points, ordered = [], sorted(steps)
    if len(ordered) > MAX_THRESHOLDS:
        last = len(ordered) - 1
        ordered = [ordered[number * last // (MAX_THRESHOLDS - 1)] for number in range(MAX_THRESHOLDS)]
    for step in ordered:
        values = [value for curve in known if (value := curve.at(step, use_last=use_last)) is not None]
        if len(values) >= min_curves and math.isfinite(limit := threshold(values)):
            points.append((step, limit))
    return points


def threshold_rules(
    name: str, points: Points, metric: Metric, *, of_last: bool = False
) -> tuple[StopRule, ...]:
    """Return the stop rule of these thresholds; no rule if there are none."""
    signed = [[step, limit if metric.goal is Goal.MAXIMIZE else 0.0 - limit] for step, limit in points]
    rule = {"rule": name, "value": "last" if of_last else "best", "thresholds": signed}
    return (rule,) if signed else ()
