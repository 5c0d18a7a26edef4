"""Distributions: quantile functions, which draw every value, and cumulative distribution functions.

Numbers are rounded to ten significant digits or to an exact decimal multiple of q, and clipped to the bounds.
The last bits of a double depend on the platform's exp, log and erfc. Each quantile function therefore has an
error bound; if rounding depends on these bits, exact arithmetic decides, so that every platform draws the same
values. The beta distribution is the exception: about one quantile in a hundred thousand is so close to a
rounding edge that two versions of SciPy may differ by one unit of the tenth digit.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import accumulate
from statistics import NormalDist
from sys import float_info
from typing import assert_never

from sweepledger.search import exact_quantiles
from sweepledger.search.scipy_modules import import_scipy
from sweepledger.structs import domain as domains
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value, identity, is_number

TEN_DIGITS = "%.9e"
"""Enough for any hyperparameter, and six digits fewer than a double has."""

LEAST = 2.0**-54
"""Replaces u = 0: the middle of its cell, where every quantile is finite."""

LARGEST_FRACTION = 1 - 2.0**-53
"""The largest argument of a quantile function."""

_CELLS = 2**53

_NEARLY_INFINITE = 1e307
"""Less than a tenth of the largest double: the nearest multiple of any q is still finite."""

_SAMPLES = 64

ERROR = 1e-14
"""Forty units in a double's last place: more than the error of any platform's mathematical library."""

_LARGEST_EXPONENT = 708.0
"""exp of it, and of minus it, is a normal finite double."""
_LARGEST = 3e307
"""Slightly less than exp(_LARGEST_EXPONENT); every platform writes it with the same digits."""

_LEAST_MASS = 1e-280
"""If less probability lies between the bounds, doubles cannot divide it."""

_STANDARD = NormalDist()

_TAIL = 10
"""The standard normal quantile is a few times less exact eight deviations from the mean than near it."""

Quantile = Callable[[float], Value]
Coordinate = Callable[[Value], float | None]


def round_to_ten_digits(number: float) -> float:
    """Round to ten significant digits; minus zero becomes zero."""
    return float(TEN_DIGITS % number) + 0.0


def quantile_of(domain: domains.Domain) -> Quantile:
    """Compile a domain to its quantile function for 0 <= u < 1."""
    match domain:
        case domains.Constant(value):
            return lambda _: value
        case domains.Choice(values, probabilities) if probabilities is not None:
            return _weighted_choice(values, probabilities)
        case domains.Choice(values):
            return lambda u: values[index_at(u, len(values))]
        case domains.IntUniform(low, high):
            return lambda u: low + index_at(u, high - low + 1)
        case (
            domains.Uniform() | domains.LogUniform() | domains.Normal() | domains.LogNormal() | domains.Beta()
        ):
            return rounded_quantile(continuous_quantile(domain))
        case domains.Quantized(of, q):
            return quantized_quantile(continuous_quantile(of), q)
        case _:
            assert_never(domain)


def index_at(u: float, count: int) -> int:
    """Return the index below count that u selects; all are equally likely."""
    # Integers: for large counts, a product of doubles could round up to count.
    return int(u * _CELLS) * count // _CELLS


def _weighted_choice(values: Sequence[Value], probabilities: Sequence[float]) -> Quantile:
    possible = [(value, part) for value, part in zip(values, probabilities, strict=True) if part > 0]
    ends = list(accumulate(part for _, part in possible))
    # Without the last end: if the parts add up to a little less than 1, the last value gets the rest.
    inner = ends[:-1]
    return lambda u: possible[bisect_right(inner, u)][0]


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


def continuous_quantile(domain: domains.Continuous) -> ContinuousQuantile:
    """Return the quantile function of a distribution, without rounding."""
    match domain:
        case domains.Uniform(low, high):
            # Sums and products of doubles are the same on all platforms, and this form never overflows.
            return ContinuousQuantile(lambda u: low * (1 - u) + high * u, low=low, high=high)
        case domains.LogUniform():
            return _log_uniform_quantile(domain)
        case domains.Normal(low=None, high=None):
            return _normal_quantile(domain)
        case domains.Normal():
            return _truncated_normal_quantile(domain)
        case domains.LogNormal():
            return _log_normal_quantile(domain)
        case domains.Beta(a, b):
            inverse = import_scipy("special", "distribution: beta requires").betaincinv
            return ContinuousQuantile(lambda u: float(inverse(a, b, u)), low=0.0, high=1.0)
        case _:
            assert_never(domain)


def _log_uniform_quantile(domain: domains.LogUniform) -> ContinuousQuantile:
    low, high = domain.low, domain.high
    return ContinuousQuantile(
        lambda u: low ** (1 - u) * high**u,
        lambda u: exact_quantiles.log_uniform(u, low, high),
        relative=ERROR * (1 + abs(math.log(low)) / 10),
        low=low,
        high=high,
    )


def _normal_quantile(domain: domains.Normal) -> ContinuousQuantile:
    mu, sigma = domain.mu, domain.sigma
    standard = _STANDARD.inv_cdf
    return ContinuousQuantile(
        lambda u: mu + sigma * standard(u),
        lambda u: exact_quantiles.normal(u, mu, sigma),
        absolute=ERROR * (abs(mu) + _TAIL * sigma),
        relative=ERROR,
    )


def _log_normal_quantile(domain: domains.LogNormal) -> ContinuousQuantile:
    mu, sigma = domain.mu, domain.sigma
    standard = _STANDARD.inv_cdf

    def fast(u: float) -> float:
        return math.exp(min(max(mu + sigma * standard(u), -_LARGEST_EXPONENT), _LARGEST_EXPONENT))

    return ContinuousQuantile(
        fast,
        lambda u: exact_quantiles.log_normal(u, mu, sigma),
        relative=ERROR * (1 + abs(mu) / 10 + _TAIL * sigma),
        low=0.0,
        high=_LARGEST,
    )


@dataclass(frozen=True, slots=True)
class _Truncation:
    """The bounds of a truncated normal distribution, and the probability around them."""

    mu: float
    sigma: float
    start: float
    """The lower bound in standard deviations from the mean."""
    end: float

    @classmethod
    def of(cls, domain: domains.Normal) -> "_Truncation":
        mu, sigma = domain.mu, domain.sigma
        low = -float_info.max if domain.low is None else domain.low
        high = float_info.max if domain.high is None else domain.high
        return cls(mu, sigma, (low - mu) / sigma, (high - mu) / sigma)

    def mass_below(self, z: float) -> float:
        """Return the probability between the lower bound and z, computed in the tail that has more digits."""
        if self.start > 0:
            return _standard_normal_cdf(-self.start) - _standard_normal_cdf(-z)
        return _standard_normal_cdf(z) - _standard_normal_cdf(self.start)

    @property
    def mass(self) -> float:
        """The probability between the bounds."""
        return self.mass_below(self.end)


def _truncated_normal_quantile(domain: domains.Normal) -> ContinuousQuantile:
    cut = _Truncation.of(domain)
    mu, sigma, mass = cut.mu, cut.sigma, cut.mass
    low = -float_info.max if domain.low is None else domain.low
    high = float_info.max if domain.high is None else domain.high
    if mass < _LEAST_MASS:
        nearest = low if cut.start > 0 else high
        return ContinuousQuantile(lambda _: nearest, low=low, high=high)
    below, above = _standard_normal_cdf(cut.start), _standard_normal_cdf(-cut.end)

    def standard(u: float) -> float:
        # From the nearer end: close to 1, doubles are too coarse for a tail.
        probability = below + u * mass
        if probability < 0.5:  # noqa: PLR2004  (the middle)
            return _STANDARD.inv_cdf(probability)
        return -_STANDARD.inv_cdf(above + (1 - u) * mass)

    return ContinuousQuantile(
        lambda u: mu + sigma * standard(u),
        lambda u: exact_quantiles.truncated_normal(u, mu, sigma, (domain.low, domain.high), standard(u)),
        absolute=ERROR * (abs(mu) + _TAIL * sigma),
        relative=ERROR,
        low=low,
        high=high,
    )


def _standard_normal_cdf(z: float) -> float:
    """Return the standard normal distribution's mass below z, to full precision in the lower tail."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


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
        # A quotient of integers is the double nearest to the decimal: 0.3, and never 0.30000000000000004.
        return _nearest_multiple(quantile, u, value, q) * top / bottom

    return lambda u: finish(min(max(multiple(u or LEAST), quantile.low), quantile.high))


