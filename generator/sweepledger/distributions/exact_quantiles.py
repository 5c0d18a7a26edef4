"""Quantiles to thirty digits and more in decimal arithmetic: slow, and the same on every platform.

Only for the few values so close to a rounding edge that a double cannot decide.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statistics import NormalDist

_DIGITS = 60
"""Newton's step doubles the digits of a double; as many again protect against cancellation."""

MAX_DEVIATIONS = 40
"""Beyond this number of standard deviations the tail has a mass of 10^-349, and the sum has too many terms."""


@cache
def standard_normal() -> "NormalDist":
    """Return the standard normal distribution. Imported late: few commands draw, and the module takes time to load."""
    from statistics import NormalDist  # noqa: PLC0415

    return NormalDist()


def log_uniform(u: float, low: float, high: float) -> Decimal:
    """Return the quantile of a log-uniform distribution between two positive numbers."""
    with localcontext(_context(_DIGITS)):
        part = Decimal(u)
        return ((1 - part) * Decimal(low).ln() + part * Decimal(high).ln()).exp()


def log_normal(u: float, mu: float, sigma: float) -> Decimal:
    """Return the quantile of a log-normal distribution."""
    with localcontext(_context(_DIGITS)):
        return normal(u, mu, sigma, standard_normal().inv_cdf(u)).exp()


def normal(
    u: float,
    mu: float,
    sigma: float,
    near: float,
    *,
    bounds: tuple[float | None, float | None] = (None, None),
) -> Decimal:
    """Return the quantile of a normal distribution, truncated at the bounds, from a standard value near it."""
    # In the tail, where 1 - cdf is 10^-k, k more digits are needed: k < near^2 / 4.
    with localcontext(_context(_DIGITS + int(near * near / 4))):
        center, width = Decimal(mu), Decimal(sigma)
        low, high = bounds
        below = Decimal(0) if low is None else _cdf((Decimal(low) - center) / width)
        above = Decimal(1) if high is None else _cdf((Decimal(high) - center) / width)
        # Newton's step doubles the digits of a double.
        start = Decimal(near)
        return center + width * (
            start - (_cdf(start) - below - Decimal(u) * (above - below)) / _density(start)
        )


def _context(digits: int) -> Context:
    # No traps: a number that is too large becomes infinite, and the caller clips it to the bounds.
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _density(z: Decimal) -> Decimal:
    return (-z * z / 2).exp() / (2 * _pi(getcontext().prec)).sqrt()


def _cdf(z: Decimal) -> Decimal:
    """Sum 1/2 + density * (z + z^3/3 + z^5/15 + ...), whose terms all have one sign."""
    if abs(z) > MAX_DEVIATIONS:
        return Decimal(z > 0)
    term = total = z
    divisor = 1
    while total + term != total:
        divisor += 2
        term *= z * z / divisor
        total += term
    return Decimal("0.5") + _density(z) * total


@cache
def _pi(digits: int) -> Decimal:
    """Sum 3 + 3/24 + 3/24 * 9/80 + ..., which is 6 arcsin(1/2), with ten digits to spare."""
    with localcontext(_context(digits + 10)):
        term = total = Decimal(3)
        odd = 1
        while total + term != total:
            term *= Decimal(odd * odd) / ((odd + 1) * (odd + 2) * 4)
            total += term
            odd += 2
        return total
