"""Early stopping of trials that have reached the metric's target."""

from collections.abc import Sequence
from dataclasses import dataclass

from sweepledger.structs.early_stopping import LearningCurve, StopPolicy, StopRule, StopType
from sweepledger.structs.metric import Metric


@dataclass(frozen=True, slots=True)
class TargetStop(StopPolicy):
    """A trial ends successfully when it reaches the metric's target."""

    min_iter: int = 1

    def rules(self, metric: Metric, curves: Sequence[LearningCurve]) -> tuple[StopRule, ...]:  # noqa: ARG002
        """Return the target, if there is one."""
        rule = {"rule": "target", "reach": metric.target, "from": self.min_iter}
        return () if metric.target is None else (rule,)


TYPES = {
    "target": StopType(
        TargetStop,
        "min_iter",
        "a trial stops when it has reached `metric.target`",
        needs_target=True,
    )
}
