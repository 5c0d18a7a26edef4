"""Real numbers between two bounds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import Form
from sweepledger.distributions.quantized import with_rounded
from sweepledger.distributions.rounding import ContinuousQuantile
from sweepledger.structs.domain import NumberRange


@dataclass(frozen=True, slots=True)
class Uniform(Continuous):
    """The uniform distribution between two bounds."""

    low: float
    high: float
    name: ClassVar[str] = "uniform"

    @property
    def shape(self) -> NumberRange:
        return NumberRange(self.low, self.high)

    def unrounded(self) -> ContinuousQuantile:
        """Interpolate: sums and products of doubles are the same on all platforms, and this form never overflows."""
        low, high = self.low, self.high
        return ContinuousQuantile(lambda u: low * (1 - u) + high * u, low=low, high=high)

    def below(self) -> Callable[[float], float]:
        """Return the share of the width."""
        low, high = self.low, self.high
        return lambda value: (value - low) / (high - low)


FORMS = with_rounded({"uniform": Form("min max", "count", Uniform.of)})
TEXT = "`uniform` (min, max)"