def _as_integer(number: float) -> float:
    """Return an integer if the number is one that all readers keep."""
    return int(number) if abs(number) <= LARGEST_EXACT_INTEGER and number == int(number) else number


def _nearest_multiple(quantile: ContinuousQuantile, u: float, value: float, q: float) -> int:
    """Divide the quantile of u, whose fast value is given, by q, and round to the nearest integer."""
    slack = quantile.slack(value)
    least, most = round((value - slack) / q), round((value + slack) / q)
    if least == most or quantile.exact is None:
        return least
    return int((quantile.exact(u) / Decimal(repr(q))).to_integral_value(ROUND_HALF_EVEN))


def exact_share(domain: domains.Continuous, q: float | None = None) -> float:
    """Estimate the share of draws that need exact arithmetic, which takes a hundred times as long."""
    quantile = continuous_quantile(domain)
    if quantile.exact is None:
        return 0.0
    values = [quantile.fast((2 * n + 1) / (2 * _SAMPLES)) for n in range(_SAMPLES)]
    return sum(_needs_exact(quantile, value, q) for value in values) / _SAMPLES


def _needs_exact(quantile: ContinuousQuantile, value: float, q: float | None) -> bool:
    slack = quantile.slack(value)
    if q is None or abs(value) >= min(q * _CELLS, _NEARLY_INFINITE):
        return TEN_DIGITS % (value - slack) != TEN_DIGITS % (value + slack)
    return round((value - slack) / q) != round((value + slack) / q)


