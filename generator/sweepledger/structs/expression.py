"""The syntax tree of constraints and derived values.

`reader` parses text into it and `search` evaluates it. It means what Python means by it, on numbers, text,
booleans, null and lists. It has no attributes and no assignments, and calls only the functions listed here.
"""

from collections.abc import Iterator
from typing import Literal as OneOf
from typing import assert_never

from msgspec import Struct

from sweepledger.structs.values import Value

ArithmeticOperator = OneOf["+", "-", "*", "/", "//", "%", "**"]
ComparisonOperator = OneOf["<", "<=", ">", ">=", "==", "!=", "in", "not in"]
BooleanOperator = OneOf["and", "or"]
FunctionName = OneOf[
    "abs", "ceil", "exp", "floor", "len", "log", "log10", "log2", "max", "min", "round", "sqrt"
]


class Literal(Struct, frozen=True):
    """A number, text, true, false or null."""

    value: Value


class Name(Struct, frozen=True):
    """A parameter or a derived value."""

    name: str
    offset: int
    """Offset in the text, from 0."""


class ListLiteral(Struct, frozen=True):
    """Values in brackets."""

    items: tuple["Expression", ...]


class UnaryOperation(Struct, frozen=True):
    """`-x` or `not x`."""

    operator: OneOf["-", "not"]
    operand: "Expression"


class Arithmetic(Struct, frozen=True):
    """An operation on two numbers; `/` is true division."""

    operator: ArithmeticOperator
    left: "Expression"
    right: "Expression"


class Comparison(Struct, frozen=True):
    """`a < b <= c`: every comparison must be true."""

    first: "Expression"
    steps: tuple[tuple[ComparisonOperator, "Expression"], ...]


class BooleanOperation(Struct, frozen=True):
    """`and`, `or`: evaluated from the left, and no further than needed."""

    operator: BooleanOperator
    terms: tuple["Expression", ...]


class Conditional(Struct, frozen=True):
    """`yes if test else no`."""

    test: "Expression"
    yes: "Expression"
    no: "Expression"


class Call(Struct, frozen=True):
    """A call of a function."""

    function: FunctionName
    arguments: tuple["Expression", ...]


Expression = (
    Literal
    | Name
    | ListLiteral
    | UnaryOperation
    | Arithmetic
    | Comparison
    | BooleanOperation
    | Conditional
    | Call
)


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression, from left to right."""
    match expression:
        case Literal() | Name():
            return ()
        case ListLiteral(items) | Call(_, items) | BooleanOperation(_, items):
            return items
        case UnaryOperation(_, operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Comparison(first, steps):
            return (first, *(operand for _, operand in steps))
        case Conditional(test, yes, no):
            return (test, yes, no)
        case _:
            assert_never(expression)


def names_in(expression: Expression) -> Iterator[Name]:
    """Yield every name in an expression, in its order, with repetitions."""
    if isinstance(expression, Name):
        yield expression
    for child in children(expression):
        yield from names_in(child)
