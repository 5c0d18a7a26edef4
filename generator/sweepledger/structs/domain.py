"""The domain of a parameter: one frozen class per type, with bounds in the parameter's own units."""

import math
from dataclasses import dataclass

from sweepledger.structs.values import Value

PROBABILITY_SLACK = 1e-9
"""Tolerance for the sum of probabilities: thirds with few digits do not sum to 1."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all trials."""

    value: Value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values. A range with a step or a count is expanded to one."""

    values: tuple[Value, ...]
    probabilities: tuple[float, ...] | None = None
    """One per value, with the sum 1; None: all equal."""

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("a choice must have at least one value, but got none")
        if self.probabilities is None:
            return
        if len(self.probabilities) != len(self.values):
            raise ValueError(
                f"a choice must have a probability for each value, but got {len(self.probabilities)} "
                f"for {len(self.values)}"
            )
        if min(self.probabilities) < 0 or abs(math.fsum(self.probabilities) - 1) > PROBABILITY_SLACK:
            raise ValueError(f"probabilities must be 0 or more and sum to 1, but got {self.probabilities!r}")


@dataclass(frozen=True, slots=True)
class IntUniform:
    """Every integer from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        _ordered(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Uniform:
    """The uniform distribution between two bounds."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _ordered(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Positive numbers whose logarithm is uniform. The bounds are values; W&B's exponents are converted on import."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _ordered(self.low, self.high)
        if self.low <= 0:
            raise ValueError(f"0 < low must hold on a logarithmic scale, but got {self.low!r}")


@dataclass(frozen=True, slots=True)
class Normal:
    """The normal distribution, truncated at the bounds if there are any."""

    mu: float
    sigma: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)
        if self.low is not None and self.high is not None:
            _ordered(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Positive numbers whose natural logarithm is normal."""

    mu: float
    sigma: float

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)


@dataclass(frozen=True, slots=True)
class Beta:
    """The beta distribution on 0 to 1."""

    a: float
    b: float

    def __post_init__(self) -> None:
        _positive("a", self.a)
        _positive("b", self.b)


Continuous = Uniform | LogUniform | Normal | LogNormal | Beta


@dataclass(frozen=True, slots=True)
class Quantized:
    """A continuous domain rounded to multiples of q, within its bounds if it has any."""

    of: Continuous
    q: float

    def __post_init__(self) -> None:
        _positive("q", self.q)


Domain = Constant | Choice | IntUniform | Continuous | Quantized


def _ordered(low: float, high: float) -> None:
    if not low < high:
        raise ValueError(f"low < high must hold, but got {low!r} and {high!r}")


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be more than 0, but got {value!r}")
