"""Early stopping: from a spec's `early_terminate` and recorded learning curves to the rules that launchers apply.

Equal input gives equal thresholds. As in Optuna's pruners, a trial's best value up to a step is compared with the
best values of other trials up to that step. A recorded curve is thinned: its best point is never better than the
real one, so a threshold errs towards continuing.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

from sweepledger.quantiles import interpolated_quantile
from sweepledger.structs import early_stopping
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import step_restarts

MAX_THRESHOLDS = 200
"""The largest number of points in a recorded curve."""
MEDIAN = 50.0


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """The intermediate values of a recorded trial."""

    points: tuple[tuple[int, float | None], ...]
    """Steps and values, in order; None: not a finite number."""
    is_complete: bool
    """Whether the trial ended ok."""


def compile_stop_rules(
    rule: early_stopping.EarlyStop, metric: Metric, curves: Iterable[LearningCurve]
) -> tuple[early_stopping.StopRule, ...]:
    """Return the rules for new trials; without enough curves there are no thresholds.

    Curves whose steps begin again are not used: a value at a step is then one of several.
    """
    curves = [curve for curve in curves if not step_restarts(curve.points)]
    match rule:
        case early_stopping.PatienceStop():
            return (rule,)
        case early_stopping.TargetStop(first):
            return () if metric.target is None else (early_stopping.TargetRule(metric.target, first),)
        case early_stopping.PercentileStop():
            name = "median" if rule.percentile == MEDIAN else "percentile"
            known = [_Reached.of(curve, metric) for curve in curves if curve.is_complete and curve.points]
            points = _percentiles(rule, known) if len(known) >= rule.min_trials else ()
            compiled = early_stopping.ThresholdRule(name, _signed(points, metric))
        case early_stopping.HyperbandStop():
            known = [_Reached.of(curve, metric) for curve in curves if curve.points]
            compiled = early_stopping.ThresholdRule(
                "hyperband", _signed(_bands(rule, known), metric), rule.strict
            )
        case _:
            assert_never(rule)
    return (compiled,) if compiled.points else ()


@dataclass(frozen=True, slots=True)
class _Reached:
    """A curve in which larger values are better, with the best value up to each step."""

    steps: tuple[int, ...]
    values: tuple[float, ...]
    bests: tuple[float, ...]

    @classmethod
    def of(cls, curve: LearningCurve, metric: Metric) -> "_Reached":
        sign = 1.0 if metric.goal is Goal.MAXIMIZE else -1.0
        values = tuple(-math.inf if value is None else sign * value for _, value in curve.points)
        return cls(tuple(step for step, _ in curve.points), values, tuple(accumulate(values, max)))

    def at(self, step: int, *, use_last: bool = False) -> float | None:
        """Return the best value up to a step, or the last one; None if the curve starts later or ends before."""
        index = bisect_right(self.steps, step) - 1
        if index < 0 or self.steps[-1] < step:
            return None
        return (self.values if use_last else self.bests)[index]


_Points = Sequence[tuple[int, float]]


def _percentiles(rule: early_stopping.PercentileStop, known: Sequence[_Reached]) -> _Points:
    last = math.inf if rule.max_iter is None else rule.max_iter
    steps = {step for curve in known for step in curve.steps if rule.min_iter <= step <= last}
    return _thresholds(
        steps,
        known,
        rule.min_trials,
        lambda values: interpolated_quantile(sorted(values), rule.percentile / 100),
    )


def _bands(rule: early_stopping.HyperbandStop, known: Sequence[_Reached]) -> _Points:
    """Return for each band the value that the best one in eta reached, counted as in W&B."""
    furthest = max((curve.steps[-1] for curve in known), default=0)
    # With fewer than eta curves, one in eta is less than one curve.
    return _thresholds(
        rule.steps(furthest),
        known,
        math.ceil(rule.eta),
        lambda values: sorted(values, reverse=True)[int(len(values) / rule.eta)],
        use_last=rule.strict,
    )


def _thresholds(
    steps: Iterable[int],
    known: Sequence[_Reached],
    min_curves: int,
    threshold: Callable[[list[float]], float],
    *,
    use_last: bool = False,
) -> _Points:
    """Return the threshold of each step that at least `min_curves` curves reach."""
    points = []
    for step in _thinned(sorted(steps)):
        values = [value for curve in known if (value := curve.at(step, use_last=use_last)) is not None]
        if len(values) >= min_curves and math.isfinite(limit := threshold(values)):
            points.append((step, limit))
    return points


def _thinned(steps: list[int]) -> list[int]:
    if len(steps) <= MAX_THRESHOLDS:
        return steps
    return [steps[number * (len(steps) - 1) // (MAX_THRESHOLDS - 1)] for number in range(MAX_THRESHOLDS)]


def _signed(points: _Points, metric: Metric) -> tuple[tuple[int, float], ...]:
    return tuple((step, limit if metric.goal is Goal.MAXIMIZE else 0.0 - limit) for step, limit in points)
