"""Quantiles to thirty digits and more in decimal arithmetic: slow, and the same on every platform.

Only for the few values that are too close to a rounding edge for a double to decide.
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


def normal(u: float, mu: float, sigma: float) -> Decimal:
    """Return the quantile of a normal distribution."""
    with localcontext(_context(_DIGITS)):
        return Decimal(mu) + Decimal(sigma) * _refined(standard_normal().inv_cdf(u), Decimal(u))


def log_normal(u: float, mu: float, sigma: float) -> Decimal:
    """Return the quantile of a log-normal distribution."""
    with localcontext(_context(_DIGITS)):
        return normal(u, mu, sigma).exp()


def truncated_normal(
    u: float, mu: float, sigma: float, bounds: tuple[float | None, float | None], near: float
) -> Decimal:
    """Return the quantile of a truncated normal distribution, from a standard value near it."""
    # In the tail, where 1 - cdf is 10^-k, k more digits are needed: k < near^2 / 4.
    with localcontext(_context(_DIGITS + int(near * near / 4))):
        center, width = Decimal(mu), Decimal(sigma)
        low, high = bounds
        below = Decimal(0) if low is None else _cdf((Decimal(low) - center) / width)
        above = Decimal(1) if high is None else _cdf((Decimal(high) - center) / width)
        return center + width * _refined(near, below + Decimal(u) * (above - below))


def _context(digits: int) -> Context:
    # No traps: a number that is too large becomes infinite, and the caller clips it to the bounds.
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _refined(near: float, probability: Decimal) -> Decimal:
    """Refine a double's quantile of the standard normal distribution to twice its digits with Newton's step."""
    start = Decimal(near)
    return start - (_cdf(start) - probability) / _density(start)


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
    """Compute pi, which is 16 arctan(1/5) - 4 arctan(1/239) (Machin, 1706), with ten digits to spare."""
    places = digits + 10
    return Decimal(16 * _arctan(5, 10**places) - 4 * _arctan(239, 10**places)).scaleb(-places)


def _arctan(inverse: int, scale: int) -> int:
    """Sum 1/x - 1/3x^3 + 1/5x^5 - ... for x = inverse, in units of 1/scale."""
    power, total, odd = scale // inverse, 0, 1
    while power:
        total += power // odd if odd % 4 == 1 else -(power // odd)
        power //= inverse * inverse
        odd += 2
    return total
