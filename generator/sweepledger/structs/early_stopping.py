"""Early stopping: how a policy of a spec, a module of `sweepledger.stopping`, makes the rules of the launcher."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

from msgspec import Struct

from sweepledger.model.keys import EMPTY
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import step_restarts

DEFAULT_ETA = 3.0
"""One trial in three continues, as in the paper of Hyperband."""


StopRule = Mapping[str, Any]
"""A rule of `launch.json`, as the launcher's `check_rule` reads it; that of a policy has no goal yet."""


class LearningCurve(Struct, frozen=True):
    """The intermediate values of a recorded trial."""

    points: tuple[tuple[int, float | None], ...]
    """Steps and values, in order; None: not a finite number."""
    is_complete: bool
    """Whether the trial ended ok."""


class StopPolicy(ABC):
    """When trials of a sweep end early."""

    __slots__ = ()

    compares: ClassVar[bool] = False
    """Whether it compares a trial with the recorded curves of others."""

    @property
    def wandb(self) -> dict[str, Any] | None:
        """The policy as W&B writes it; None if W&B lacks it."""
        return None

    def compile(self, metric: Metric, curves: Iterable[LearningCurve]) -> tuple[StopRule, ...]:
        """Return the rules for new trials, without curves whose steps begin again: a value is then one of several."""
        known = [curve for curve in curves if not step_restarts(curve.points)]
        return tuple({"goal": str(metric.goal), **rule} for rule in self.rules(metric, known))

    @abstractmethod
    def rules(self, metric: Metric, curves: Sequence[LearningCurve]) -> tuple[StopRule, ...]:
        """Return the rules for new trials; without enough curves there are none."""


class StopType(Struct, frozen=True):
    """What a spec says of a type of early stopping, and the policy that it makes."""

    policy: type[StopPolicy]
    """Takes the keys of `early_terminate` that are given."""
    keys: str
    """Its keys, in words."""
    text: str
    required: Mapping[str, str] = EMPTY
    """Keys that it needs, with examples."""
    needs_target: bool = False
    """Whether the metric needs a target."""
    problem: Callable[[AbstractSet[str]], tuple[str, str] | None] = lambda _: None
    """Returns what is wrong with the keys that are given, and a hint."""
