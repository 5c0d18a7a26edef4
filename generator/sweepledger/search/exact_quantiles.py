"""Quantiles to thirty digits and more, by decimal arithmetic alone: slow, and the same on every machine.

Only for the few values that lie too near the edge between two rounded ones for a double to decide.
"""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from functools import cache
from statistics import NormalDist

_DIGITS = 60
"""Twice a double's, which Newton's step doubles, and as many again against cancellation."""

_FARTHEST = 40
"""Standard deviations; beyond lie 10^-349 of all, and the sum has more terms than the square of them."""


def log_uniform(u: float, low: float, high: float) -> Decimal:
    """Find the point at a fraction of the way between two positive numbers, on a logarithmic scale."""
    with localcontext(_context(_DIGITS)):
        part = Decimal(u)
        return ((1 - part) * Decimal(low).ln() + part * Decimal(high).ln()).exp()


def normal(u: float, mu: float, sigma: float) -> Decimal:
    """Find the quantile of a normal distribution."""
    with localcontext(_context(_DIGITS)):
        return Decimal(mu) + Decimal(sigma) * _refined(NormalDist().inv_cdf(u), Decimal(u))


def log_normal(u: float, mu: float, sigma: float) -> Decimal:
    """Find the quantile of a number whose logarithm is normal."""
    with localcontext(_context(_DIGITS)):
        return normal(u, mu, sigma).exp()


def truncated_normal(
    u: float, mu: float, sigma: float, bounds: tuple[float | None, float | None], near: float
) -> Decimal:
    """Find the quantile of a normal distribution that is cut off at bounds, from a standard value near it."""
    # In the tail, where 1 - cdf is 10^-k, k more digits are needed: k < near^2 / 4.
    with localcontext(_context(_DIGITS + int(near * near / 4))):
        center, width = Decimal(mu), Decimal(sigma)
        low, high = bounds
        below = Decimal(0) if low is None else _cdf((Decimal(low) - center) / width)
        above = Decimal(1) if high is None else _cdf((Decimal(high) - center) / width)
        return center + width * _refined(near, below + Decimal(u) * (above - below))


def _context(digits: int) -> Context:
    # Nothing is raised: what is too large becomes infinite, and the caller keeps it within bounds.
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _refined(near: float, probability: Decimal) -> Decimal:
    """Bring a double's quantile of the standard normal distribution to twice its digits: Newton's step."""
    start = Decimal(near)
    return start - (_cdf(start) - probability) / _density(start)


def _density(z: Decimal) -> Decimal:
    return (-z * z / 2).exp() / (2 * _pi(getcontext().prec)).sqrt()


def _cdf(z: Decimal) -> Decimal:
    """Sum 1/2 + density * (z + z^3/3 + z^5/15 + ...), in which no term cancels another."""
    if abs(z) > _FARTHEST:
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
