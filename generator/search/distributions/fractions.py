"""From a value of a continuous domain to the fraction that lies below it: what models are told.

The inverse of the quantile functions, in plain doubles: a model of a few digits needs no exact arithmetic.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import assert_never

from generator.structs.domain import (
    Beta,
    Choice,
    Constant,
    Continuous,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from generator.structs.values import Value

Fractions = Callable[[Value], float | None]

_STANDARD = NormalDist()


def fraction_of(domain: Domain) -> Fractions:
    """Compile a continuous domain to the function from its values to fractions; None for any other value."""
    match domain:
        case Constant() | Choice() | IntUniform():
            raise AssertionError(f"only continuous domains have fractions, but got {domain!r}")
        case Quantized(of, _):
            return fraction_of(of)
        case _:
            below, low, high = _below(domain), *_bounds(domain)

    def fraction(value: Value) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            return None
        return min(max(below(float(value)), 0.0), 1.0)

    return fraction


def _bounds(domain: Continuous) -> tuple[float, float]:
    match domain:
        case Uniform(low, high) | LogUniform(low, high):
            return low, high
        case Normal(low=low, high=high):
            return -math.inf if low is None else low, math.inf if high is None else high
        case LogNormal():
            return 0.0, math.inf
        case Beta():
            return 0.0, 1.0
        case _:
            assert_never(domain)


def _below(domain: Continuous) -> Callable[[float], float]:
    match domain:
        case Uniform(low, high):
            return lambda value: (value - low) / (high - low)
        case LogUniform(low, high):
            start, width = math.log(low), math.log(high / low)
            return lambda value: (math.log(value) - start) / width
        case Normal():
            return _normal(domain)
        case LogNormal(mu, sigma):
            return lambda value: _STANDARD.cdf((math.log(value) - mu) / sigma) if value > 0 else 0.0
        case Beta(a, b):
            return _beta(a, b)
        case _:
            assert_never(domain)


def _normal(domain: Normal) -> Callable[[float], float]:
    mu, sigma = domain.mu, domain.sigma
    start = 0.0 if domain.low is None else _STANDARD.cdf((domain.low - mu) / sigma)
    mass = (1.0 if domain.high is None else _STANDARD.cdf((domain.high - mu) / sigma)) - start
    if mass <= 0:  # so far out in a tail that doubles see nothing there
        return lambda _: 0.5
    return lambda value: (_STANDARD.cdf((value - mu) / sigma) - start) / mass


def _beta(a: float, b: float) -> Callable[[float], float]:
    # Half a second, for the few who draw from it.
    from scipy.special import betainc  # type: ignore[import-untyped]  # noqa: PLC0415

    return lambda value: float(betainc(a, b, value))
