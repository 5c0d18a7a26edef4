"""Evaluation of expressions: from the tree of a constraint or derived value to a function of a configuration.

Expressions mean what they mean in Python, with stricter types: arithmetic requires numbers; `and`, `or` and `not`
require booleans; a boolean is not a number and equals none; only two numbers or two strings have an order. Every
intermediate result must be a number that a spec can contain.

Beware: `**`, exp and the logarithms are functions of the C library, and their last digit differs between platforms.
The caller rounds derived values; but a constraint that compares such a result with an almost equal number may be
true on one platform and false on another.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import assert_never, cast

from sweepledger.reader.messages import safe_repr
from sweepledger.structs.expression import (
    Arithmetic,
    ArithmeticOperator,
    BooleanOperation,
    Call,
    Comparison,
    ComparisonOperator,
    Conditional,
    Expression,
    FunctionName,
    ListLiteral,
    Literal,
    Name,
    UnaryOperation,
)
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value

Number = int | float

MAX_DIGITS = 308
"""The largest number of digits of a float before or after the point; Python would compute 10**digits."""

NUMBERS = (float, int)
"""Compared with type(): the type of a boolean is neither."""


class ComputeError(ValueError):
    """An expression has no value for a configuration."""


class KindError(ComputeError):
    """A value has a type that an operator, a function or a constraint does not accept."""


def require_number(value: Value, subject: str) -> Number:
    """Return a value if it is a number. Raises KindError, which names the subject."""
    if type(value) in NUMBERS:
        return value  # type: ignore[return-value] # mypy does not narrow by type()
    raise KindError(f"{subject} must be a number, got {safe_repr(value)}")


def check_range(result: Number) -> Number:
    """Return a result. Raises ComputeError unless it is finite and, if an integer, at most 2^53."""
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
        # Otherwise Python would compute all digits of a number that is too large anyway.
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


def call_function(function: FunctionName, values: Sequence[Value]) -> Number:
    """Apply a function. Raises ComputeError."""
    if function == "len":
        return _length(values[0])
    if function in {"max", "min"} and len(values) == 1:
        values = _non_empty_list(function, values[0])
    numbers = [require_number(value, f"an argument of {function}") for value in values]
    try:
        return check_range(FUNCTIONS[function](*numbers))
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
    raise KindError(f"the argument of len must be a text or a list, got {safe_repr(value)}")


def _non_empty_list(function: str, value: Value) -> Sequence[Value]:
    if isinstance(value, list | tuple) and value:
        return value
    got = "an empty list" if isinstance(value, list | tuple) else safe_repr(value)
    raise KindError(f"the arguments of {function} must be several numbers or a list of numbers, got {got}")


def _rounded(value: Number, digits: Number | None = None) -> Number:
    if digits is None:
        return round(value)
    if not isinstance(digits, int) or abs(digits) > MAX_DIGITS:
        raise ComputeError(f"digits must be an integer from -{MAX_DIGITS} to {MAX_DIGITS}, got {digits!r}")
    return round(value, digits)


FUNCTIONS: dict[FunctionName, Callable[..., Number]] = {
    "abs": abs,
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


Relation = Callable[[Value, Value], bool]

ORDERS: dict[ComparisonOperator, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: ComparisonOperator) -> Relation:
    """Return a comparison's function, which raises KindError for values that it cannot compare."""
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


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal; values of different types never are."""
    if type(left) in NUMBERS:
        return type(right) in NUMBERS and left == right
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and left == right


def _contains(item: Value, whole: Value) -> bool:
    if isinstance(whole, list | tuple):
        return any(equal(item, value) for value in whole)
    if isinstance(item, str) and isinstance(whole, str):
        return item in whole
    raise KindError(f"in needs a list, or two texts, got {safe_repr(item)} in {safe_repr(whole)}")


def _ordered(sign: ComparisonOperator) -> Relation:
    order = ORDERS[sign]

    def compare(left: Value, right: Value) -> bool:
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return order(left, right)
        if isinstance(left, str) and isinstance(right, str):
            return order(left, right)
        raise unordered_error(sign, left, right)

    return compare


def unordered_error(sign: str, left: Value, right: Value) -> KindError:
    """Return the error for two values without an order."""
    return KindError(
        f"{sign} must compare two numbers or two texts, got {safe_repr(left)} {sign} {safe_repr(right)}"
    )


Evaluator = Callable[[Mapping[str, Value]], Value]
NumericEvaluator = Callable[[Mapping[str, Value]], Number]
Predicate = Callable[[Mapping[str, Value]], bool]

EXACT_LIMIT = float(LARGEST_EXACT_INTEGER)
"""Results within this limit need no further check. A float: comparisons with it are fast for integers and floats."""


def compile_expression(expression: Expression) -> Evaluator:
    """Compile an expression to a function, which raises ComputeError.

    The function requires a value for every name in the expression.
    """
    compute = _compile(expression)
    if not isinstance(expression, ListLiteral | Conditional):
        return compute

    def flat(values: Mapping[str, Value]) -> Value:
        value = compute(values)
        if isinstance(value, tuple) and any(isinstance(item, list | tuple) for item in value):
            raise KindError("a list must not contain lists, got one")
        return value

    return flat


def _compile(expression: Expression) -> Evaluator:  # noqa: C901, PLR0911 - one case per type of node
    match expression:
        case Literal(value):
            return lambda _: value
        case Name(name):
            return itemgetter(name)
        case ListLiteral(items):
            parts = tuple(_compile(item) for item in items)
            return lambda values: tuple(cast(str, part(values)) for part in parts)
        case UnaryOperation("-", operand):
            return _minus(_compile_number(operand, "-"))
        case UnaryOperation(_, operand):
            return _not(_compile_predicate(operand, "not"))
        case Arithmetic(sign, left, right):
            return _arithmetic(sign, _compile_number(left, sign), _compile_number(right, sign))
        case Comparison(first, steps):
            return _comparison(first, steps)
        case BooleanOperation("and", terms):
            return _and(tuple(_compile_predicate(term, "and") for term in terms))
        case BooleanOperation(_, terms):
            return _or(tuple(_compile_predicate(term, "or") for term in terms))
        case Conditional(test, yes, no):
            return _conditional(_compile_predicate(test, "if"), _compile(yes), _compile(no))
        case Call(function, arguments):
            computed = tuple(_compile(argument) for argument in arguments)
            return lambda values: call_function(function, [argument(values) for argument in computed])
        case _:
            assert_never(expression)


def _compile_number(expression: Expression, sign: str) -> NumericEvaluator:
    """Compile an operand that must be a number; check it only if it could be something else."""
    match expression:
        case Name(name):
            return _compile_number_name(name)
        case Arithmetic() | UnaryOperation("-") | Call():
            return cast(NumericEvaluator, _compile(expression))
        case Literal(value) if type(value) in NUMBERS:
            return cast(NumericEvaluator, _compile(expression))
        case _:
            compute = _compile(expression)
            return lambda values: require_number(compute(values), f"an operand of {sign}")


def _compile_number_name(name: str) -> NumericEvaluator:
    def look_up(values: Mapping[str, Value]) -> Number:
        value = values[name]
        if type(value) is float or type(value) is int:
            return value
        return require_number(value, name)

    return look_up


def _compile_predicate(expression: Expression, word: str) -> Predicate:
    """Compile an operand that must be true or false; check it only if it could be something else."""
    compute = _compile(expression)
    if isinstance(expression, Comparison | BooleanOperation) or (
        isinstance(expression, UnaryOperation) and expression.operator == "not"
    ):
        return cast(Predicate, compute)
    subject = expression.name if isinstance(expression, Name) else f"an operand of {word}"

    def test(values: Mapping[str, Value]) -> bool:
        value = compute(values)
        if isinstance(value, bool):
            return value
        raise KindError(f"{subject} must be true or false, got {safe_repr(value)}")

    return test


def _minus(operand: NumericEvaluator) -> NumericEvaluator:
    return lambda values: -operand(values)


def _not(operand: Predicate) -> Predicate:
    return lambda values: not operand(values)


def _arithmetic(
    sign: ArithmeticOperator, left: NumericEvaluator, right: NumericEvaluator
) -> NumericEvaluator:
    operation = OPERATIONS[sign]

    def compute(values: Mapping[str, Value]) -> Number:
        try:
            result = operation(left(values), right(values))
        except ZeroDivisionError as error:
            raise ComputeError(f"must not divide by 0, got a division with {sign}") from error
        except OverflowError as error:
            raise ComputeError(f"numbers must be finite, got one too large from {sign}") from error
        return result if -EXACT_LIMIT <= result <= EXACT_LIMIT else check_range(result)

    return compute


def _and(terms: tuple[Predicate, ...]) -> Predicate:
    if len(terms) == 2:  # noqa: PLR2004 - the most frequent case; a loop takes as long as a term
        first, second = terms
        return lambda values: first(values) and second(values)
    return lambda values: all(term(values) for term in terms)


def _or(terms: tuple[Predicate, ...]) -> Predicate:
    if len(terms) == 2:  # noqa: PLR2004 - as above
        first, second = terms
        return lambda values: first(values) or second(values)
    return lambda values: any(term(values) for term in terms)


def _conditional(test: Predicate, yes: Evaluator, no: Evaluator) -> Evaluator:
    return lambda values: yes(values) if test(values) else no(values)


def _comparison(first: Expression, steps: tuple[tuple[ComparisonOperator, Expression], ...]) -> Predicate:
    left = _compile(first)
    if len(steps) > 1:
        return _chain(left, tuple((comparison(sign), _compile(right)) for sign, right in steps))
    ((sign, second),) = steps
    match second:
        case Literal(value) if type(value) in NUMBERS and sign in ORDERS:
            return _order_with_constant(sign, left, cast(Number, value))
        case ListLiteral(items) if sign in {"in", "not in"} and all(
            isinstance(item, Literal) for item in items
        ):
            values = [item.value for item in items if isinstance(item, Literal)]
            return _member(left, values) if sign == "in" else _not(_member(left, values))
        case _:
            compare, right = comparison(sign), _compile(second)
            return lambda values: compare(left(values), right(values))


def _chain(first: Evaluator, steps: tuple[tuple[Relation, Evaluator], ...]) -> Predicate:
    def test(values: Mapping[str, Value]) -> bool:
        left = first(values)
        for compare, compute in steps:
            right = compute(values)
            if not compare(left, right):
                return False
            left = right
        return True

    return test


def _order_with_constant(sign: ComparisonOperator, left: Evaluator, right: Number) -> Predicate:
    order = ORDERS[sign]

    def test(values: Mapping[str, Value]) -> bool:
        value = left(values)
        if type(value) is float or type(value) is int:
            return order(value, right)
        raise unordered_error(sign, value, right)

    return test


def _member(left: Evaluator, scalars: list[Value]) -> Predicate:
    """Compile a test for membership: 1 equals 1.0 but not true."""
    booleans = frozenset(value for value in scalars if isinstance(value, bool))
    others = frozenset(cast(str, value) for value in scalars if not isinstance(value, bool))

    def test(values: Mapping[str, Value]) -> bool:
        value = left(values)
        if isinstance(value, bool):
            return value in booleans
        return not isinstance(value, list | tuple) and value in others

    return test
