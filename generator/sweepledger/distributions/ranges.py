"""Points on a line: from bounds and a step or a count to the exact numbers a person would write.

Numbers mean their decimal form, so 0.1 to 0.5 by 0.1 is five numbers without noise. Numbers without a short
decimal form are rounded to ten significant digits, the same on every machine, but never beyond the ends. Callers
must refuse points so close that rounding makes them equal.
All points of a range are integers, or all are floats: integers if the range is written with integers alone and
has no other points.
"""

from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from fractions import Fraction

from sweepledger.structs.values import LARGEST_EXACT_INTEGER

ROUNDED_DIGITS = 10
NOISE = Decimal("1e-25")
"""Relative error of a number that `WORK` computes."""
WORK = Context(prec=30, rounding=ROUND_HALF_EVEN, traps=[])

WHOLE_DIGITS = 15
"""Below 2^53: a whole number with at most this number of digits becomes an integer, a larger one stays a float."""

Number = int | float


class Spacing(StrEnum):
    """How points follow each other; named as in NumPy."""

    LINEAR = "linspace"
    """By equal differences."""
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
    points = tuple(_nearest(start + index * stride) for index in range(count))
    return _of_one_kind(points, (low, high, step))


def is_steppable(low: Number, high: Number, step: Number) -> bool:
    """Return whether a float can represent all numbers from low to high by step as they are written.

    The step must divide the range.
    """
    digits = max(abs(low), abs(high))
    finest = min(_finest(low), _finest(step))
    if not digits or Decimal(repr(digits)).adjusted() - finest < WHOLE_DIGITS:
        return True
    start, stride = _exact(low), _exact(step)
    points = enumerate(stepped(low, high, step))
    return all(_exact(point) == start + index * stride for index, point in points)


def spaced(spacing: Spacing, start: Number, stop: Number, count: int) -> tuple[Number, ...]:
    """List `count` numbers from start to stop, both included; a count of 1 is the start alone, as in NumPy.

    Geometric ends must be of one sign and not 0.
    """
    match spacing:
        case Spacing.LINEAR:
            points = _within(tuple(_number(point) for point in _linear(start, stop, count)))
        case Spacing.GEOMETRIC:
            points = _geometric(start, stop, count)
    return _of_one_kind(points, (start, stop))


def exponentially_spaced(start: Number, stop: Number, count: int) -> tuple[Number, ...]:
    """List `count` powers of e whose exponents go from start to stop by equal steps."""
    return tuple(float(_rounded(WORK.exp(_decimal(point)))) for point in _linear(start, stop, count))


def exponential(exponent: Number) -> float:
    """Raise e to a power, rounded alike on every machine; infinite or 0 if no float is near."""
    return float(WORK.exp(Decimal(repr(exponent))))


def _geometric(start: Number, stop: Number, count: int) -> tuple[Number, ...]:
    if count == 1:
        return (_number(_exact(start)),)
    sign = -1 if start < 0 else 1
    first = WORK.ln(abs(Decimal(repr(start))))
    whole = WORK.subtract(WORK.ln(abs(Decimal(repr(stop)))), first)
    inner = (
        sign * _rounded(WORK.exp(WORK.add(first, WORK.divide(WORK.multiply(whole, index), count - 1))))
        for index in range(1, count - 1)
    )
    return _within((_number(_exact(start)), *inner, _number(_exact(stop))))


def _within(points: tuple[Number, ...]) -> tuple[Number, ...]:
    """Return the points, limited to the first and the last, which rounding may exceed."""
    low, high = sorted((points[0], points[-1]))
    return tuple(min(max(point, low), high) for point in points)


def _of_one_kind(points: tuple[Number, ...], written: Iterable[Number]) -> tuple[Number, ...]:
    """Return points as integers if all of them, and the numbers that the range is written with, are."""
    is_whole = all(isinstance(number, int) for number in (*points, *written))
    return points if is_whole else tuple(map(float, points))


def _linear(start: Number, stop: Number, count: int) -> Iterator[Fraction]:
    first = _exact(start)
    stride = (_exact(stop) - first) / max(1, count - 1)
    return (first + index * stride for index in range(count))


def _exact(number: Number) -> Fraction:
    """Return the exact value of a number's decimal form: 0.1 is a tenth."""
    return Fraction(repr(number))


def _decimal(fraction: Fraction) -> Decimal:
    return WORK.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def _finest(number: Number) -> int:
    """Return the position of the last digit of a number, as a power of ten."""
    exponent = Decimal(repr(number)).as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _nearest(fraction: Fraction) -> Number:
    is_whole = fraction.denominator == 1 and abs(fraction) <= LARGEST_EXACT_INTEGER
    return int(fraction) if is_whole else float(fraction)


def _number(fraction: Fraction) -> Number:
    """Return a fraction as a number: exactly if Python can represent it, else rounded."""
    nearest = _nearest(fraction)
    return nearest if _exact(nearest) == fraction else _rounded(_decimal(fraction))


def _rounded(number: Decimal) -> Number:
    """Return a computed number rounded to ten digits, or to its few digits if the rest is noise."""
    short = _to_digits(number, WHOLE_DIGITS)
    is_short = number.is_finite() and abs(number - short) <= abs(number) * NOISE
    number = short if is_short else _to_digits(number, ROUNDED_DIGITS)
    whole = number.is_finite() and number.adjusted() < WHOLE_DIGITS and number == number.to_integral_value()
    return int(number) if whole else float(number)


def _to_digits(number: Decimal, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, traps=[]).plus(number)
