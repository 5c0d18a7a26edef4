"""A distribution as a spec writes it: the keys of its name, the kind of its bounds, and the resulting domain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sweepledger.distributions.ranges import Number, Spacing, exponential, exponentially_spaced, spaced
from sweepledger.structs.domain import Domain

PROBABILITY_SLACK = 1e-9
"""Tolerance for the sum of probabilities: thirds with few digits do not sum to 1."""

Keys = Mapping[str, Any]
"""The keys of a parameter in a spec."""


class BoundKind(StrEnum):
    """The kind of the bounds of a distribution."""

    LINEAR = "linear"
    LOG = "log"
    """Values of a logarithmic scale."""
    EXPONENTS = "exponents"
    """Natural logarithms of values; so are mu and sigma."""


@dataclass(frozen=True, slots=True)
class Form:
    """The keys of a form of parameter, and the resulting domain."""

    required: str
    """Keys that it needs, in words."""
    optional: str
    make: Callable[[Keys], Domain]
    scale: BoundKind = BoundKind.LINEAR
    is_integer: bool = False
    """Whether it has integers only, the bounds among them."""
    is_inverse: bool = False
    """Whether the bounds are of the negative logarithm."""
    needs: frozenset[str] = field(init=False)
    """The required keys."""
    keys: frozenset[str] = field(init=False)
    """Every key of the form except `when`, which all forms have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", frozenset(self.required.split()))
        object.__setattr__(self, "keys", self.needs.union(self.optional.split()))

    @property
    def is_listed(self) -> bool:
        """Whether its values are written one by one."""
        return bool(self.needs & {"value", "values"})

    @property
    def is_linear_range(self) -> bool:
        """Whether its draws are uniform numbers between two required bounds."""
        return "min" in self.needs and self.scale is BoundKind.LINEAR

    @property
    def is_countable(self) -> bool:
        """Whether a grid accepts the form without a step or a count."""
        return self.is_listed or self.is_integer or (self.is_linear_range and "q" in self.keys)

    def ends(self, low: Number, high: Number) -> tuple[Number, Number]:
        """Return the smallest and the largest value between two bounds."""
        if self.scale is not BoundKind.EXPONENTS:
            return low, high
        low, high = (-high, -low) if self.is_inverse else (low, high)
        return exponential(low), exponential(high)

    def points(self, low: Number, high: Number, count: int) -> tuple[Number, ...]:
        """Return this number of points between two bounds, both included, evenly spaced on the scale."""
        match self.scale:
            case BoundKind.EXPONENTS:
                return exponentially_spaced(*((-high, -low) if self.is_inverse else (low, high)), count)
            case BoundKind.LOG:
                return spaced(Spacing.GEOMETRIC, low, high, count)
            case BoundKind.LINEAR:
                return spaced(Spacing.LINEAR, low, high, count)
