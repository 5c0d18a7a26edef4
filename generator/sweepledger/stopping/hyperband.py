"""Early stopping as in W&B: at steps that grow by the factor eta, the best 1/eta of the trials continue."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar

from sweepledger.stopping import thresholds
from sweepledger.structs import early_stopping
from sweepledger.structs.metric import Metric

NAME = "hyperband"


@dataclass(frozen=True, slots=True)
class HyperbandStop(early_stopping.StopPolicy):
    """At certain steps, a trial that is not among the best ends."""

    min_iter: int | None = None
    """The first step; each further step is `eta` times the previous."""
    max_iter: int | None = None
    """The last step; with `s`, the step that is divided by `eta`, `s` times."""
    s: int | None = None
    eta: float = early_stopping.DEFAULT_ETA
    strict: bool = False
    """Whether the value at the step counts, not the best value so far."""
    compares: ClassVar[bool] = True

    def steps(self, last: int) -> tuple[int, ...]:
        """Return the steps at which trials are compared, up to the last step of any trial."""
        if self.s is not None and self.max_iter is not None:
            candidates = {int(self.max_iter / self.eta**power) for power in range(1, self.s + 1)}
            return tuple(sorted(step for step in candidates if 1 <= step <= last))
        last = min(last, self.max_iter or last)
        steps, step = list[int](), float(self.min_iter or 1)
        while step <= last:
            steps.append(int(step))
            step = max(step * self.eta, steps[-1] + 1.0)
        return tuple(steps)

    @property
    def wandb(self) -> dict[str, Any]:
        """The keys for W&B, without those that other keys imply."""
        keys = {"min_iter": self.min_iter} if self.s is None else {"max_iter": self.max_iter, "s": self.s}
        return {"type": NAME, **keys, "eta": self.eta, "strict": self.strict}

    def rules(
        self, metric: Metric, curves: Sequence[early_stopping.LearningCurve]
    ) -> tuple[early_stopping.StopRule, ...]:
        """Return for each band the value that the best 1/eta of the trials reached, counted as in W&B."""
        known = [thresholds.Reached.of(curve, metric) for curve in curves if curve.points]
        furthest = max((curve.steps[-1] for curve in known), default=0)
        # With fewer than eta curves, one in eta is less than one curve.
        points = thresholds.thresholds(
            self.steps(furthest),
            known,
            math.ceil(self.eta),
            lambda values: sorted(values, reverse=True)[int(len(values) / self.eta)],
            use_last=self.strict,
        )
        return thresholds.threshold_rules(NAME, points, metric, of_last=self.strict)


def _problem(given: AbstractSet[str]) -> tuple[str, str] | None:
    if ("s" in given) is not ("min_iter" in given) and not ("s" in given and "max_iter" not in given):
        return None
    return (
        "must have either min_iter, or max_iter and s",
        "min_iter: 3 compares at 3, 9, 27 …; max_iter: 27 and s: 2 at 3 and 9",
    )


TYPES = {
    NAME: early_stopping.StopType(
        HyperbandStop,
        "min_iter max_iter s eta strict",
        "as in W&B; at steps that grow by eta, one trial of eta continues",
        problem=_problem,
    )
}