def coordinate_of(domain: domains.Domain) -> Coordinate:
    """Compile a domain to the function from its values to the unit interval; None for any other value.

    The coordinate of a number from a distribution is the share of the distribution below it. The coordinate of
    a discrete value is the middle of the interval that the quantile function maps to it.
    """
    match domain:
        case domains.Constant():
            raise AssertionError(f"constants have no coordinates, but got {domain!r}")
        case domains.Choice(values, probabilities):
            return _choice_coordinate(values, probabilities)
        case domains.IntUniform(low, high):
            return _bounded(lambda value: (value - low + 0.5) / (high - low + 1), low, high)
        case domains.Quantized(of, _):
            return coordinate_of(of)
        case _:
            return _bounded(_cdf(domain), *_support(domain))


def _choice_coordinate(values: Sequence[Value], probabilities: Sequence[float] | None) -> Coordinate:
    parts = probabilities or [1 / len(values)] * len(values)
    middles: dict[Hashable, float] = {}
    for index, value in enumerate(values):
        middles.setdefault(identity(value), math.fsum(parts[:index]) + parts[index] / 2)
    return lambda value: middles.get(identity(value))


def _bounded(coordinate: Callable[[float], float], low: float, high: float) -> Coordinate:
    def bounded(value: Value) -> float | None:
        if not is_number(value) or not low <= value <= high:
            return None
        return min(max(coordinate(float(value)), 0.0), 1.0)

    return bounded


def _support(domain: domains.Continuous) -> tuple[float, float]:
    match domain:
        case domains.Uniform(low, high) | domains.LogUniform(low, high):
            return low, high
        case domains.Normal(low=low, high=high):
            return -math.inf if low is None else low, math.inf if high is None else high
        case domains.LogNormal():
            return 0.0, math.inf
        case domains.Beta():
            return 0.0, 1.0
        case _:
            assert_never(domain)


def _cdf(domain: domains.Continuous) -> Callable[[float], float]:
    match domain:
        case domains.Uniform(low, high):
            return lambda value: (value - low) / (high - low)
        case domains.LogUniform(low, high):
            start, width = math.log(low), math.log(high / low)
            return lambda value: (math.log(value) - start) / width
        case domains.Normal(mu, sigma, None, None):
            return lambda value: _standard_normal_cdf((value - mu) / sigma)
        case domains.Normal():
            return _truncated_normal_cdf(domain)
        case domains.LogNormal(mu, sigma):
            return lambda value: _standard_normal_cdf((math.log(value) - mu) / sigma) if value > 0 else 0.0
        case domains.Beta(a, b):
            cumulative = import_scipy("special", "distribution: beta requires").betainc
            return lambda value: float(cumulative(a, b, value))
        case _:
            assert_never(domain)


def _truncated_normal_cdf(domain: domains.Normal) -> Callable[[float], float]:
    cut = _Truncation.of(domain)
    mu, sigma, mass = cut.mu, cut.sigma, cut.mass
    if mass < _LEAST_MASS:  # all draws give the same value
        return lambda _: 0.5
    return lambda value: cut.mass_below((value - mu) / sigma) / mass
