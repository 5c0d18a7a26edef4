"""Early stopping of trials that no longer improve."""

from collections.abc import Sequence
from dataclasses import dataclass

from sweepledger.structs.early_stopping import LearningCurve, StopPolicy, StopRule, StopType
from sweepledger.structs.metric import Metric


@dataclass(frozen=True, slots=True)
class PatienceStop(StopPolicy):
    """A trial ends successfully after `patience` reports without a better value."""

    patience: int
    min_delta: float = 0.0
    """By how much a value must be better to count."""
    min_iter: int = 1
    max_iter: int | None = None

    def rules(self, metric: Metric, curves: Sequence[LearningCurve]) -> tuple[StopRule, ...]:  # noqa: ARG002
        """Return the policy, which needs no curves."""
        until = {} if self.max_iter is None else {"until": self.max_iter}
        named = {"rule": "patience", "reports": self.patience, "margin": self.min_delta}
        return ({**named, "from": self.min_iter, **until},)


TYPES = {
    "patience": StopType(
        PatienceStop,
        "min_iter max_iter patience min_delta",
        "a trial stops after a number of reports without a better value",
        required={"patience": "patience: 5"},
    )
}
