"""From a value back to where it lies between 0 and 1: what quantiles do, the other way round."""

import math
from collections.abc import Sequence
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
from generator.structs.values import Value, identity


def unit(domain: Domain, value: Value) -> float | None:
    """Give the part of a domain that lies below a value, for one of several values below its middle.

    None for constants, and for what the domain does not have.
    """
    match domain:
        case Constant():
            return None
        case Choice(values, probabilities):
            return _listed(values, probabilities, value)
        case _ if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        case IntUniform(low, high):
            return (value - low + 0.5) / (high - low + 1) if low <= value <= high else None
        case Quantized(of):
            return _inside(_below(of, value))
        case Uniform() | LogUniform() | Normal() | LogNormal() | Beta():
            return _inside(_below(domain, value))
        case _:
            assert_never(domain)


def _listed(values: Sequence[Value], probabilities: Sequence[float] | None, value: Value) -> float | None:
    wanted = identity(value)
    parts = probabilities or [1 / len(values)] * len(values)
    for at, candidate in enumerate(values):
        if identity(candidate) == wanted:
            return math.fsum(parts[:at]) + parts[at] / 2
    return None


def _inside(part: float) -> float | None:
    return part if 0 <= part <= 1 else None


def _below(domain: Continuous, value: float) -> float:
    """Compute the cumulative distribution; outside the bounds it may leave 0 to 1."""
    match domain:
        case Uniform(low, high):
            return (value - low) / (high - low)
        case LogUniform(low, high):
            return math.log(value / low) / math.log(high / low) if value > 0 else -1
        case Normal(mu, sigma, low, high):
            below = NormalDist(mu, sigma).cdf
            start = 0 if low is None else below(low)
            end = 1 if high is None else below(high)
            return (below(value) - start) / (end - start) if end > start else 0.5
        case LogNormal(mu, sigma):
            return NormalDist(mu, sigma).cdf(math.log(value)) if value > 0 else value
        case Beta(a, b):
            # Half a second, for the few who use it.
            from scipy.special import betainc  # type: ignore[import-untyped]  # noqa: PLC0415

            return float(betainc(a, b, value)) if 0 <= value <= 1 else -1
        case _:
            assert_never(domain)
