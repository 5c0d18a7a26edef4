"""Every integer between two bounds."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sweepledger.distributions.form import Form
from sweepledger.distributions.rounding import DRAWN_INDEX_STEPS, bounded, index_at
from sweepledger.structs import domain


@dataclass(frozen=True, slots=True)
class IntUniform(domain.Domain):
    """Every integer from `low` to `high`, both included."""

    low: int
    high: int
    is_whole: ClassVar[bool] = True
    is_discrete: ClassVar[bool] = True
    draw_steps: ClassVar[int] = DRAWN_INDEX_STEPS

    @property
    def _count(self) -> int:
        return self.high - self.low + 1

    @property
    def grid_values(self) -> domain.StepRange:
        return domain.StepRange(Fraction(self.low), Fraction(1), self._count)

    @property
    def shape(self) -> domain.NumberRange:
        return domain.NumberRange(self.low, self.high, is_integer=True)

    @property
    def axis(self) -> domain.Axis:
        return domain.Ordinal(self._count)

    @property
    def keys(self) -> dict[str, Any]:
        return {"distribution": "int_uniform", "min": self.low, "max": self.high}

    def quantile(self) -> domain.Quantile:
        """Divide the interval evenly among the integers."""
        low, count = self.low, self._count
        return lambda u: low + index_at(u, count)

    def coordinate(self) -> domain.CoordinateOf:
        """Return the middle of the part of each integer."""
        low, count = self.low, self._count
        return bounded(lambda value: (value - low + 0.5) / count, low, self.high)

    def codec(self) -> domain.Codec:
        """Number the integers."""
        low, numbers = self.low, self.grid_values

        def encode(value: Any) -> int | None:
            return int(value) - low if value in numbers else None

        return lambda index: low + int(index), encode


FORMS = {
    "int_uniform": Form(
        "min max", "", lambda keys: IntUniform(int(keys["min"]), int(keys["max"])), is_integer=True
    )
}
TEXT = "`int_uniform` (min, max: integers, both included)"
