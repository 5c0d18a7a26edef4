"""Rounding of quantiles, so that every platform draws the same values.

Numbers are rounded to ten significant digits or to an exact decimal multiple of q, and clipped to the bounds.
The last bits of a double depend on the platform's exp, log and erfc. Each quantile function therefore has an
error bound; if rounding depends on these bits, exact arithmetic decides, so that every platform draws the same
values. The beta distribution is the exception: about one quantile in a hundred thousand is so close to a
rounding edge that two versions of SciPy may differ by one unit of the tenth digit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from sys import float_info

from sweepledger.structs.domain import CoordinateOf, Quantile
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value, is_number

TEN_DIGITS = "%.9e"
"""Enough for any hyperparameter, and six digits fewer than a double has."""

LEAST = 2.0**-54
"""Replaces u = 0: the middle of its cell, where every quantile is finite."""

_CELLS = 2**53

_NEARLY_INFINITE = 1e307
"""Less than a tenth of the largest double: the nearest multiple of any q is still finite."""

_SAMPLES = 64

ERROR = 1e-14
"""Forty units in a double's last place: more than the error of any platform's mathematical library."""

DRAWN_INDEX_STEPS = 5
"""Steps of drawing an index, in the unit of `sweepledger.search.estimates`."""
EXACT_QUANTILE_STEPS = 750
"""Steps of a quantile with sixty digits."""


def round_to_ten_digits(number: float) -> float:
    """Round to ten significant digits; minus zero becomes zero."""
    return float(TEN_DIGITS % number) + 0.0


def index_at(u: float, count: int) -> int:
    """Return the index in `range(count)` that a uniform number selects; all are equally likely."""
    # Integers: for large counts, a product of doubles could round up to count.
    return int(u * _CELLS) * count // _CELLS


@dataclass(frozen=True, slots=True)
class ContinuousQuantile:
    """A quantile function for 0 < u < 1, with its error bound."""

    fast: Callable[[float], float]
    exact: Callable[[float], Decimal] | None = None
    """None: the fast function is the only one, or gives the same values on all platforms."""
    absolute: float = 0.0
    """Absolute part of the error bound."""
    relative: float = 0.0
    """Relative part of the error bound; both are added."""
    low: float = -float_info.max
    high: float = float_info.max

    def slack(self, value: float) -> float:
        """Bound the error of a fast value."""
        return self.absolute + self.relative * abs(value)


def rounded_quantile(quantile: ContinuousQuantile) -> Callable[[float], float]:
    """Round a quantile function's values to ten digits, within its bounds."""
    fast, low, high = quantile.fast, float(quantile.low), float(quantile.high)
    exact, absolute, relative = quantile.exact, quantile.absolute, quantile.relative
    if exact is None:
        return lambda u: min(max(float(TEN_DIGITS % fast(u or LEAST)) + 0.0, low), high)

    def rounded(u: float) -> float:
        u = u or LEAST
        value = fast(u)
        slack = absolute + relative * abs(value)
        text = TEN_DIGITS % (value - slack)
        if text != TEN_DIGITS % (value + slack):
            text = format(exact(u), ".9e")
        return min(max(float(text) + 0.0, low), high)

    return rounded


def quantized_quantile(quantile: ContinuousQuantile, q: float) -> Quantile:
    """Round to multiples of q, halves to the even one. A whole q gives integers, as in W&B."""
    top, bottom = Fraction(repr(q)).as_integer_ratio()
    finish = _as_integer if bottom == 1 else float
    unquantized = rounded_quantile(quantile)
    largest = min(q * _CELLS, _NEARLY_INFINITE)

    def multiple(u: float) -> float:
        value = quantile.fast(u)
        # Beyond it, neighbouring doubles are more than q apart, and the quotient may be infinite.
        if abs(value) >= largest:
            return unquantized(u)
        slack = quantile.slack(value)
        nearest, most = round((value - slack) / q), round((value + slack) / q)
        if nearest != most and quantile.exact is not None:
            nearest = int((quantile.exact(u) / Decimal(repr(q))).to_integral_value(ROUND_HALF_EVEN))
        # A quotient of integers is the double nearest to the decimal: 0.3, and never 0.30000000000000004.
        return nearest * top / bottom

    return lambda u: finish(min(max(multiple(u or LEAST), quantile.low), quantile.high))


def _as_integer(number: float) -> float:
    """Return a whole number that all readers read exactly as an integer, other numbers unchanged."""
    return int(number) if abs(number) <= LARGEST_EXACT_INTEGER and number == int(number) else number


def exact_share(quantile: ContinuousQuantile, q: float | None = None) -> float:
    """Estimate the share of draws that need exact arithmetic, which takes a hundred times as long."""
    if quantile.exact is None:
        return 0.0
    values = [quantile.fast((2 * n + 1) / (2 * _SAMPLES)) for n in range(_SAMPLES)]
    needed = 0
    for value in values:
        low, high = value - quantile.slack(value), value + quantile.slack(value)
        if q is None or abs(value) >= min(q * _CELLS, _NEARLY_INFINITE):
            needed += TEN_DIGITS % low != TEN_DIGITS % high
        else:
            needed += round(low / q) != round(high / q)
    return needed / _SAMPLES


def bounded(coordinate: Callable[[float], float], low: float, high: float) -> CoordinateOf:
    """Return the coordinates of the numbers between two bounds; None for other values."""

    def coordinate_of(value: Value) -> float | None:
        if not is_number(value) or not low <= value <= high:
            return None
        return min(max(coordinate(float(value)), 0.0), 1.0)

    return coordinate_of
