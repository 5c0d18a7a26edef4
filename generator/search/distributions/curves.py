"""The quantile functions of continuous distributions, each twice: fast in doubles, and exactly.

A double's last bits depend on the machine's exp, log and erfc. So each curve says how far its fast value may
be off; whoever rounds it asks for the exact one where that decides.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from statistics import NormalDist
from sys import float_info
from typing import assert_never

from generator.search.distributions import exact
from generator.structs.domain import Beta, Continuous, LogNormal, LogUniform, Normal, Uniform

ERROR = 1e-14
"""Forty units in a double's last place: more than any machine's mathematical library is off by."""

_LARGEST_EXPONENT = 708.0
"""e to its power, and to minus it, is an ordinary finite double."""
_LARGEST = 3e307
"""Just below that power, and written alike by every machine."""

_LEAST_MASS = 1e-280
"""Less of a distribution between the bounds than this, and doubles cannot divide it."""

_STANDARD = NormalDist()

_TAIL = 10
"""Eight deviations from the middle the standard normal quantile is off by a few times more than near it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A quantile function for 0 < u < 1."""

    fast: Callable[[float], float]
    exact: Callable[[float], Decimal] | None = None
    """None: the fast one is the only one, or already the same everywhere."""
    absolute: float = 0.0
    """How far the fast value may be off."""
    relative: float = 0.0
    """The same, as a part of the value; both add up."""
    low: float = -float_info.max
    high: float = float_info.max

    def slack(self, value: float) -> float:
        """Bound the error of a fast value."""
        return self.absolute + self.relative * abs(value)


def curve(domain: Continuous) -> Curve:
    """Give a distribution's quantile function."""
    match domain:
        case Uniform(low, high):
            # Sums and products of doubles are the same everywhere, and so written they never overflow.
            return Curve(lambda u: low * (1 - u) + high * u, low=low, high=high)
        case LogUniform():
            return _log_uniform(domain)
        case Normal(low=None, high=None):
            return _normal(domain)
        case Normal():
            return _truncated(domain)
        case LogNormal():
            return _log_normal(domain)
        case Beta(a, b):
            return Curve(_beta(a, b), low=0.0, high=1.0)
        case _:
            assert_never(domain)


def _log_uniform(domain: LogUniform) -> Curve:
    low, high = domain.low, domain.high
    return Curve(
        lambda u: low ** (1 - u) * high**u,
        lambda u: exact.log_uniform(u, low, high),
        relative=ERROR * (1 + abs(math.log(low)) / 10),
        low=low,
        high=high,
    )


def _normal(domain: Normal) -> Curve:
    mu, sigma = domain.mu, domain.sigma
    standard = _STANDARD.inv_cdf
    return Curve(
        lambda u: mu + sigma * standard(u),
        lambda u: exact.normal(u, mu, sigma),
        absolute=ERROR * (abs(mu) + _TAIL * sigma),
        relative=ERROR,
    )


def _log_normal(domain: LogNormal) -> Curve:
    mu, sigma = domain.mu, domain.sigma
    standard = _STANDARD.inv_cdf

    def fast(u: float) -> float:
        return math.exp(min(max(mu + sigma * standard(u), -_LARGEST_EXPONENT), _LARGEST_EXPONENT))

    return Curve(
        fast,
        lambda u: exact.log_normal(u, mu, sigma),
        relative=ERROR * (1 + abs(mu) / 10 + _TAIL * sigma),
        low=0.0,
        high=_LARGEST,
    )


def _truncated(domain: Normal) -> Curve:
    mu, sigma = domain.mu, domain.sigma
    low = -float_info.max if domain.low is None else domain.low
    high = float_info.max if domain.high is None else domain.high
    start, end = (low - mu) / sigma, (high - mu) / sigma
    mass = _below(-start) - _below(-end) if start > 0 else _below(end) - _below(start)
    if mass < _LEAST_MASS:
        nearest = low if start > 0 else high
        return Curve(lambda _: nearest, low=low, high=high)
    below, above = _below(start), _below(-end)

    def standard(u: float) -> float:
        # From the nearer end: close to 1, doubles are too coarse for a tail.
        probability = below + u * mass
        if probability < 0.5:  # noqa: PLR2004  (the middle)
            return _STANDARD.inv_cdf(probability)
        return -_STANDARD.inv_cdf(above + (1 - u) * mass)

    return Curve(
        lambda u: mu + sigma * standard(u),
        lambda u: exact.truncated_normal(u, mu, sigma, (domain.low, domain.high), standard(u)),
        absolute=ERROR * (abs(mu) + _TAIL * sigma),
        relative=ERROR,
        low=low,
        high=high,
    )


def _below(z: float) -> float:
    """Give the standard normal distribution's mass below z, to full precision in the lower tail."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _beta(a: float, b: float) -> Callable[[float], float]:
    """Give SciPy's inverse of the incomplete beta function."""
    # Half a second, for the few who draw from it.
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # noqa: PLC0415

    return lambda u: float(betaincinv(a, b, u))
