"""Values of expressions, their errors, and short-circuit evaluation."""

import math
from typing import Any

import pytest

from sweepledger.expressions.evaluation import ComputeError, compile_expression
from sweepledger.expressions.parser import parse_expression
from sweepledger.structs.values import Value

VALUES: dict[str, Value] = {
    "a": 64,
    "b": 5,
    "zero": 0,
    "lr": 0.1,
    "big": 2**53,
    "huge": 1e300,
    "optimizer": "adam",
    "empty": "",
    "flag": True,
    "off": False,
    "nothing": None,
    "layers": (1, 2.5, "x", True),
    "written": [3, 4],
}


def compute(text: str) -> Value:
    return compile_expression(parse_expression(text))(VALUES)


def python(text: str) -> Any:
    """Evaluate with Python's own eval, which nothing but this test may use."""
    names = {**VALUES, "true": True, "false": False, "null": None}
    functions = {
        name: getattr(math, name) for name in ("ceil", "exp", "floor", "log", "log10", "log2", "sqrt")
    }
    builtins = {"abs": abs, "len": len, "max": max, "min": min, "round": round}
    return eval(text, {"__builtins__": builtins}, {**names, **functions})  # noqa: S307 - texts of this file


@pytest.mark.parametrize(
    "text",
    [
        *("a + b * 2 - 1", "a / b", "a // b", "-a // b", "a % b", "-a % b", "a % -b", "7.5 // 2", "-7.5 % 2"),
        *("2 ** 10", "2 ** -1", "-2 ** 2", "(-2) ** 3", "lr ** 0.5", "zero ** 0", "4 ** 0.5", "2.0 ** 3"),
        *("-a", "- -a", "-lr", "a < b", "a >= 64", "lr <= 0.1", "0 < lr < 1", "1 < lr < zero", "a > b > lr"),
        *("optimizer == 'adam'", "optimizer < 'b'", "'a' <= optimizer", "optimizer != 'sgd'", "a == 64.0"),
        *("optimizer in ['sgd', 'adam']", "optimizer not in ['sgd']", "'da' in optimizer", "a in [1, 64]"),
        *("2.5 in layers", "'y' in layers", "a not in layers", "layers == layers", "[1, [2]] == [1, [2.0]]"),
        *("flag and a > 1", "off or flag", "not flag", "not off and flag and not off", "off or off or flag"),
        *("a - b - lr", "a / b / lr // 2 % 3", "not a == b", "off and flag or flag"),
        *("a < b <= lr != 1 in [2]", "2 ** 3 ** 2", "2 ** -1 ** 2"),
        *("1 if flag else 2", "a if off else b if off else lr", "nothing == null", "a == null", "null != 0"),
        *("abs(-b)", "ceil(lr)", "floor(-lr)", "exp(1)", "log(a)", "log(a, 2)", "log10(1000)", "sqrt(a)"),
        *("max(a, b, lr)", "min(b, 1)", "max([1, 2])", "min(written)", "len(optimizer)", "len(layers)"),
        *("round(2.5)", "round(lr)", "round(1.2345, 2)", "round(1234, -2)", "huge * 2", "'' == empty"),
        *("log2(a)", "len([])", "big - 1"),
        *("[a, lr, 'x']", "a", "optimizer", "'text'", "true", "1.50"),
    ],
)  # fmt: skip
def test_an_expression_computes_what_it_computes_in_python(text: str) -> None:
    expected = python(text)
    if isinstance(expected, list):
        expected = tuple(expected)

    value = compute(text)

    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("flag == 1", False), ("1 == true", False), ("off == 0", False), ("flag != 1", True)),
        *(("flag in [1]", False), ("flag in [true]", True), ("a in [true, '64']", False)),
        *(("[1] == [true]", False), ("1 in layers", True), ("'1' == 1", False), ("null == false", False)),
        *(("[1, 2] in [[1, 2.0]]", True), ("layers in [1, 2]", False), ("off in [0, '']", False)),
        *(("a not in [64.0]", False), ("nothing in [null]", True), ("true in [a == 64]", True)),
    ],
)
def test_values_of_different_types_are_never_equal(text: str, value: bool) -> None:  # noqa: FBT001
    assert compute(text) is value


