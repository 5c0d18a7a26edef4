"""From the tree of an expression to a function of an assignment. Python's meaning, and stricter.

Arithmetic takes numbers alone, `and`, `or`, `not` booleans alone; a boolean is no number and equals none;
an order is between two numbers or two texts. At no step may a number leave the range of what a spec can hold.

Beware: `**`, exp and the logarithms are the C library's, whose last digit differs between machines. Derived
values are rounded by whoever keeps them, so it does not show there; a constraint that compares such a result
with a number it all but equals may hold on one machine and not on another.
"""

from collections.abc import Callable, Mapping
from typing import assert_never, cast

from generator.reader.shown import shown
from generator.search.expressions.arithmetic import (
    NUMBERS,
    OPERATIONS,
    ComputeError,
    KindError,
    Number,
    bounded,
    call,
    number,
)
from generator.search.expressions.relations import ORDERS, Relation, disorder, relation
from generator.structs.expression import (
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    ComparisonOperator,
    Conditional,
    Expression,
    Listed,
    Literal,
    Logic,
    Name,
    Sign,
)
from generator.structs.values import LARGEST_EXACT_INTEGER, Value

__all__ = ["Absent", "Compute", "ComputeError", "KindError", "compile_expression"]

Compute = Callable[[Mapping[str, Value]], Value]
Numeric = Callable[[Mapping[str, Value]], Number]
Test = Callable[[Mapping[str, Value]], bool]

LIMIT = float(LARGEST_EXACT_INTEGER)
"""Results within it need no second look. A float: comparing with one is quick for both kinds of numbers."""


