"""The types of an expression's values, checked before anything is computed.

The check finds names that no parameter has, and operations that fail for all values. Failures for single
configurations are found during evaluation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from sweepledger.reader.safe_repr import safe_repr, truncate
from sweepledger.structs import expression as tree
from sweepledger.structs.values import Value


class ValueType(StrEnum):
    """Type of a value in an expression."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    NULL = "null"
    LIST = "list"


ValueTypes = frozenset[ValueType]
"""Possible types of a value."""

ANY: ValueTypes = frozenset(ValueType)
NUMBERS: ValueTypes = frozenset({ValueType.NUMBER})
BOOLEANS: ValueTypes = frozenset({ValueType.BOOLEAN})
SIZED: ValueTypes = frozenset({ValueType.TEXT, ValueType.LIST})
ORDERED: ValueTypes = frozenset({ValueType.NUMBER, ValueType.TEXT})


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """An operation that fails for all values, or an unknown name."""

    offset: int | None
    """Offset of the name concerned, from 0; None if there is no name."""
    message: str
    unknown: str | None = None
    """The unknown name."""
    hint: str | None = None


def type_of(value: Value) -> ValueType:
    """Return the type of a value."""
    match value:
        case None:
            return ValueType.NULL
        case bool():
            return ValueType.BOOLEAN
        case int() | float():
            return ValueType.NUMBER
        case str():
            return ValueType.TEXT
        case _:
            return ValueType.LIST


def check_types(
    expression: tree.Expression, known: Mapping[str, ValueTypes]
) -> tuple[tuple[TypeProblem, ...], ValueTypes]:
    """Return the problems that do not depend on values, and the possible types of the result."""
    checker = _TypeChecker(known)
    kinds = checker.kinds(expression)
    return tuple(checker.findings), kinds


def check_condition(
    text: str, expression: tree.Expression, known: Mapping[str, ValueTypes]
) -> tuple[TypeProblem, ...]:
    """Return the problems of an expression that must be true or false."""
    problems, kinds = check_types(expression, known)
    if problems or ValueType.BOOLEAN in kinds:
        return problems
    got = " or ".join(sorted(kinds))
    message = f"must be true or false, got a {got}: {truncate(repr(text))}"
    return (TypeProblem(None, message, hint="compare it with something, as in `x <= 10`"),)


@dataclass(slots=True)
class _TypeChecker:
    """Visits a tree once. After a problem, it continues as if the operation were valid."""

    known: Mapping[str, ValueTypes]
    findings: list[TypeProblem] = field(default_factory=list)

    def kinds(self, expression: tree.Expression) -> ValueTypes:  # noqa: C901, PLR0911, PLR0912 - a case per kind
        """Return the possible types of an expression, and collect its problems."""
        match expression:
            case tree.Literal(value):
                return frozenset({type_of(value)})
            case tree.Name(name=name):
                if name in self.known:
                    return self.known[name]
                message = f"must be the name of a parameter or a derived value, got {safe_repr(name)}"
                self.findings.append(TypeProblem(expression.offset, message, name))
                return ANY
            case tree.ListLiteral(items):
                for item in items:
                    self.kinds(item)
                return frozenset({ValueType.LIST})
            case tree.Conditional(test, yes, no):
                self._need((test,), BOOLEANS, "if")
                return self.kinds(yes) | self.kinds(no)
            case tree.Comparison(first, steps):
                self._steps(first, steps)
                return BOOLEANS
            case tree.UnaryOperation("-", operand):
                return self._need((operand,), NUMBERS, "-")
            case tree.UnaryOperation(_, operand):
                return self._need((operand,), BOOLEANS, "not")
            case tree.BooleanOperation(word, terms):
                return self._need(terms, BOOLEANS, word)
            case tree.Arithmetic(sign, left, right):
                return self._need((left, right), NUMBERS, sign)
            case tree.Call():
                return self._call(expression)
            case _:
                assert_never(expression)

    def _need(self, operands: Iterable[tree.Expression], needed: ValueTypes, word: str) -> ValueTypes:
        """Report operands that never have a type that the operation needs; return the types of its result."""
        for operand in operands:
            found = self.kinds(operand)
            if not found & needed:
                self._report(operand, f"{word} must have {_type_names(needed)}, got {_type_names(found)}")
        return needed

    def _call(self, call: tree.Call) -> ValueTypes:
        if call.function == "len":
            self._need(call.arguments, SIZED, "len")
        elif call.function in {"max", "min"} and len(call.arguments) == 1:
            self._need(call.arguments, frozenset({ValueType.LIST}), call.function)
        else:
            self._need(call.arguments, NUMBERS, call.function)
        return NUMBERS

    def _steps(
        self, first: tree.Expression, steps: tuple[tuple[tree.ComparisonOperator, tree.Expression], ...]
    ) -> None:
        left, left_kinds = first, self.kinds(first)
        for sign, right in steps:
            right_kinds = self.kinds(right)
            both = f"got {_type_names(left_kinds)} and {_type_names(right_kinds)}"
            if sign in {"in", "not in"}:
                if not (ValueType.LIST in right_kinds or ValueType.TEXT in left_kinds & right_kinds):
                    self._report(right, f"{sign} needs a list on its right, or text on both sides, {both}")
            elif sign not in {"==", "!="} and not left_kinds & right_kinds & ORDERED:
                place = left if next(tree.names_in(left), None) else right
                self._report(place, f"{sign} must compare two numbers or two texts, {both}")
            left, left_kinds = right, right_kinds

    def _report(self, expression: tree.Expression, message: str) -> None:
        name = next(tree.names_in(expression), None)
        self.findings.append(TypeProblem(None if name is None else name.offset, message))


def _type_names(kinds: ValueTypes) -> str:
    return " or ".join(f"a {kind}" if kind is not ValueType.NULL else "null" for kind in sorted(kinds))
