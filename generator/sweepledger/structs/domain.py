"""The domain of a parameter: what each kind of it answers. The kinds are modules of `sweepledger.distributions`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf
from typing import Any, ClassVar

from msgspec import Struct

from sweepledger.structs.values import Value, is_number

Quantile = Callable[[float], Value]
"""The value that a number from 0 to 1 selects."""
CoordinateOf = Callable[[Value], float | None]
"""The number from 0 to 1 that selects a value; None for any other value."""

LARGEST_FRACTION = 1 - 2.0**-53
"""The largest argument of a quantile function."""


class UnitInterval(Struct, frozen=True):
    """Real numbers from 0 to 1."""

    columns: ClassVar[int] = 1
    """Numbers that describe a value."""


class Ordinal(Struct, frozen=True):
    """Integers from 0 to count - 1, whose neighbours are alike."""

    count: int
    columns: ClassVar[int] = 1


class Categorical(Struct, frozen=True):
    """Integers from 0 to count - 1 without an order."""

    count: int

    @property
    def columns(self) -> int:
        """One for each integer."""
        return self.count


Axis = UnitInterval | Ordinal | Categorical
"""What a model of the metric sees of a domain."""
Codec = tuple[Callable[[float], Value], Callable[[Value], float | None]]
"""From a number on the axis to the value, and back; None for a value that the domain lacks."""


class StepRange(Struct, frozen=True):
    """`count` multiples of a step, from a first value: exact decimals, computed on access."""

    first: Fraction
    step: Fraction
    count: int

    @classmethod
    def between(cls, low: float, high: float, step: float) -> "StepRange":
        """Return the values from low in steps; high is excluded, as in W&B."""
        first, last, by = (Fraction(Decimal(repr(number))) for number in (low, high, step))
        return cls(first, by, ceil((last - first) / by))

    def __getitem__(self, position: int) -> int | float:
        value = self.first + position * self.step
        is_whole = self.first.denominator == self.step.denominator == 1
        return value.numerator if is_whole else float(value)

    def __contains__(self, value: object) -> bool:
        if not is_number(value):
            return False
        position = (Fraction(Decimal(repr(value))) - self.first) / self.step
        return position.denominator == 1 and 0 <= position < self.count


GridValues = StepRange | tuple[Value, ...]


class NumberRange(Struct, frozen=True):
    """Numbers between two bounds, all equally likely on their scale: what most tools have."""

    low: float
    high: float
    is_log: bool = False
    is_integer: bool = False
    """Whether the numbers are all integers from low to high."""
    step: float | None = None
    """Numbers are rounded to its multiples."""

    @property
    def support(self) -> tuple[float, float]:
        """The bounds, which are the smallest and the largest number."""
        return self.low, self.high

    ends = support

    @property
    def text(self) -> str:
        """The numbers, for readers."""
        kind = "integers" if self.is_integer else "log-uniform" if self.is_log else "uniform"
        return f"{number_text(self.low)} … {number_text(self.high)}, {kind}"


class Bell(Struct, frozen=True):
    """Normally distributed numbers, or logarithms."""

    mu: float
    sigma: float
    is_log: bool = False
    low: float | None = None
    high: float | None = None
    step: float | None = None

    @property
    def ends(self) -> tuple[float, ...]:
        """The bounds that are given."""
        return tuple(end for end in (self.low, self.high) if end is not None)

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest number."""
        least = 0.0 if self.is_log else -inf
        return least if self.low is None else self.low, inf if self.high is None else self.high

    @property
    def text(self) -> str:
        """The numbers, for readers."""
        kind = "log-normal" if self.is_log else "normal"
        text = f"{kind}, mu {number_text(self.mu)}, sigma {number_text(self.sigma)}"
        text += "" if self.low is None else f", from {number_text(self.low)}"
        return text if self.high is None else f"{text}, to {number_text(self.high)}"


class Domain(ABC):
    """The values that a parameter may have, and how likely each is."""

    __slots__ = ()

    listed: tuple[Value, ...] = ()
    """The values, if the spec lists them."""
    chances: tuple[float, ...] | None = None
    """The probability of each listed value; None: all equal."""
    is_constant: ClassVar[bool] = False
    is_continuous: ClassVar[bool] = False
    """Whether draws are real numbers, which are rounded to ten significant digits only."""

    @property
    def is_whole(self) -> bool:
        """Whether all draws are integers."""
        return False

    @property
    def grid_values(self) -> GridValues | None:
        """The values in the order of a grid; None if they cannot be enumerated."""
        return self.listed or None

    @property
    def is_discrete(self) -> bool:
        """Whether draws give the values of a grid, all of them and no others."""
        return bool(self.listed)

    @property
    def shape(self) -> NumberRange | Bell | None:
        """How other tools describe it; None if hardly any has it."""
        return None

    @property
    def ends(self) -> tuple[float, ...]:
        """Bounds of the numbers."""
        return () if self.shape is None else self.shape.ends

    @property
    def axis(self) -> Axis:
        """What a model sees: by default, the share of draws that are below a number."""
        return UnitInterval()

    @property
    @abstractmethod
    def draw_steps(self) -> int:
        """Steps of a draw, in the unit of `sweepledger.search.estimates`."""

    @property
    def text(self) -> str:
        """The numbers in words; a domain with listed values has none."""
        return "" if self.shape is None else self.shape.text

    @property
    @abstractmethod
    def keys(self) -> dict[str, Any]:
        """The keys with which a spec writes it; all but truncated_normal are also W&B's."""

    @abstractmethod
    def quantile(self) -> Quantile:
        """Compile the quantile function for 0 <= u < 1."""

    @abstractmethod
    def coordinate(self) -> CoordinateOf:
        """Compile the inverse of the quantile function.

        The coordinate of a number is the share of draws below it. The coordinate of a discrete value is the middle of
        the interval that the quantile function maps to it.
        """

    def codec(self) -> Codec:
        """Compile the functions from the axis to values and back."""
        quantile = self.quantile()
        return lambda number: quantile(min(max(float(number), 0.0), LARGEST_FRACTION)), self.coordinate()

    def narrowness(self) -> tuple[str, str] | None:
        """Return what the domain must have so that its draws differ, and a hint; None if they do."""
        return None


def number_text(number: float) -> str:
    """Return a number for readers."""
    return f"{number:g}" if isinstance(number, float) and number.is_integer() else repr(number)


MIN_ORDINAL = 3
"""Between two values there is no other, so an order of two carries no information."""


def is_ordered(values: Sequence[Value]) -> bool:
    """Return whether values are numbers in order, so that neighbours are alike."""
    numbers = [value for value in values if is_number(value)]
    return len(numbers) >= max(MIN_ORDINAL, len(values)) and is_monotonic(numbers)


def is_monotonic(numbers: Sequence[float]) -> bool:
    """Return whether numbers only rise, or only fall."""
    pairs = list(pairwise(numbers))
    return all(left < right for left, right in pairs) or all(left > right for left, right in pairs)
