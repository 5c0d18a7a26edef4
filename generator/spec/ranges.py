"""Points on a line: from bounds and a step or a count to the exact numbers a person would write.

Numbers are taken as the decimals they are written as, so 0.1 to 0.5 by 0.1 is five numbers without noise.
What has no short decimal form is rounded to ten significant digits, the same on every machine.
"""

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from fractions import Fraction

from generator.structs.values import LARGEST_EXACT_INTEGER

MOST_VALUES = 100_000
"""As many trials as a sweep may have: nothing longer could ever be used up."""

ROUNDED_DIGITS = 10
WORKING_DIGITS = 30
WHOLE_DIGITS = 15
"""Below 2^53: a whole number of so many digits is an integer, a larger one stays a float."""

Number = int | float


class Spacing(StrEnum):
    """How points follow each other; named as in NumPy."""

    LINEAR = "linspace"
    """By equal differences."""
    DECADES = "logspace"
    """By equal ratios, from and to powers of ten whose exponents are given."""
    GEOMETRIC = "geomspace"
    """By equal ratios."""


def step_count(low: Number, high: Number, step: Number) -> int | None:
    """Count the numbers from low to high by step, both included; None if the last step misses high.

    Arithmetic alone: nothing is listed. The step must be more than 0, and low at most high.
    """
    steps = (_exact(high) - _exact(low)) / _exact(step)
    return int(steps) + 1 if steps.denominator == 1 else None


def stepped(low: Number, high: Number, step: Number) -> tuple[Number, ...]:
    """List the numbers from low to high by step, both included. The step must divide the range."""
    count = step_count(low, high, step)
    assert count is not None
    start, stride = _exact(low), _exact(step)
    return tuple(_number(start + index * stride) for index in range(count))


def spaced(spacing: Spacing, start: Number, stop: Number, count: int) -> tuple[Number, ...]:
    """List `count` numbers from start to stop, both included; a count of 1 is the start alone, as in NumPy.

    Geometric ends must be of one sign and not 0.
    """
    match spacing:
        case Spacing.LINEAR:
            return tuple(_number(point) for point in _linear(start, stop, count))
        case Spacing.DECADES:
            return tuple(_power(Decimal(10), point) for point in _linear(start, stop, count))
        case Spacing.GEOMETRIC:
            return _geometric(start, stop, count)


def exponentially_spaced(start: Number, stop: Number, count: int) -> tuple[Number, ...]:
    """List `count` powers of e whose exponents go from start to stop by equal steps."""
    return tuple(_rounded(_exponential(_decimal(point))) for point in _linear(start, stop, count))


def exponential(exponent: Number) -> float:
    """Raise e to a power, rounded alike on every machine; infinite or 0 where no float is near."""
    return float(_exponential(Decimal(repr(exponent))))


def _geometric(start: Number, stop: Number, count: int) -> tuple[Number, ...]:
    if count == 1:
        return (_number(_exact(start)),)
    work, sign = _work(), -1 if start < 0 else 1
    first = work.ln(abs(Decimal(repr(start))))
    whole = work.subtract(work.ln(abs(Decimal(repr(stop)))), first)
    inner = (
        sign * _rounded(work.exp(work.add(first, work.divide(work.multiply(whole, index), count - 1))))
        for index in range(1, count - 1)
    )
    return (_number(_exact(start)), *inner, _number(_exact(stop)))


def _linear(start: Number, stop: Number, count: int) -> Iterator[Fraction]:
    first = _exact(start)
    stride = (_exact(stop) - first) / max(1, count - 1)
    return (first + index * stride for index in range(count))


def _power(base: Decimal, exponent: Fraction) -> Number:
    return _rounded(_work().power(base, _decimal(exponent)))


def _exponential(exponent: Decimal) -> Decimal:
    return _work().exp(exponent)


def _exact(number: Number) -> Fraction:
    """Take a number for the decimal it is written as: 0.1 is a tenth."""
    return Fraction(repr(number))


def _decimal(fraction: Fraction) -> Decimal:
    return _work().divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def _number(fraction: Fraction) -> Number:
    """Give a fraction as it is where a number of Python's is written so, else rounded."""
    if fraction.denominator == 1 and abs(fraction) <= LARGEST_EXACT_INTEGER:
        return int(fraction)
    nearest = float(fraction)
    return nearest if _exact(nearest) == fraction else _rounded(_decimal(fraction))


def _rounded(number: Decimal) -> Number:
    return _plain(Context(prec=ROUNDED_DIGITS, rounding=ROUND_HALF_EVEN, traps=[]).plus(number))


def _plain(number: Decimal) -> Number:
    whole = number.is_finite() and number.adjusted() < WHOLE_DIGITS and number == number.to_integral_value()
    return int(number) if whole else float(number)


def _work() -> Context:
    return Context(prec=WORKING_DIGITS, rounding=ROUND_HALF_EVEN, traps=[])
