"""Early stopping: the policies of a spec, and the numeric rules that the launcher applies."""

from dataclasses import dataclass

DEFAULT_ETA = 3.0
"""One trial in three continues, as in the paper."""


@dataclass(frozen=True, slots=True)
class HyperbandStop:
    """At certain steps, a trial that is not among the best ends."""

    min_iter: int | None = None
    """The first step; each further step is `eta` times the previous."""
    max_iter: int | None = None
    """The last step; with `s`, the step that is divided by `eta`, `s` times."""
    s: int | None = None
    eta: float = DEFAULT_ETA
    strict: bool = False
    """Whether the value at the step counts, not the best value so far."""

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


@dataclass(frozen=True, slots=True)
class PercentileStop:
    """A trial ends whose best value so far is worse than a percentile of the others' at the same step."""

    percentile: float = 50.0
    """Percentile from the worst value; 50 is the median rule."""
    min_iter: int = 1
    max_iter: int | None = None
    """The last step at which a trial may end; None: any."""
    min_trials: int = 3
    """Least number of learning curves; with fewer, no trial is stopped."""


@dataclass(frozen=True, slots=True)
class PatienceStop:
    """A trial ends successfully after `patience` reports without a better value: a policy that is a rule itself."""

    patience: int
    min_delta: float = 0.0
    """By how much a value must be better to count."""
    min_iter: int = 1
    max_iter: int | None = None


@dataclass(frozen=True, slots=True)
class TargetStop:
    """A trial ends successfully when it reaches the metric's target."""

    min_iter: int = 1


EarlyStop = HyperbandStop | PercentileStop | PatienceStop | TargetStop

COMPARING_RULES = (HyperbandStop, PercentileStop)
"""Rules that compare a trial with the recorded curves of others."""


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """Values that a trial must reach by certain steps; otherwise it is pruned."""

    rule: str
    """Rule that the values were computed with, and the record's reason: `median`, `percentile` or `hyperband`."""
    points: tuple[tuple[int, float], ...]
    """Step and value, in the order of steps."""
    of_last: bool = False
    """Whether the value at the step counts, not the best value up to it."""


@dataclass(frozen=True, slots=True)
class TargetRule:
    """A trial ends successfully when it reaches a value."""

    value: float
    first: int = 1
    """The first step at which a trial may end."""


StopRule = ThresholdRule | PatienceStop | TargetRule
