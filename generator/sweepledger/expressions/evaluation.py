"""Evaluation of expressions: from the tree of a constraint or derived value to a function of a configuration.

Expressions have their meaning in Python, with stricter types: arithmetic requires numbers; `and`, `or` and `not`
require booleans; a boolean is not a number and equals none; only two numbers or two strings have an order. No
intermediate result may exceed the numbers that a spec can contain.

A float means the decimal number as written, and arithmetic is exact: 0.1 + 0.2 is 0.3. The result of an
expression is an integer or the nearest float.

Beware: exp, the logarithms and most powers are functions of the C library, and their last digit differs between
platforms. The caller rounds derived values; but a constraint that compares such a result with an almost equal
number may be true on one platform and false on another.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from sys import float_info
from typing import assert_never, cast

from sweepledger.reader.safe_repr import safe_repr
from sweepledger.structs import expression as tree
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value

Number = int | float | Decimal | Fraction
"""A float is a value as written; the exact types are intermediate results."""

Operand = Value | Decimal | Fraction

MAX_DIGITS = 308
"""The largest number of digits of a float before or after the point; Python would compute 10**digits."""

NUMBERS = frozenset({float, int, Decimal, Fraction})
"""Compared with type(): the type of a boolean is none of them."""

PLAIN = frozenset({float, int})
"""Two of these have the order of the decimals that they are written as."""

LARGEST = Decimal(float_info.max)

EXACT = Context(prec=10**6, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""More digits than sums and products of `MAX_NODES` floats have."""

MAX_EXACT_EXPONENT = 64
"""Powers with a larger exponent are those of the C library."""


class ComputeError(ValueError):
    """An expression has no value for a configuration."""


class KindError(ComputeError):
    """A value has a type that an operator, a function or a constraint does not accept."""


def require_number(value: Operand, subject: str) -> Number:
    """Return a value if it is a number. Raises KindError, which names the subject."""
    if type(value) in NUMBERS:
        return value  # type: ignore[return-value] # mypy does not narrow by type()
    raise KindError(f"{subject} must be a number, got {safe_repr(value)}")


@lru_cache(maxsize=10_000)
def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))


def exact(value: Number) -> int | Decimal | Fraction:
    """Return the exact value of a number's decimal form: 0.1 is a tenth."""
    return _decimal(value) if type(value) is float else value  # type: ignore[return-value]


def nearest(value: Operand) -> Value:
    """Return the float nearest to an exact result, and 0.0 for -0.0; other values are unchanged."""
    return float(value) + 0.0 if isinstance(value, float | Decimal | Fraction) else value


def check_range(result: Number) -> Number:
    """Return a result. Raises ComputeError unless it is finite and, if an integer, at most 2^53."""
    if isinstance(result, int):
        if abs(result) <= LARGEST_EXACT_INTEGER:
            return result
        raise ComputeError("integers must be from -2^53 to 2^53, got a larger one")
    if -LARGEST <= result <= LARGEST:
        return result
    raise ComputeError("numbers must be finite, got one too large")


def negative(value: Number) -> Number:
    """Return a number with the other sign."""
    return value.copy_negate() if isinstance(value, Decimal) else -value  # -Decimal would round


def calculate(sign: tree.ArithmeticOperator, left: Number, right: Number) -> Number:
    """Apply an operator. Raises ComputeError, and OverflowError and ZeroDivisionError as Python does."""
    if sign == "**":
        return _power(left, right)
    if type(left) is int and type(right) is int:
        return Fraction(left, right) if sign == "/" else OPERATIONS[sign](left, right)
    left, right = exact(left), exact(right)
    if sign in EXACT_OPERATIONS and type(left) is not Fraction and type(right) is not Fraction:
        return EXACT_OPERATIONS[sign](cast(Decimal, left), cast(Decimal, right))
    # A Fraction, even of // and %: the result of a float is a float.
    return Fraction(OPERATIONS[sign](Fraction(left), Fraction(right)))


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int):
        # Otherwise Python would compute all digits of a number that is too large anyway.
        if abs(base) > 1 and exponent > LARGEST_EXACT_INTEGER.bit_length():
            raise OverflowError
        if exponent >= 0:
            return int(base**exponent)
    if isinstance(exponent, int) and abs(exponent) <= MAX_EXACT_EXPONENT:
        return Fraction(exact(base)) ** exponent
    if base < 0 and exponent != math.floor(exponent):
        shown = f"{nearest(base)!r} ** {nearest(exponent)!r}"
        raise ComputeError(f"a negative number must have a whole exponent, got {shown}")
    return float(float(base) ** float(exponent))


EXACT_OPERATIONS: dict[tree.ArithmeticOperator, Callable[[Decimal, Decimal], Decimal]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
}
"""The fast ones, also of a Decimal and an integer: a large grid needs a million of them."""

