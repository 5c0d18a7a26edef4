"""Normally distributed numbers, between bounds if there are any."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from sys import float_info

from sweepledger.distributions import exact_quantiles
from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import Form
from sweepledger.distributions.quantized import with_rounded
from sweepledger.distributions.rounding import ERROR, EXACT_QUANTILE_STEPS, ContinuousQuantile
from sweepledger.structs.domain import Bell

TAIL_ERROR = 10
"""The standard normal quantile is a few times less exact eight deviations from the mean than near it."""

LEAST_MASS = 1e-280
"""If less probability lies between the bounds, doubles cannot divide it."""

TAIL = 16
"""Squared distance from the mean, in standard deviations, at which a quantile takes twice the steps."""


@dataclass(frozen=True, slots=True)
class Normal(Continuous):
    """The normal distribution, truncated at the bounds if there are any."""

    mu: float = 0.0
    sigma: float = 1.0
    low: float | None = None
    high: float | None = None

    @property
    def shape(self) -> Bell:
        return Bell(self.mu, self.sigma, low=self.low, high=self.high)

    @property
    def exact_steps(self) -> float:
        """Steps, more for distant bounds; the exact function sums no terms for bounds beyond MAX_DEVIATIONS."""
        ends = [abs(end - self.mu) / self.sigma for end in self.shape.ends]
        farthest = max((end for end in ends if end <= exact_quantiles.MAX_DEVIATIONS), default=0)
        return EXACT_QUANTILE_STEPS * (1 + farthest**2 / TAIL)

    @property
    def name(self) -> str:
        return "truncated_normal" if self.shape.ends else "normal"

    def unrounded(self) -> ContinuousQuantile:
        """Scale the standard normal quantile of the share between the bounds."""
        mu, sigma, inverse = self.mu, self.sigma, exact_quantiles.standard_normal().inv_cdf
        low, high = (min(max(end, -float_info.max), float_info.max) for end in self.support)
        start, end = ((bound - mu) / sigma for bound in self.support)
        mass = _mass_between(start, end)
        if mass < LEAST_MASS:
            nearest = low if start > 0 else high
            return ContinuousQuantile(lambda _: nearest, low=low, high=high)
        below, above = standard_cdf(start), standard_cdf(-end)

        def standard(u: float) -> float:
            # From the nearer end: close to 1, doubles are too coarse for a tail.
            probability = below + u * mass
            if probability < 0.5:  # noqa: PLR2004  (the middle)
                return inverse(probability)
            return -inverse(above + (1 - u) * mass)

        return ContinuousQuantile(
            lambda u: mu + sigma * standard(u),
            lambda u: exact_quantiles.normal(u, mu, sigma, standard(u), bounds=(self.low, self.high)),
            absolute=ERROR * (abs(mu) + TAIL_ERROR * sigma),
            relative=ERROR,
            low=low,
            high=high,
        )

    def below(self) -> Callable[[float], float]:
        """Return the share of the mass between the bounds."""
        mu, sigma = self.mu, self.sigma
        start, end = ((bound - mu) / sigma for bound in self.support)
        mass = _mass_between(start, end)
        if mass < LEAST_MASS:  # all draws give the same value
            return lambda _: 0.5
        return lambda value: _mass_between(start, (value - mu) / sigma) / mass


def _mass_between(start: float, end: float) -> float:
    """Return the probability between two standard values, computed in the tail that has more digits."""
    if start > 0:
        return standard_cdf(-start) - standard_cdf(-end)
    return standard_cdf(end) - standard_cdf(start)


def standard_cdf(z: float) -> float:
    """Return the standard normal distribution's mass below z, to full precision in the lower tail."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


FORMS = {
    **with_rounded({"normal": Form("", "mu sigma", Normal.of)}),
    "truncated_normal": Form("", "mu sigma min max", Normal.of),
}
TEXT = "`normal` (mu, sigma), `truncated_normal` (mu, sigma, min and/or max)"
