"""Positive numbers whose natural logarithm is normally distributed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sweepledger.distributions import exact_quantiles
from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import BoundKind, Form
from sweepledger.distributions.normal import TAIL_ERROR, standard_cdf
from sweepledger.distributions.quantized import with_rounded
from sweepledger.distributions.rounding import ERROR, ContinuousQuantile
from sweepledger.structs.domain import Bell

LARGEST_EXPONENT = 708.0
"""exp of it, and of minus it, is a normal finite double."""
LARGEST = 3e307
"""Slightly less than exp(LARGEST_EXPONENT); every platform writes it with the same digits."""


@dataclass(frozen=True, slots=True)
class LogNormal(Continuous):
    """Positive numbers whose natural logarithm is normal."""

    mu: float = 0.0
    sigma: float = 1.0
    name: ClassVar[str] = "log_normal"

    @property
    def shape(self) -> Bell:
        return Bell(self.mu, self.sigma, is_log=True)

    def unrounded(self) -> ContinuousQuantile:
        """Raise e to the normal quantile."""
        mu, sigma, inverse = self.mu, self.sigma, exact_quantiles.standard_normal().inv_cdf

        def fast(u: float) -> float:
            return math.exp(min(max(mu + sigma * inverse(u), -LARGEST_EXPONENT), LARGEST_EXPONENT))

        return ContinuousQuantile(
            fast,
            lambda u: exact_quantiles.log_normal(u, mu, sigma),
            relative=ERROR * (1 + abs(mu) / 10 + TAIL_ERROR * sigma),
            low=0.0,
            high=LARGEST,
        )

    def below(self) -> Callable[[float], float]:
        """Return the mass below the logarithm."""
        mu, sigma = self.mu, self.sigma
        return lambda value: standard_cdf((math.log(value) - mu) / sigma) if value > 0 else 0.0


FORMS = with_rounded({"log_normal": Form("", "mu sigma", LogNormal.of, scale=BoundKind.EXPONENTS)})
TEXT = "`log_normal` (mu, sigma of the natural logarithm)"
