"""A spec's `early_terminate` and the curves of recorded trials → the rules that launchers go by.

A pure function of both: the same clone gives the same thresholds. What is compared is a trial's best value
up to a step, as Optuna's pruners do, with what others had reached by then. A record's curve is thinned: the
best that it still shows is never better than what was reached, so a threshold errs towards going on.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

from generator.structs.adaptive import EarlyStop, HyperbandStop, PatienceStop, PercentileStop, TargetStop
from generator.structs.stopping import Patience, Reach, StopRule, Thresholds
from generator.structs.sweep import Goal, Metric

MOST_THRESHOLDS = 200
"""As many as a curve has points."""
MEDIAN = 50.0


@dataclass(frozen=True, slots=True)
class Curve:
    """What a recorded trial reached by which step."""

    points: tuple[tuple[int, float | None], ...]
    """In the order of steps; None where it was no finite number."""
    is_whole: bool
    """Whether the trial ended ok: no other's is complete."""


def compiled(rule: EarlyStop, metric: Metric, curves: Iterable[Curve]) -> tuple[StopRule, ...]:
    """Work out the rules for trials that begin now. Without enough curves nothing can fall behind."""
    match rule:
        case PatienceStop(patience, margin, first, last):
            return (Patience(patience, margin, first, last),)
        case TargetStop(first):
            return () if metric.target is None else (Reach(metric.target, first),)
        case PercentileStop():
            name = "median" if rule.percentile == MEDIAN else "percentile"
            known = [_Reached.of(curve, metric) for curve in curves if curve.is_whole and curve.points]
            points = _percentiles(rule, known) if len(known) >= rule.min_trials else ()
            found = Thresholds(name, _signed(points, metric))
        case HyperbandStop():
            known = [_Reached.of(curve, metric) for curve in curves if curve.points]
            found = Thresholds("hyperband", _signed(_bands(rule, known), metric), rule.strict)
        case _:
            assert_never(rule)
    return (found,) if found.points else ()


@dataclass(frozen=True, slots=True)
class _Reached:
    """A curve as larger-is-better, with its best up to each step."""

    steps: tuple[int, ...]
    values: tuple[float, ...]
    bests: tuple[float, ...]

    @classmethod
    def of(cls, curve: Curve, metric: Metric) -> "_Reached":
        sign = 1.0 if metric.goal is Goal.MAXIMIZE else -1.0
        values = tuple(-math.inf if value is None else sign * value for _, value in curve.points)
        return cls(tuple(step for step, _ in curve.points), values, tuple(accumulate(values, max)))

    def at(self, step: int, *, of_last: bool = False) -> float | None:
        """Give what it had reached by a step; None where it did not come so far, or began later."""
        place = bisect_right(self.steps, step) - 1
        if place < 0 or self.steps[-1] < step:
            return None
        return (self.values if of_last else self.bests)[place]


_Points = Sequence[tuple[int, float]]


def _percentiles(rule: PercentileStop, known: Sequence[_Reached]) -> _Points:
    last = math.inf if rule.max_iter is None else rule.max_iter
    steps = {step for curve in known for step in curve.steps if rule.min_iter <= step <= last}
    return _at(steps, known, rule.min_trials, lambda found: _percentile(found, rule.percentile))


def _bands(rule: HyperbandStop, known: Sequence[_Reached]) -> _Points:
    """Ask of each band for what the best one in eta had reached, as W&B counts them."""
    furthest = max((curve.steps[-1] for curve in known), default=0)
    # With fewer than eta curves one in eta is less than one of them.
    return _at(
        rule.steps(furthest),
        known,
        math.ceil(rule.eta),
        lambda found: sorted(found, reverse=True)[int(len(found) / rule.eta)],
        of_last=rule.strict,
    )


def _at(
    steps: Iterable[int],
    known: Sequence[_Reached],
    least: int,
    threshold: Callable[[list[float]], float],
    *,
    of_last: bool = False,
) -> _Points:
    """Find the threshold of each step that so many curves came to."""
    points = []
    for step in _thinned(sorted(steps)):
        found = [value for curve in known if (value := curve.at(step, of_last=of_last)) is not None]
        if len(found) >= least and math.isfinite(limit := threshold(found)):
            points.append((step, limit))
    return points


def _thinned(steps: list[int]) -> list[int]:
    if len(steps) <= MOST_THRESHOLDS:
        return steps
    return [steps[number * (len(steps) - 1) // (MOST_THRESHOLDS - 1)] for number in range(MOST_THRESHOLDS)]


def _percentile(found: list[float], percent: float) -> float:
    """Interpolate between the values, from the worst up."""
    ordered = sorted(found)
    place = percent / 100 * (len(ordered) - 1)
    low, share = ordered[int(place)], place - int(place)
    # One whose worst is no number has no middle between it and the next.
    return low if share == 0 else low + share * (ordered[int(place) + 1] - low)


def _signed(points: _Points, metric: Metric) -> tuple[tuple[int, float], ...]:
    return tuple((step, limit if metric.goal is Goal.MAXIMIZE else 0.0 - limit) for step, limit in points)
