"""Early stopping of trials that are worse than a share of the others at the same step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sweepledger.quantiles import interpolated_quantile
from sweepledger.stopping.thresholds import Reached, threshold_rules, thresholds
from sweepledger.structs.early_stopping import LearningCurve, StopPolicy, StopRule, StopType
from sweepledger.structs.metric import Metric

MEDIAN = 50.0


@dataclass(frozen=True, slots=True)
class PercentileStop(StopPolicy):
    """A trial ends whose best value so far is worse than a percentile of the others' at the same step."""

    percentile: float = 50.0
    """Percentile from the worst value; 50 is the median rule."""
    min_iter: int = 1
    max_iter: int | None = None
    """The last step at which a trial may end; None: any."""
    min_trials: int = 3
    """Least number of learning curves; with fewer, no trial is stopped."""
    compares: ClassVar[bool] = True

    def rules(self, metric: Metric, curves: Sequence[LearningCurve]) -> tuple[StopRule, ...]:
        """Return the percentile of the complete curves at each of their steps."""
        known = [Reached.of(curve, metric) for curve in curves if curve.is_complete and curve.points]
        last = math.inf if self.max_iter is None else self.max_iter
        steps = {step for curve in known for step in curve.steps if self.min_iter <= step <= last}
        if len(known) < self.min_trials:
            return ()
        points = thresholds(
            steps,
            known,
            self.min_trials,
            lambda values: interpolated_quantile(sorted(values), self.percentile / 100),
        )
        return threshold_rules("median" if self.percentile == MEDIAN else "percentile", points, metric)


TYPES = {
    "median": StopType(
        PercentileStop,
        "min_iter max_iter min_trials",
        "a trial stops if it is worse than half of the other trials at that step",
    ),
    "percentile": StopType(
        PercentileStop,
        "min_iter max_iter min_trials percentile",
        "a trial stops if it is worse than this share of other trials at that step",
    ),
}
