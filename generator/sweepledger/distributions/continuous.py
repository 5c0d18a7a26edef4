"""The common part of continuous distributions: draws rounded to ten significant digits."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Self

from sweepledger.distributions import rounding
from sweepledger.distributions.form import Keys
from sweepledger.structs.domain import CoordinateOf, Domain, Quantile

DRAWN_NUMBER_STEPS = 10

BOUND_KEYS = {"low": "min", "high": "max"}
"""How a spec writes fields; others have the names of their keys."""

SPREAD = tuple((2 * part + 1) / 32 for part in range(16))
"""Points of the unit interval at which a distribution has different numbers, unless their digits are too few."""


class Continuous(Domain):
    """A distribution of real numbers; its module adds three functions and the form of the numbers."""

    __slots__ = ()

    is_continuous: ClassVar[bool] = True
    is_exact: ClassVar[bool] = True
    """Whether the quantiles near a rounding edge are computed with exact arithmetic."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The distribution in a spec."""

    @abstractmethod
    def unrounded(self) -> rounding.ContinuousQuantile:
        """Compile the quantile function without rounding."""

    @abstractmethod
    def below(self) -> Callable[[float], float]:
        """Compile the share of draws below a number."""

    @property
    def support(self) -> tuple[float, float]:
        """The bounds of all draws."""
        assert self.shape is not None, f"{self!r} must state its support"
        return self.shape.support

    @classmethod
    def of(cls, keys: Keys) -> Self:
        """Build the distribution from some keys; missing keys have the defaults of its fields."""
        given = {each.name: keys.get(BOUND_KEYS.get(each.name, each.name)) for each in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: float(value) for name, value in given.items() if value is not None})

    @property
    def keys(self) -> dict[str, Any]:
        given = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        keys = {BOUND_KEYS.get(name, name): value for name, value in given.items() if value is not None}
        return {"distribution": self.name, **keys}

    @property
    def exact_steps(self) -> float:
        """Steps of a quantile in exact arithmetic."""
        return rounding.EXACT_QUANTILE_STEPS

    @property
    def draw_steps(self) -> int:
        """Average steps of a draw; some draws need exact arithmetic."""
        return self.quantized_steps(None)

    def quantized_steps(self, q: float | None) -> int:
        """Return the steps of a draw that is rounded to multiples of q."""
        return DRAWN_NUMBER_STEPS + int(rounding.exact_share(self.unrounded(), q) * self.exact_steps)

    def quantile(self) -> Quantile:
        """Round the quantile function to ten digits."""
        return rounding.rounded_quantile(self.unrounded())

    def coordinate(self) -> CoordinateOf:
        """Return the share of draws below a number."""
        return rounding.bounded(self.below(), *self.support)

    def narrowness(self) -> tuple[str, str] | None:
        """Return a requirement if rounding to few digits makes draws equal."""
        if not self.is_exact or len({*map(self.quantile(), SPREAD)}) == len(SPREAD):
            return None
        return (
            "room for different numbers of 10 significant digits",
            "draws are rounded to 10 digits: widen the range, or write one value as value",
        )
