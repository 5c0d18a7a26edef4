"""Type errors of expressions: reported once, at a name, and never for valid expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sweepledger.expressions.evaluation import ComputeError, compile_expression
from sweepledger.expressions.kinds import ValueType, ValueTypes, check_types, type_of
from sweepledger.expressions.parser import ExpressionError, parse_expression
from sweepledger.structs.values import Value

KNOWN: dict[str, ValueTypes] = {
    "lr": frozenset({ValueType.NUMBER}),
    "width": frozenset({ValueType.NUMBER}),
    "optimizer": frozenset({ValueType.TEXT}),
    "flag": frozenset({ValueType.BOOLEAN}),
    "layers": frozenset({ValueType.LIST}),
    "mixed": frozenset({ValueType.NUMBER, ValueType.TEXT, ValueType.NULL}),
    "optimizer.beta": frozenset({ValueType.NUMBER}),
    "max-lr": frozenset({ValueType.NUMBER}),
}


def findings(text: str) -> list[tuple[int | None, str, str | None]]:
    problems, _ = check_types(parse_expression(text), KNOWN)
    return [(finding.offset, finding.message, finding.unknown) for finding in problems]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("lr * 2 + width", {ValueType.NUMBER}),
        ("lr < 0.1 and not flag", {ValueType.BOOLEAN}),
        ("optimizer", {ValueType.TEXT}),
        ("null", {ValueType.NULL}),
        ("[lr, flag]", {ValueType.LIST}),
        ("mixed", {ValueType.NUMBER, ValueType.TEXT, ValueType.NULL}),
        ("lr if flag else optimizer", {ValueType.NUMBER, ValueType.TEXT}),
        ("max(layers) + max(lr, 1) + len(optimizer) + len(layers)", {ValueType.NUMBER}),
        ("-lr", {ValueType.NUMBER}),
        ("optimizer in ['adam'] or 'a' in optimizer or lr not in layers", {ValueType.BOOLEAN}),
        ("optimizer < 'b' <= mixed", {ValueType.BOOLEAN}),
        ("mixed + 1 < mixed", {ValueType.BOOLEAN}),
        ("optimizer == 1", {ValueType.BOOLEAN}),
        ("flag == lr != null", {ValueType.BOOLEAN}),
        ("'a' in mixed", {ValueType.BOOLEAN}),
    ],
)
def test_what_can_succeed_is_not_reported_and_its_kinds_are_known(text: str, kinds: set[ValueType]) -> None:
    assert check_types(parse_expression(text), KNOWN) == ((), frozenset(kinds))


FOUND = {
    "lrr < 1": (0, "must be the name of a parameter or a derived value, got 'lrr'", "lrr"),
    "1 < Width": (4, "must be the name of a parameter or a derived value, got 'Width'", "Width"),
    "max < 1": (0, "must be the name of a parameter or a derived value, got 'max'", "max"),
    "optimizer + 1": (0, "+ must have a number, got a text", None),
    "1 - flag": (4, "- must have a number, got a boolean", None),
    "-layers": (1, "- must have a number, got a list", None),
    "lr * null": (None, "* must have a number, got null", None),
    "lr < 'abc'": (0, "< must compare two numbers or two texts, got a number and a text", None),
    "'abc' < lr": (8, "< must compare two numbers or two texts, got a text and a number", None),
    "0 < lr < optimizer": (4, "< must compare two numbers or two texts, got a number and a text", None),
    "flag >= 1": (0, ">= must compare two numbers or two texts, got a boolean and a number", None),
    "1 in lr": (5, "in needs a list on its right, or text on both sides, got a number and a number", None),
    "lr not in optimizer": (
        10,
        "not in needs a list on its right, or text on both sides, got a number and a text",
        None,
    ),
    "lr and flag": (0, "and must have a boolean, got a number", None),
    "flag or optimizer": (8, "or must have a boolean, got a text", None),
    "not mixed": (4, "not must have a boolean, got null or a number or a text", None),
    "1 if lr else 2": (5, "if must have a boolean, got a number", None),
    "sqrt(optimizer)": (5, "sqrt must have a number, got a text", None),
    "max(lr)": (4, "max must have a list, got a number", None),
    "min(lr, flag)": (8, "min must have a number, got a boolean", None),
    "len(lr)": (4, "len must have a list or a text, got a number", None),
    "[lr + 'x']": (None, "+ must have a number, got a text", None),
    "(lr < 1) + 1": (1, "+ must have a number, got a boolean", None),
}


@pytest.mark.parametrize("text", FOUND)
def test_what_can_never_succeed_is_reported_at_the_nearest_name(text: str) -> None:
    assert findings(text) == [FOUND[text]]


VALUES: dict[str, list[Value]] = {
    "lr": [0.1, 3],
    "width": [1, -2],
    "optimizer": ["adam", ""],
    "flag": [True, False],
    "layers": [(1, 2), ()],
    "mixed": [1, "x", None],
}
PARTS = some.sampled_from([*VALUES, "1", "'a'", "true", "null", "[]"])


@given(
    some.recursive(
        PARTS,
        lambda parts: some.one_of(
            some.tuples(parts, some.sampled_from(["+", "/", "<", "==", "in", "and", "or"]), parts).map(
                lambda part: f"({' '.join(part)})"
            ),
            parts.map(lambda part: f"(not {part})"),
            parts.map(lambda part: f"len({part})"),
            parts.map(lambda part: f"max({part})"),
            some.tuples(parts, parts, parts).map(lambda part: f"({part[0]} if {part[1]} else {part[2]})"),
        ),
        max_leaves=5,
    ),
    some.data(),
)
def test_what_computes_has_no_finding_where_it_was_looked_at_and_a_kind_foretold(
    text: str, data: some.DataObject
) -> None:
    values = {name: data.draw(some.sampled_from(choices)) for name, choices in VALUES.items()}
    try:
        expression = parse_expression(text)
        value = compile_expression(expression)(values)
    except (ExpressionError, ComputeError):
        return

    problems, kinds = check_types(expression, KNOWN)

    assert type_of(value) in kinds
    # `and`, `or` and `if` may pass by what could never succeed.
    assert not problems or any(word in text for word in (" and ", " or ", " if ", " < "))
