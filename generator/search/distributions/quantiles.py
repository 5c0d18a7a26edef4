"""From a fraction between 0 and 1 to a value of a domain: the one way in which anything is drawn.

Real numbers are rounded to ten significant digits, multiples of q are exact decimals, and both stay within
the domain's bounds. Where rounding hangs on a double's last bits it is decided by exact arithmetic, so that
every machine draws the same. What remains is the beta distribution: its quantiles are SciPy's, good to some
1e-15 of a value, and about one in a hundred thousand of them lies so near a rounding edge that two versions
of SciPy may disagree there, by one unit of the tenth digit.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import accumulate
from typing import assert_never

from generator.search.distributions.curves import Curve, curve
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
from generator.structs.values import LARGEST_EXACT_INTEGER, Value

TEN_DIGITS = "%.9e"
"""Enough for any hyperparameter, and six fewer than a double has: room for the errors of many steps."""

LEAST = 2.0**-54
"""What u = 0 stands for, the middle of its cell: so no distribution is asked for its infinite end."""

_CELLS = 2**53

_NEARLY_INFINITE = 1e307
"""Less than a tenth of what a double can be: the nearest multiple of anything is still one."""

_SAMPLES = 64

Quantile = Callable[[float], Value]


def rounded(number: float) -> float:
    """Round to ten significant digits; minus zero becomes zero."""
    return float(TEN_DIGITS % number) + 0.0


def quantile_of(domain: Domain) -> Quantile:
    """Compile a domain to the function from u, 0 <= u < 1, to the value below which that part of it lies."""
    match domain:
        case Constant(value):
            return lambda _: value
        case Choice(values, probabilities) if probabilities is not None:
            return _weighted(values, probabilities)
        case Choice(values):
            return lambda u: values[position(u, len(values))]
        case IntUniform(low, high):
            return lambda u: low + position(u, high - low + 1)
        case Uniform() | LogUniform() | Normal() | LogNormal() | Beta():
            return continuous(curve(domain))
        case Quantized(of, q):
            return quantized(curve(of), q)
        case _:
            assert_never(domain)


def position(u: float, count: int) -> int:
    """Give the place among so many, each of them as likely as the others."""
    # Whole numbers: for large counts, a product of doubles could round up to one beyond the last.
    return int(u * _CELLS) * count // _CELLS


def raw_quantile(domain: Continuous, u: float) -> float:
    """Give a continuous domain's quantile as the machine computes it, unrounded.

    Nothing is drawn so: it is what tests compare with W&B's own.
    """
    return curve(domain).fast(u or LEAST)


def _weighted(values: Sequence[Value], probabilities: Sequence[float]) -> Quantile:
    possible = [(value, part) for value, part in zip(values, probabilities, strict=True) if part > 0]
    ends = list(accumulate(part for _, part in possible))
    # The last end is left out: where the parts add up to a little less than 1, the last value gets the rest.
    inner = ends[:-1]
    return lambda u: possible[bisect_right(inner, u)][0]


def continuous(found: Curve) -> Callable[[float], float]:
    """Round a curve's values to ten digits, within its bounds."""
    fast, low, high = found.fast, float(found.low), float(found.high)
    exact, absolute, relative = found.exact, found.absolute, found.relative
    if exact is None:
        return lambda u: min(max(float(TEN_DIGITS % fast(u or LEAST)) + 0.0, low), high)

    def settled(u: float) -> float:
        u = u or LEAST
        value = fast(u)
        slack = absolute + relative * abs(value)
        text = TEN_DIGITS % (value - slack)
        if text != TEN_DIGITS % (value + slack):
            text = format(exact(u), ".9e")
        return min(max(float(text) + 0.0, low), high)

    return settled


def exact_share(domain: Continuous, q: float | None = None) -> float:
    """Estimate how often a draw needs exact arithmetic, which takes a hundred times as long."""
    found = curve(domain)
    if found.exact is None:
        return 0.0
    asked = sum(_is_undecided(found, found.fast((2 * n + 1) / (2 * _SAMPLES)), q) for n in range(_SAMPLES))
    return asked / _SAMPLES


def _is_undecided(found: Curve, value: float, q: float | None) -> bool:
    slack = found.slack(value)
    if q is None or abs(value) >= min(q * _CELLS, _NEARLY_INFINITE):
        return TEN_DIGITS % (value - slack) != TEN_DIGITS % (value + slack)
    return round((value - slack) / q) != round((value + slack) / q)


def quantized(found: Curve, q: float) -> Quantile:
    """Round to multiples of q, halves to the even one. A whole q gives integers, as in W&B."""
    top, bottom = Fraction(repr(q)).as_integer_ratio()
    finish = _whole if bottom == 1 else float
    unquantized = continuous(found)
    largest = min(q * _CELLS, _NEARLY_INFINITE)

    def multiple(u: float) -> float:
        value = found.fast(u)
        # Beyond, neighbouring doubles are more than q apart, and the quotient may be infinite.
        if abs(value) >= largest:
            return unquantized(u)
        # A quotient of integers is the double nearest to the decimal: 0.3, and never 0.30000000000000004.
        return _times(found, u, value, q) * top / bottom

    return lambda u: finish(min(max(multiple(u or LEAST), found.low), found.high))


def _whole(number: float) -> float:
    """Write a number as an integer where it is one that all readers keep."""
    return int(number) if abs(number) <= LARGEST_EXACT_INTEGER and number == int(number) else number


def _times(found: Curve, u: float, value: float, q: float) -> int:
    """Divide the quantile of u, whose fast value is known, by q, to the nearest whole number."""
    slack = found.slack(value)
    least, most = round((value - slack) / q), round((value + slack) / q)
    if least == most or found.exact is None:
        return least
    return int((found.exact(u) / Decimal(repr(q))).to_integral_value(ROUND_HALF_EVEN))