REFUSED = {
    "a / zero": "must not divide by 0, got a division with /",
    "zero ** -1": "must not divide by 0, got a division with **",
    "optimizer + 1": "optimizer must be a number, got 'adam'",
    "'a' * 2": "an operand of * must be a number, got 'a'",
    "-nothing": "nothing must be a number, got null",
    "a and flag": "a must be true or false, got 64",
    "off or 'x'": "an operand of or must be true or false, got 'x'",
    "not nothing": "nothing must be true or false, got null",
    "1 if a else 2": "a must be true or false, got 64",
    "optimizer < 1": "< must compare two numbers or two texts, got 'adam' < 1",
    "flag >= 1": ">= must compare two numbers or two texts, got true >= 1",
    "0 < a < 'x'": "< must compare two numbers or two texts, got 64 < 'x'",
    "1 in a": "in needs a list on its right, or text on both sides, got 1 in 64",
    "big + 1": "integers must be from -2^53 to 2^53, got a larger one",
    "2 ** 54": "integers must be from -2^53 to 2^53, got a larger one",
    "2 ** big": "numbers must be finite, got one too large from **",
    "huge * huge": "numbers must be finite, got one too large",
    "(-2) ** 0.5": "a negative number must have a whole exponent, got -2 ** 0.5",
    "log(0)": "must be defined, got log(0)",
    "sqrt(-1)": "must be defined, got sqrt(-1)",
    "exp(1000)": "numbers must be finite, got one too large from exp",
    "abs(optimizer)": "an argument of abs must be a number, got 'adam'",
    "max(a)": "the arguments of max must be several numbers or a list of numbers, got 64",
    "min([])": "the arguments of min must be several numbers or a list of numbers, got an empty list",
    "max(layers)": "an argument of max must be a number, got 'x'",
    "len(a)": "the argument of len must be a text or a list, got 64",
    "round(lr, 0.5)": "digits must be an integer from -308 to 308, got 0.5",
    "round(1.7e308, -308)": "numbers must be finite, got one too large",
    "[layers]": "a list must not contain lists, got one",
}


@pytest.mark.parametrize("text", REFUSED)
def test_an_expression_without_a_value_has_a_reason(text: str) -> None:
    with pytest.raises(ComputeError) as caught:
        compute(text)

    assert str(caught.value) == REFUSED[text]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("flag or gone", True),
        ("off and gone", False),
        ("flag or gone or gone", True),
        ("flag and off and gone", False),
        ("1 if flag else gone", 1),
        ("gone if off else 2", 2),
        ("a < b < gone", False),
        ("flag or 1 / zero > 1", True),
    ],
)
def test_operands_that_do_not_matter_are_not_evaluated(text: str, value: Value) -> None:
    assert compute(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("0.1 + 0.2 == 0.3", "lr + 0.2 <= 0.3", "0.3 < lr + 0.2 + 1e-30", "1.1 * 1.1 == 1.21"),
        *("3 * lr >= 0.3 and -3 * lr == -0.3", "10 ** -3 == 0.001", "0.1 + 0.2 in [0.3]", "0.3 / lr == 3"),
        *("[lr + 0.2] == [0.3]", "b / 3 + b / 3 + b / 3 == b", "0.3 // lr == 3 and 0.3 % lr == 0"),
        *("-0.3 // 0.2 == -2 and -0.3 % 0.2 == 0.1", "max(0.1 + 0.2, lr) == 0.3", "abs(lr - 0.3) == 0.2"),
        *("ceil(0.1 * 3 * 10) == 3 and floor(4.35 * 100) == 435", "lr == 0.1 < lr + 1e-20"),
        *("round(2.675 * 10, 2) == 26.75 and round(2.675, 2) == 2.68", "lr * 1e-300 * 1e-300 > 0"),
        *("not 1.1 ** 2 != 1.21", "not 3 * lr not in [0.3, 0.4]", "not huge + 1 == huge"),
    ],
)
def test_decimals_are_what_they_are_written_as(text: str) -> None:
    assert compute(text) is True