OPERATIONS: dict[tree.ArithmeticOperator, Callable[..., int | Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def call_function(function: tree.FunctionName, values: Sequence[Operand]) -> Number:
    """Apply a function. Raises ComputeError."""
    if function == "len":
        if isinstance(values[0], str | list | tuple):
            return len(values[0])
        raise KindError(f"the argument of len must be a text or a list, got {safe_repr(values[0])}")
    if function in {"max", "min"} and len(values) == 1:
        (value,) = values
        if not isinstance(value, list | tuple) or not value:
            got = "an empty list" if isinstance(value, list | tuple) else safe_repr(value)
            message = f"the arguments of {function} must be several numbers or a list of numbers, got {got}"
            raise KindError(message)
        values = value
    numbers = [exact(require_number(value, f"an argument of {function}")) for value in values]
    try:
        return check_range(FUNCTIONS[function](*numbers))
    except ComputeError:
        raise
    except (ValueError, ZeroDivisionError) as error:
        arguments = ", ".join(repr(nearest(value)) for value in numbers)
        raise ComputeError(f"must be defined, got {function}({arguments})") from error
    except OverflowError as error:
        raise ComputeError(f"numbers must be finite, got one too large from {function}") from error


def _rounded(value: Number, digits: Number | None = None) -> Number:
    if digits is None:
        return round(value)
    if not isinstance(digits, int) or abs(digits) > MAX_DIGITS:
        got = f"got {nearest(digits)!r}"
        raise ComputeError(f"digits must be an integer from -{MAX_DIGITS} to {MAX_DIGITS}, {got}")
    return round(value, digits) if isinstance(value, int) else Fraction(round(Fraction(value), digits))


FUNCTIONS: dict[tree.FunctionName, Callable[..., Number]] = {
    "abs": lambda value: negative(value) if value < 0 else value,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "max": lambda *numbers: max(numbers),  # max(1) would fail
    "min": lambda *numbers: min(numbers),
    "round": _rounded,
    "sqrt": math.sqrt,
}

Relation = Callable[[Operand, Operand], bool]

ORDERS: dict[tree.ComparisonOperator, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: tree.ComparisonOperator) -> Relation:
    """Return the function of a comparison; the function raises KindError for values that it cannot compare."""
    match sign:
        case "==":
            return equal
        case "!=":
            return lambda left, right: not equal(left, right)
        case "in":
            return _contains
        case "not in":
            return lambda left, right: not _contains(left, right)
        case _:
            return _ordered(sign)


def equal(left: Operand, right: Operand) -> bool:
    """Return whether two values are equal; values of different types never are."""
    if type(left) in NUMBERS:
        return type(right) in NUMBERS and exact(left) == exact(right)  # type: ignore[arg-type]
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and left == right


def _contains(item: Operand, whole: Operand) -> bool:
    if isinstance(whole, list | tuple):
        return any(equal(item, value) for value in whole)
    if isinstance(item, str) and isinstance(whole, str):
        return item in whole
    raise KindError(
        f"in needs a list on its right, or text on both sides, got {safe_repr(item)} in {safe_repr(whole)}"
    )


def _ordered(sign: tree.ComparisonOperator) -> Relation:
    order = ORDERS[sign]

    def compare(left: Operand, right: Operand) -> bool:
        if type(left) in PLAIN and type(right) in PLAIN:
            return order(left, right)
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return order(exact(left), exact(right))  # type: ignore[arg-type]
        if isinstance(left, str) and isinstance(right, str):
            return order(left, right)
        values = f"{safe_repr(nearest(left))} {sign} {safe_repr(nearest(right))}"
        raise KindError(f"{sign} must compare two numbers or two texts, got {values}")

    return compare


Evaluator = Callable[[Mapping[str, Value]], Operand]
NumericEvaluator = Callable[[Mapping[str, Value]], Number]
Predicate = Callable[[Mapping[str, Value]], bool]


def compile_expression(expression: tree.Expression) -> Callable[[Mapping[str, Value]], Value]:
    """Compile an expression to a function that may raise ComputeError.

    The function requires a value for every name in the expression.
    """
    compute = _compile(expression)
    if isinstance(expression, tree.Comparison | tree.BooleanOperation):
        return cast(Predicate, compute)

    def result(values: Mapping[str, Value]) -> Value:
        value = compute(values)
        if not isinstance(value, tuple):
            return nearest(value)
        if any(isinstance(item, list | tuple) for item in value):
            raise KindError("a list must not contain lists, got one")
        return tuple(cast(str, nearest(item)) for item in value)

    return result


def _compile(expression: tree.Expression) -> Evaluator:  # noqa: C901, PLR0911 - one case per type of node
    match expression:
        case tree.Literal(value):
            return lambda _: value
        case tree.Name(name):
            return itemgetter(name)
        case tree.ListLiteral(items):
            parts = tuple(_compile(item) for item in items)
            return lambda values: tuple(cast(str, part(values)) for part in parts)
        case tree.UnaryOperation("-", operand):
            number = _compile_number(operand, "-")
            return lambda values: negative(number(values))
        case tree.UnaryOperation(_, operand):
            return _not(_compile_predicate(operand, "not"))
        case tree.Arithmetic(sign, left, right):
            return _arithmetic(sign, _compile_number(left, sign), _compile_number(right, sign))
        case tree.Comparison(first, steps):
            return _comparison(first, steps)
        case tree.BooleanOperation(word, terms):
            predicates = [_compile_predicate(term, word) for term in terms]
            combine = all if word == "and" else any
            return lambda values: combine(test(values) for test in predicates)
        case tree.Conditional(test, yes, no):
            condition, then, otherwise = _compile_predicate(test, "if"), _compile(yes), _compile(no)
            return lambda values: then(values) if condition(values) else otherwise(values)
        case tree.Call(function, arguments):
            computed = tuple(_compile(argument) for argument in arguments)
            return lambda values: call_function(function, [argument(values) for argument in computed])
        case _:
            assert_never(expression)


def _compile_number(expression: tree.Expression, sign: str) -> NumericEvaluator:
    """Compile an operand that must be a number; check the value only if it may have another type."""
    compute = _compile(expression)
    match expression:
        case tree.Arithmetic() | tree.UnaryOperation("-") | tree.Call():
            return cast(NumericEvaluator, compute)
        case tree.Literal(value) if type(value) in NUMBERS:
            return cast(NumericEvaluator, compute)
        case tree.Name(name):
            return lambda values: require_number(compute(values), name)
        case _:
            return lambda values: require_number(compute(values), f"an operand of {sign}")


def _compile_predicate(expression: tree.Expression, word: str) -> Predicate:
    """Compile an operand that must be true or false; check the value only if it may have another type."""
    compute = _compile(expression)
    if isinstance(expression, tree.Comparison | tree.BooleanOperation) or (
        isinstance(expression, tree.UnaryOperation) and expression.operator == "not"
    ):
        return cast(Predicate, compute)
    subject = expression.name if isinstance(expression, tree.Name) else f"an operand of {word}"

    def test(values: Mapping[str, Value]) -> bool:
        value = compute(values)
        if isinstance(value, bool):
            return value
        raise KindError(f"{subject} must be true or false, got {safe_repr(value)}")

    return test


def _not(operand: Predicate) -> Predicate:
    return lambda values: not operand(values)


def _arithmetic(
    sign: tree.ArithmeticOperator, left: NumericEvaluator, right: NumericEvaluator
) -> NumericEvaluator:
    def compute(values: Mapping[str, Value]) -> Number:
        try:
            result = calculate(sign, left(values), right(values))
        except ZeroDivisionError as error:
            raise ComputeError(f"must not divide by 0, got a division with {sign}") from error
        except OverflowError as error:
            raise ComputeError(f"numbers must be finite, got one too large from {sign}") from error
        return check_range(result)

    return compute


def _comparison(
    first: tree.Expression, steps: tuple[tuple[tree.ComparisonOperator, tree.Expression], ...]
) -> Predicate:
    left = _compile(first)
    if len(steps) > 1:
        relations = tuple((comparison(sign), _compile(right)) for sign, right in steps)

        def test(values: Mapping[str, Value]) -> bool:
            last = left(values)
            for compare, compute in relations:
                value = compute(values)
                if not compare(last, value):
                    return False
                last = value
            return True

        return test
    ((sign, second),) = steps
    match second:
        case tree.ListLiteral(items) if sign in {"in", "not in"} and all(
            isinstance(item, tree.Literal) for item in items
        ):
            values = [item.value for item in items if isinstance(item, tree.Literal)]
            return _member(left, values) if sign == "in" else _not(_member(left, values))
        case _:
            compare, right = comparison(sign), _compile(second)
            return lambda values: compare(left(values), right(values))


def _member(left: Evaluator, scalars: list[Value]) -> Predicate:
    """Compile a test for membership: 1 equals 1.0 but not true."""
    booleans = frozenset(value for value in scalars if isinstance(value, bool))
    others = frozenset(exact(cast(Number, value)) for value in scalars if not isinstance(value, bool))

    def test(values: Mapping[str, Value]) -> bool:
        value = left(values)
        if isinstance(value, bool):
            return value in booleans
        return not isinstance(value, list | tuple) and exact(cast(Number, value)) in others

    return test
