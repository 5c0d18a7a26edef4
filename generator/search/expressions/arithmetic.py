"""What operators and functions of expressions do with numbers: Python's results, in the range of a spec."""

import math
import operator
from collections.abc import Callable, Sequence

from generator.reader.shown import shown
from generator.structs.expression import ArithmeticOperator, Function
from generator.structs.values import LARGEST_EXACT_INTEGER, Value

Number = int | float

MOST_DIGITS = 308
"""As many as a float can have before or after its point; Python would compute 10**digits."""

NUMBERS = (float, int)
"""Types, not classes: a boolean's type is neither."""


class ComputeError(ValueError):
    """An expression has no value for an assignment."""


class KindError(ComputeError):
    """A value is of a kind that an operator, a function or a constraint does not take."""


def number(value: Value, what: str) -> Number:
    """Take a value for a number. Raises KindError, naming what it is."""
    if type(value) in NUMBERS:
        return value  # type: ignore[return-value] # what the line above says is beyond mypy
    raise KindError(f"{what} must be a number, got {shown(value)}")


def bounded(result: Number) -> Number:
    """Pass a result on. Raises ComputeError unless it is finite and, as an integer, exact everywhere."""
    if isinstance(result, int):
        if abs(result) <= LARGEST_EXACT_INTEGER:
            return result
        raise ComputeError("integers must be from -2^53 to 2^53, got a larger one")
    if math.isfinite(result):
        return result
    raise ComputeError("numbers must be finite, got one too large")


def power(base: Number, exponent: Number) -> Number:
    """Raise to a power. Raises ComputeError, and OverflowError and ZeroDivisionError as Python does."""
    if isinstance(base, int) and isinstance(exponent, int):
        # Beyond it Python would compute all digits of a number that is refused anyway.
        if abs(base) > 1 and exponent > LARGEST_EXACT_INTEGER.bit_length():
            raise OverflowError
    elif base < 0 and exponent != math.floor(exponent):
        raise ComputeError(f"a negative number must have a whole exponent, got {base!r} ** {exponent!r}")
    result: Number = base**exponent
    return result


OPERATIONS: dict[ArithmeticOperator, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": power,
}


def call(function: Function, values: Sequence[Value]) -> Number:
    """Apply a function. Raises ComputeError."""
    if function == "len":
        return _length(values[0])
    if function in {"max", "min"} and len(values) == 1:
        values = _filled(function, values[0])
    numbers = [number(value, f"what {function} takes") for value in values]
    try:
        return bounded(FUNCTIONS[function](*numbers))
    except ComputeError:
        raise
    except (ValueError, ZeroDivisionError) as error:
        arguments = ", ".join(repr(value) for value in numbers)
        raise ComputeError(f"must be defined, got {function}({arguments})") from error
    except OverflowError as error:
        raise ComputeError(f"numbers must be finite, got one too large from {function}") from error


def _length(value: Value) -> int:
    if isinstance(value, str | list | tuple):
        return len(value)
    raise KindError(f"what len takes must be a text or a list, got {shown(value)}")


def _filled(function: str, value: Value) -> Sequence[Value]:
    if isinstance(value, list | tuple) and value:
        return value
    found = "an empty one" if isinstance(value, list | tuple) else shown(value)
    raise KindError(f"what {function} takes must be several numbers or a list of them, got {found}")


def _rounded(value: Number, digits: Number | None = None) -> Number:
    if digits is None:
        return round(value)
    if not isinstance(digits, int) or abs(digits) > MOST_DIGITS:
        raise ComputeError(f"digits must be an integer from -{MOST_DIGITS} to {MOST_DIGITS}, got {digits!r}")
    return round(value, digits)


FUNCTIONS: dict[Function, Callable[..., Number]] = {
    "abs": abs,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": lambda *numbers: max(numbers),  # of one alone too: `max([1])`
    "min": lambda *numbers: min(numbers),
    "round": _rounded,
    "sqrt": math.sqrt,
}