class Absent(Exception):  # noqa: N818 - it is no error: what mentions an absent parameter is not asked
    """An expression needs a value that the assignment does not have.

    A search never meets it: it looks whether all is there before it computes.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def compile_expression(expression: Expression) -> Compute:
    """Make the function that computes an expression; it raises Absent and ComputeError."""
    compute = _any(expression)
    if not isinstance(expression, Listed | Conditional):
        return compute

    def flat(values: Mapping[str, Value]) -> Value:
        value = compute(values)
        if isinstance(value, tuple) and any(isinstance(item, list | tuple) for item in value):
            raise KindError("a list must hold no other lists, got one")
        return value

    return flat


def _any(expression: Expression) -> Compute:  # noqa: C901, PLR0911 - one case a kind of node
    match expression:
        case Literal(value):
            return lambda _: value
        case Name(name):
            return _name(name)
        case Listed(items):
            parts = tuple(_any(item) for item in items)
            return lambda values: tuple(cast(str, part(values)) for part in parts)
        case Sign("-", operand):
            return _minus(_number(operand, "-"))
        case Sign(_, operand):
            return _not(_test(operand, "not"))
        case Arithmetic(sign, left, right):
            return _arithmetic(sign, _number(left, sign), _number(right, sign))
        case Comparison(first, steps):
            return _comparison(first, steps)
        case Logic("and", terms):
            return _and(tuple(_test(term, "and") for term in terms))
        case Logic(_, terms):
            return _or(tuple(_test(term, "or") for term in terms))
        case Conditional(test, yes, no):
            return _conditional(_test(test, "if"), _any(yes), _any(no))
        case Call(function, arguments):
            computed = tuple(_any(argument) for argument in arguments)
            return lambda values: call(function, [argument(values) for argument in computed])
        case _:
            assert_never(expression)


def _name(name: str) -> Compute:
    def look_up(values: Mapping[str, Value]) -> Value:
        try:
            return values[name]
        except KeyError:
            raise Absent(name) from None

    return look_up


def _number(expression: Expression, sign: str) -> Numeric:
    """Compute what must be a number; checked only where it could be something else."""
    match expression:
        case Name(name):
            return _number_named(name)
        case Arithmetic() | Sign("-") | Call():
            return cast(Numeric, _any(expression))
        case Literal(value) if type(value) in NUMBERS:
            return cast(Numeric, _any(expression))
        case _:
            compute = _any(expression)
            return lambda values: number(compute(values), f"what stands beside {sign}")


def _number_named(name: str) -> Numeric:
    def look_up(values: Mapping[str, Value]) -> Number:
        try:
            value = values[name]
        except KeyError:
            raise Absent(name) from None
        if type(value) is float or type(value) is int:
            return value
        return number(value, name)

    return look_up


def _test(expression: Expression, word: str) -> Test:
    """Compute what must be true or false; checked only where it could be something else."""
    compute = _any(expression)
    if isinstance(expression, Comparison | Logic) or (
        isinstance(expression, Sign) and expression.operator == "not"
    ):
        return cast(Test, compute)
    what = expression.name if isinstance(expression, Name) else f"what stands beside {word}"

    def test(values: Mapping[str, Value]) -> bool:
        value = compute(values)
        if isinstance(value, bool):
            return value
        raise KindError(f"{what} must be true or false, got {shown(value)}")

    return test


def _minus(operand: Numeric) -> Numeric:
    return lambda values: -operand(values)


def _not(operand: Test) -> Test:
    return lambda values: not operand(values)


def _arithmetic(sign: ArithmeticOperator, left: Numeric, right: Numeric) -> Numeric:
    operation = OPERATIONS[sign]

    def compute(values: Mapping[str, Value]) -> Number:
        try:
            result = operation(left(values), right(values))
        except ZeroDivisionError as error:
            raise ComputeError(f"must not divide by 0, got it with {sign}") from error
        except OverflowError as error:
            raise ComputeError(f"numbers must be finite, got one too large from {sign}") from error
        return result if -LIMIT <= result <= LIMIT else bounded(result)

    return compute


def _and(terms: tuple[Test, ...]) -> Test:
    if len(terms) == 2:  # noqa: PLR2004 - by far the most, and a loop costs as much as a term
        first, second = terms
        return lambda values: first(values) and second(values)
    return lambda values: all(term(values) for term in terms)


def _or(terms: tuple[Test, ...]) -> Test:
    if len(terms) == 2:  # noqa: PLR2004 - likewise
        first, second = terms
        return lambda values: first(values) or second(values)
    return lambda values: any(term(values) for term in terms)


def _conditional(test: Test, yes: Compute, no: Compute) -> Compute:
    return lambda values: yes(values) if test(values) else no(values)


def _comparison(first: Expression, steps: tuple[tuple[ComparisonOperator, Expression], ...]) -> Test:
    left = _any(first)
    if len(steps) > 1:
        return _chain(left, tuple((relation(sign), _any(right)) for sign, right in steps))
    ((sign, second),) = steps
    match second:
        case Literal(value) if type(value) in NUMBERS and sign in ORDERS:
            return _order_beside(sign, left, cast(Number, value))
        case Listed(items) if sign in {"in", "not in"} and all(isinstance(item, Literal) for item in items):
            written = [item.value for item in items if isinstance(item, Literal)]
            return _member(left, written) if sign == "in" else _not(_member(left, written))
        case _:
            compare, right = relation(sign), _any(second)
            return lambda values: compare(left(values), right(values))


def _chain(first: Compute, steps: tuple[tuple[Relation, Compute], ...]) -> Test:
    def test(values: Mapping[str, Value]) -> bool:
        left = first(values)
        for compare, compute in steps:
            right = compute(values)
            if not compare(left, right):
                return False
            left = right
        return True

    return test


def _order_beside(sign: ComparisonOperator, left: Compute, right: Number) -> Test:
    order = ORDERS[sign]

    def test(values: Mapping[str, Value]) -> bool:
        value = left(values)
        if type(value) is float or type(value) is int:
            return order(value, right)
        raise disorder(sign, value, right)

    return test


def _member(left: Compute, written: list[Value]) -> Test:
    """Look a value up among scalars: 1 and 1.0 are one, 1 and true are two."""
    booleans = frozenset(value for value in written if isinstance(value, bool))
    others = frozenset(cast(str, value) for value in written if not isinstance(value, bool))

    def test(values: Mapping[str, Value]) -> bool:
        value = left(values)
        if isinstance(value, bool):
            return value in booleans
        return not isinstance(value, list | tuple) and value in others

    return test
