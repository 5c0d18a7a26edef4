"""What an expression can be, known before anything is computed.

Finds names that no parameter has, and operations that fail whatever the values. What fails for some
assignments only is found when they are computed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from generator.reader.shown import shown
from generator.spec.nearest import did_you_mean
from generator.structs.expression import (
    Arithmetic,
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
    mentions,
)
from generator.structs.values import Value


class Kind(StrEnum):
    """What a value is to an expression."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    NULL = "null"
    LIST = "list"


Kinds = frozenset[Kind]
"""What a value may be."""

ANY: Kinds = frozenset(Kind)
NUMBERS: Kinds = frozenset({Kind.NUMBER})
BOOLEANS: Kinds = frozenset({Kind.BOOLEAN})
SIZED: Kinds = frozenset({Kind.TEXT, Kind.LIST})
ORDERED: Kinds = frozenset({Kind.NUMBER, Kind.TEXT})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that cannot be meant."""

    offset: int | None
    """Of the name that it is about, from 0; None where no name is near."""
    message: str
    hint: str | None = None


def kind_of(value: Value) -> Kind:
    """Tell what a value is."""
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOLEAN
        case int() | float():
            return Kind.NUMBER
        case str():
            return Kind.TEXT
        case _:
            return Kind.LIST


def check(expression: Expression, known: Mapping[str, Kinds]) -> tuple[tuple[Finding, ...], Kinds]:
    """Find what is wrong whatever the values, and say what the expression may be."""
    checker = _Checker(known)
    kinds = checker.kinds(expression)
    return tuple(checker.findings), kinds


@dataclass(slots=True)
class _Checker:
    """Goes through a tree once. After a finding it goes on as if the operation had worked."""

    known: Mapping[str, Kinds]
    findings: list[Finding] = field(default_factory=list)

    def kinds(self, expression: Expression) -> Kinds:  # noqa: C901, PLR0911 - one case a kind of node
        """Say what an expression may be, noting every finding on the way."""
        match expression:
            case Literal(value):
                return frozenset({kind_of(value)})
            case Name():
                return self._named(expression)
            case Listed(items):
                for item in items:
                    self.kinds(item)
                return frozenset({Kind.LIST})
            case Conditional(test, yes, no):
                self._need((test,), BOOLEANS, "if")
                return self.kinds(yes) | self.kinds(no)
            case Comparison(first, steps):
                self._steps(first, steps)
                return BOOLEANS
            case Sign("-", operand):
                return self._need((operand,), NUMBERS, "-")
            case Sign(_, operand):
                return self._need((operand,), BOOLEANS, "not")
            case Logic(word, terms):
                return self._need(terms, BOOLEANS, word)
            case Arithmetic(sign, left, right):
                return self._need((left, right), NUMBERS, sign)
            case Call():
                return self._call(expression)
            case _:
                assert_never(expression)

    def _named(self, name: Name) -> Kinds:
        if name.name in self.known:
            return self.known[name.name]
        message = f"must be the name of a parameter or a derived value, got {shown(name.name)}"
        self.findings.append(Finding(name.offset, message, _hint(name.name, self.known)))
        return ANY

    def _need(self, operands: Iterable[Expression], needed: Kinds, word: str) -> Kinds:
        """Report operands that can never be what an operation needs; give what the operation makes."""
        for operand in operands:
            found = self.kinds(operand)
            if not found & needed:
                self._report(operand, f"{word} must have {_said(needed)}, got {_said(found)}")
        return needed

    def _call(self, call: Call) -> Kinds:
        if call.function == "len":
            self._need(call.arguments, SIZED, "len")
        elif call.function in {"max", "min"} and len(call.arguments) == 1:
            self._need(call.arguments, frozenset({Kind.LIST}), call.function)
        else:
            self._need(call.arguments, NUMBERS, call.function)
        return NUMBERS

    def _steps(self, first: Expression, steps: tuple[tuple[ComparisonOperator, Expression], ...]) -> None:
        left, left_kinds = first, self.kinds(first)
        for sign, right in steps:
            right_kinds = self.kinds(right)
            both = f"got {_said(left_kinds)} and {_said(right_kinds)}"
            if sign in {"in", "not in"}:
                if not _can_hold(left_kinds, right_kinds):
                    self._report(right, f"{sign} must look into a list, or for a text in a text, {both}")
            elif sign not in {"==", "!="} and not left_kinds & right_kinds & ORDERED:
                place = left if next(mentions(left), None) else right
                self._report(place, f"{sign} must compare two numbers or two texts, {both}")
            left, left_kinds = right, right_kinds

    def _report(self, expression: Expression, message: str) -> None:
        name = next(mentions(expression), None)
        self.findings.append(Finding(None if name is None else name.offset, message))


def _can_hold(item: Kinds, whole: Kinds) -> bool:
    return Kind.LIST in whole or Kind.TEXT in item & whole


def _said(kinds: Kinds) -> str:
    return " or ".join(f"a {kind}" if kind is not Kind.NULL else "null" for kind in sorted(kinds))


def _hint(found: str, known: Iterable[str]) -> str | None:
    names = list(known)
    if "-" in "".join(names) and (
        whole := [name for name in names if "-" in name and name.startswith(f"{found}-")]
    ):
        return f"a name with a hyphen stands in backticks: `{min(whole)}`"
    return did_you_mean(found, names)
