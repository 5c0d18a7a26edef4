"""A search that learns from its records: method, rounds, resource; and what ends a trial before its time."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from generator.problems import NOWHERE, Place
from generator.structs.space import SearchSpace


class Method(StrEnum):
    """A method whose next trials depend on what came of those before."""

    TPE = "tpe"
    BAYES = "bayes"
    CMA_ES = "cma-es"
    NSGA2 = "nsga2"
    HALVING = "halving"
    HYPERBAND = "hyperband"
    ASHA = "asha"
    PBT = "pbt"

    @property
    def is_sampler(self) -> bool:
        """Tell whether it models the metric; the others go on with trials that did well."""
        return self in SAMPLERS

    @property
    def has_parents(self) -> bool:
        """Tell whether its trials go on from the checkpoints of others."""
        return self not in SAMPLERS


SAMPLERS = frozenset({Method.TPE, Method.BAYES, Method.CMA_ES, Method.NSGA2})
"""Methods that model the metric."""

USUAL_ETA = 3.0
"""One in three goes on, as in the paper."""

SEVERAL = frozenset({Method.TPE, Method.NSGA2})
"""Methods that look for a front of several metrics."""


class Impute(StrEnum):
    """What a diverged trial counts as."""

    WORST = "worst"
    """The worst value of any trial that is ok."""
    BEST = "best"
    """The best one."""
    LATEST = "latest"
    """What it reported last; the worst where it reported nothing finite."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How many trials are asked for at a time, and how often."""

    size: int
    """Assignments a round; for a population or the first rung, its size."""
    max: int | None = None
    patience: int | None = None
    """Rounds without a better value, after which the search ends."""

    def __post_init__(self) -> None:
        for name, number in (("size", self.size), ("max", self.max), ("patience", self.patience)):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be at least 1, but got {number!r}")


@dataclass(frozen=True, slots=True)
class Resource:
    """What a trial gets more of when it goes on: epochs, steps, files of data."""

    parameter: str
    """Reaches the program as a parameter, and is none of the space."""
    minimum: int
    """Of a first rung; of a population, what a round adds."""
    maximum: int
    eta: int = 3
    """A rung keeps one trial in eta, and gives it eta times as much."""

    def __post_init__(self) -> None:
        if not 1 <= self.minimum < self.maximum:
            raise ValueError(f"1 <= min < max must hold, but got {self.minimum!r} and {self.maximum!r}")
        if self.eta < 2:  # noqa: PLR2004 - one in two is the least that halves
            raise ValueError(f"eta must be at least 2, but got {self.eta!r}")

    @property
    def rungs(self) -> tuple[int, ...]:
        """List what each rung gets: eta times as much as the one before, and in the end the maximum."""
        found = [self.minimum]
        while found[-1] * self.eta < self.maximum:
            found.append(found[-1] * self.eta)
        return (*found, self.maximum)

    @property
    def generations(self) -> tuple[int, ...]:
        """List what each generation of a population gets, with all that its forebears had."""
        return (*range(self.minimum, self.maximum, self.minimum), self.maximum)


def brackets(size: int, resource: Resource) -> tuple[tuple[int, int], ...]:
    """List Hyperband's brackets, each by the rung it begins with and how many begin there.

    With a size of eta to the power of all steps these are the paper's; the others are in proportion.
    """
    steps = len(resource.rungs) - 1
    return tuple(
        (rung, max(1, ceil(size * (steps + 1) / ((steps - rung + 1) * resource.eta**rung))))
        for rung in range(steps + 1)
    )


@dataclass(frozen=True, slots=True)
class Search:
    """Rounds of assignments, each a function of the spec, the records, the seed and its number."""

    method: Method
    space: SearchSpace
    seed: int
    rounds: Rounds
    start: tuple[str, ...] = ()
    """Sweeps whose recorded trials are evidence, too."""
    resource: Resource | None = None
    """Of methods with parents, and only of these."""
    cap: int | None = None
    """How many assignments all rounds may have together."""
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        if (self.resource is None) is not self.method.is_sampler:
            raise ValueError(f"{self.method} must {'not ' * self.method.is_sampler}have a resource")

    @property
    def largest_round(self) -> int:
        """How many assignments a round has at most: of hyperband, all brackets begin at once."""
        size = self.rounds.size
        if self.method is Method.HYPERBAND and self.resource is not None:
            size = sum(count for _, count in brackets(size, self.resource))
        return size if self.cap is None else min(size, self.cap)

    @property
    def names(self) -> tuple[str, ...]:
        """The resource's name, which is a column beside those of the space."""
        return () if self.resource is None else (self.resource.parameter,)


@dataclass(frozen=True, slots=True)
class HyperbandStop:
    """At each of some steps, a trial that is not among the best so far ends."""

    min_iter: int | None = None
    """The first step, from which each is eta times the one before."""
    max_iter: int | None = None
    """The last step; beside `s` the one that is divided by eta, `s` times over."""
    s: int | None = None
    eta: float = USUAL_ETA
    strict: bool = False
    """Whether a trial's value at the step counts, not its best one so far."""

    def __post_init__(self) -> None:
        if (self.s is None) is (self.min_iter is None) or (self.s is not None and self.max_iter is None):
            raise ValueError("either min_iter or both max_iter and s must be given")
        if self.eta <= 1:
            raise ValueError(f"eta must be more than 1, but got {self.eta!r}")

    def steps(self, last: int) -> tuple[int, ...]:
        """List the steps at which trials are compared, up to a last one that anybody has reached."""
        if self.s is not None and self.max_iter is not None:
            wished = {int(self.max_iter / self.eta**power) for power in range(1, self.s + 1)}
            return tuple(sorted(step for step in wished if 1 <= step <= last))
        last = min(last, self.max_iter or last)
        found, band = list[int](), float(self.min_iter or 1)
        while band <= last:
            found.append(int(band))
            band = max(band * self.eta, found[-1] + 1.0)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class PercentileStop:
    """A trial ends whose best value so far is worse than a percentile of the others' at the same step."""

    percentile: float = 50.0
    """Of the values from the worst up; 50 is the median rule."""
    min_iter: int = 1
    max_iter: int | None = None
    """The last step at which a trial may end; None: any."""
    min_trials: int = 3
    """Curves without which nothing is stopped."""

    def __post_init__(self) -> None:
        if not 0 < self.percentile < 100:  # noqa: PLR2004 - per cent
            raise ValueError(f"0 < percentile < 100 must hold, but got {self.percentile!r}")


@dataclass(frozen=True, slots=True)
class PatienceStop:
    """A trial ends after so many reports without a better value."""

    patience: int
    min_delta: float = 0.0
    """By how much a value must be better to count."""
    min_iter: int = 1
    max_iter: int | None = None


@dataclass(frozen=True, slots=True)
class TargetStop:
    """A trial ends well as soon as it has reached the metric's target."""

    min_iter: int = 1


EarlyStop = HyperbandStop | PercentileStop | PatienceStop | TargetStop
