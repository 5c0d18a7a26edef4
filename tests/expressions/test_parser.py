"""Expressions as text: what they mean, what is refused, where and with which way out."""

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from sweepledger.expressions.parser import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_NODES,
    ExpressionError,
    parse_expression,
)
from sweepledger.structs.expression import (
    Expression,
    ListLiteral,
    Name,
    names_in,
)

WORDS = [
    *("a", "b", "lr", "opt.lr", "1", "2.5", "1e-3", "'x'", '"y"', "and", "or", "not", "in", "not in", "if"),
    *("else", "+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "(", ")", "[", "]", ","),
    *("max(", "abs("),
]


def placeless(text: str) -> Expression:
    """Read one name or operator around names, all of them at offset 0."""
    expression = parse_expression(text)
    assert isinstance(expression, Name)
    return replace(expression, offset=0)


@given(
    some.text(max_size=60)
    | some.lists(some.sampled_from([*WORDS, "`", "&&", "é", "\u200b", "$"])).map("".join)
)
def test_any_text_is_an_expression_or_says_where_it_is_none(text: str) -> None:
    try:
        parse_expression(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text), error.message  # noqa: PT017 - most texts are none, some are


@pytest.mark.parametrize("name", ["max-lr", "and", "true", "True", "a.b-c", "max", "x y"])
def test_a_name_in_backticks_is_a_name_whatever_it_is(name: str) -> None:
    assert placeless(f"`{name}`") == Name(name, 0)


def test_every_name_knows_its_place() -> None:
    names = list(names_in(parse_expression("a + `max-lr` *  max(b, a)")))

    assert names == [Name("a", 0), Name("max-lr", 4), Name("b", 20), Name("a", 23)]


HIDDEN = "must not hold an invisible character"
REFUSED = {
    "": (0, "must be a value or a name, got the end", None),
    "a +": (3, "must be a value or a name, got the end", None),
    "a b": (2, "must end here or go on with an operator, got 'b'", None),
    "a && b": (2, "must not have '&&'", "write and"),
    "!a": (0, "must not have '!'", "write not"),
    "a = 1": (2, "must not have '='", "write == to compare"),
    "a ≤ 1": (2, "must not have '≤'", "write <="),
    "a ^ 2": (2, "must not have '^'", "write ** for a power"),
    "{a}": (0, "must not have '{'", "write lists between [ and ]"),
    "${a}": (0, "must not have '$'", "write the name alone"),
    "a is null": (2, "must end here or go on with an operator, got 'is'", "write == to compare"),
    "True": (0, "must be 'true', got 'True'", "write true; a parameter of this name is written `True`"),
    "a AND b": (2, "must be 'and', got 'AND'", "write and; a parameter of this name is written `AND`"),
    "sqr(2)": (0, "must be a function, got 'sqr'", "did you mean sqrt(…)?"),
    "a.lower()": (
        0,
        "must be a function, got 'a.lower'",
        "functions: abs, ceil, exp, floor, len, log, log10, log2, max, min, round, sqrt",
    ),
    "(a).b": (
        3,
        "must not have '.'",
        "values have no attributes; a nested name is written whole, such as optimizer.lr",
    ),
    "a[0]": (1, "must end here or go on with an operator, got '['", "values have no items to take out"),
    "(a)(b)": (
        3,
        "must end here or go on with an operator, got '('",
        "only a function's name can stand before (",
    ),
    "a, b": (1, "must end here or go on with an operator, got ','", "several values stand in a list: [a, b]"),
    "+a": (0, "must be a value or a name, got '+'", "leave a leading + out"),
    "(a": (0, "must be closed, got '('", "add )"),
    "[a)": (2, "must go on with ']', got ')'", "it closes nothing"),
    "a)": (1, "must end here or go on with an operator, got ')'", "it closes nothing"),
    "'abc": (0, "must be closed, got 'abc", "close the text with another '"),
    "`a": (0, "must be closed, got `a", "a name in backticks needs one before and one after it"),
    "a if b": (6, "must go on with 'else', got the end", "write a if c else b"),
    "a not b": (6, "must go on with 'in', got 'b'", "write not in"),
    "1 + not a": (4, "must be an operand, got 'not'", "put brackets around it: (not a)"),
    "max()": (0, "max must be given one or more values, got 0", None),
    "abs(1, 2)": (0, "abs must be given one value, got 2", None),
    **{
        text: (0, f"must be a plain decimal number, got {text}", "write it such as 1000, 0.001 or 1e-3")
        for text in ("010", "0x10", "1_000", "2a")
    },
    "1e999": (0, "must be a finite number, got 1e999", None),
    "é": (0, "must not have 'é'", "names in expressions must be ASCII; put text in quotes"),
    "a\u200b": (1, f"{HIDDEN}, got U+200B zero width space", "delete it"),
    "'a\u202e'": (2, f"{HIDDEN}, got U+202E right-to-left override", "delete it"),
}


@pytest.mark.parametrize("text", REFUSED, ids=ascii)
def test_a_mistake_is_said_with_its_place_and_what_to_write_instead(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)

    assert (caught.value.offset, caught.value.message, caught.value.hint) == REFUSED[text]


def test_a_text_as_long_as_allowed_is_read_and_a_longer_one_is_not() -> None:
    longest = "a".ljust(MAX_LENGTH)

    assert isinstance(parse_expression(longest), Name)
    with pytest.raises(ExpressionError, match="must be at most 1000 characters, got 1001"):
        parse_expression(longest + " ")


def test_as_many_nodes_as_allowed_are_read_and_one_more_is_not() -> None:
    most = f"[{','.join('1' * (MAX_NODES - 1))}]"

    assert isinstance(parse_expression(most), ListLiteral)
    with pytest.raises(ExpressionError, match=f"must have at most {MAX_NODES} values, names and operators"):
        parse_expression(most.replace("[", "[1,"))


@pytest.mark.parametrize(
    ("before", "after"),
    [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("1 ** ", ""), ("1 if 1 else ", ""), ("abs(", ")")],
)
def test_nesting_is_bounded_whatever_nests(before: str, after: str) -> None:
    few = MAX_DEPTH // 2 - 1

    parse_expression(f"{before * few}1{after * few}")
    with pytest.raises(ExpressionError, match=f"must nest at most {MAX_DEPTH} levels deep"):
        parse_expression(f"{before * MAX_DEPTH}1{after * MAX_DEPTH}")


def test_a_long_sum_is_not_deep() -> None:
    assert len(list(names_in(parse_expression(" + ".join(["a"] * 100))))) == 100
