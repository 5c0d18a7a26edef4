"""Positive numbers between two bounds whose logarithm is uniform; a spec gives the bounds or their logarithms."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sweepledger.distributions import exact_quantiles
from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import BoundKind, Form, Keys
from sweepledger.distributions.quantized import with_rounded
from sweepledger.distributions.rounding import ERROR, ContinuousQuantile
from sweepledger.structs.domain import NumberRange


@dataclass(frozen=True, slots=True)
class LogUniform(Continuous):
    """Positive numbers whose logarithm is uniform. The bounds are values; W&B's exponents are converted on import."""

    low: float
    high: float
    name: ClassVar[str] = "log_uniform_values"

    @property
    def shape(self) -> NumberRange:
        return NumberRange(self.low, self.high, is_log=True)

    def unrounded(self) -> ContinuousQuantile:
        """Interpolate the logarithms."""
        low, high = self.low, self.high
        return ContinuousQuantile(
            lambda u: low ** (1 - u) * high**u,
            lambda u: exact_quantiles.log_uniform(u, low, high),
            relative=ERROR * (1 + abs(math.log(low)) / 10),
            low=low,
            high=high,
        )

    def below(self) -> Callable[[float], float]:
        """Return the share of the width of the logarithms."""
        start, width = math.log(self.low), math.log(self.high / self.low)
        return lambda value: (math.log(value) - start) / width


def _form(scale: BoundKind, *, is_inverse: bool = False) -> Form:
    def make(keys: Keys) -> LogUniform:
        return LogUniform(*map(float, form.ends(keys["min"], keys["max"])))

    form = Form("min max", "count", make, scale=scale, is_inverse=is_inverse)
    return form


FORMS = {
    **with_rounded({"log_uniform": _form(BoundKind.EXPONENTS), "log_uniform_values": _form(BoundKind.LOG)}),
    "inv_log_uniform": _form(BoundKind.EXPONENTS, is_inverse=True),
    "inv_log_uniform_values": _form(BoundKind.LOG),
}
TEXT = (
    "`log_uniform_values` (min, max), `log_uniform` (min, max are natural-log exponents)\n"
    "- `inv_log_uniform_values` (min, max), `inv_log_uniform` (exponents: values from exp(-max) to exp(-min))"
)
