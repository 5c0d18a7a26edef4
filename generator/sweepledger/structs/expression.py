"""The small language of constraints and derived values, as a tree of frozen nodes.

Reading text into it is the reader's, computing it is search's. Its meaning is Python's on numbers, texts,
booleans, null and lists; it has no attributes, no assignment, no call but of the functions listed here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import assert_never

from generator.structs.values import Value

ArithmeticOperator = OneOf["+", "-", "*", "/", "//", "%", "**"]
ComparisonOperator = OneOf["<", "<=", ">", ">=", "==", "!=", "in", "not in"]
SignOperator = OneOf["-", "not"]
LogicOperator = OneOf["and", "or"]
Function = OneOf["abs", "ceil", "exp", "floor", "len", "log", "log10", "log2", "max", "min", "round", "sqrt"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, true, false or null."""

    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter or a derived value."""

    name: str
    offset: int
    """Where it stands in the text, from 0."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Values in brackets."""

    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Sign:
    """`-x` or `not x`."""

    operator: SignOperator
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers make one; `/` is the true quotient."""

    operator: ArithmeticOperator
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a < b <= c`: every step must hold."""

    first: "Expression"
    steps: tuple[tuple[ComparisonOperator, "Expression"], ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """`and`, `or`: read from the left, and no further than needed."""

    operator: LogicOperator
    terms: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """`yes if test else no`."""

    test: "Expression"
    yes: "Expression"
    no: "Expression"


@dataclass(frozen=True, slots=True)
class Call:
    """One of the functions, applied."""

    function: Function
    arguments: tuple["Expression", ...]


Expression = Literal | Name | Listed | Sign | Arithmetic | Comparison | Logic | Conditional | Call


def children(expression: Expression) -> tuple[Expression, ...]:
    """List what an expression is made of, from left to right."""
    match expression:
        case Literal() | Name():
            return ()
        case Listed(items) | Call(_, items) | Logic(_, items):
            return items
        case Sign(_, operand):
            return (operand,)
        case Arithmetic(_, left, right):
            return (left, right)
        case Comparison(first, steps):
            return (first, *(operand for _, operand in steps))
        case Conditional(test, yes, no):
            return (test, yes, no)
        case _:
            assert_never(expression)


def mentions(expression: Expression) -> Iterator[Name]:
    """Find every name in an expression, in the order written, repeated where it is."""
    if isinstance(expression, Name):
        yield expression
    for child in children(expression):
        yield from mentions(child)
