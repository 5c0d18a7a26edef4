"""Values of expressions, their errors, and short-circuit evaluation."""

import ast
import math
import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

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
        *(
            ("flag in [1]", False),
            ("1 in [true]", False),
            ("flag in [true]", True),
            ("a in [true, '64']", False),
        ),
        *(("[1] == [true]", False), ("1 in layers", True), ("'1' == 1", False), ("null == false", False)),
        *(("[1, 2] in [[1, 2.0]]", True), ("layers in [1, 2]", False), ("off in [0, '']", False)),
        *(("a not in [64.0]", False), ("nothing in [null]", True), ("true in [a == 64]", True)),
    ],
)
def test_values_of_different_types_are_never_equal(text: str, value: bool) -> None:  # noqa: FBT001
    assert compute(text) is value


REFUSED = {
    "a / zero": "must not divide by 0, got a division with /",
    "a // zero": "must not divide by 0, got a division with //",
    "a % 0.0": "must not divide by 0, got a division with %",
    "zero ** -1": "must not divide by 0, got a division with **",
    "optimizer + 1": "optimizer must be a number, got 'adam'",
    "1 + flag": "flag must be a number, got true",
    "'a' * 2": "an operand of * must be a number, got 'a'",
    "-nothing": "nothing must be a number, got null",
    "(a if flag else b) - layers": "layers must be a number, got a list",
    "('x' if flag else 1) - 1": "an operand of - must be a number, got 'x'",
    "a and flag": "a must be true or false, got 64",
    "flag and a": "a must be true or false, got 64",
    "off or 'x'": "an operand of or must be true or false, got 'x'",
    "off or off or 1": "an operand of or must be true or false, got 1",
    "not nothing": "nothing must be true or false, got null",
    "1 if a else 2": "a must be true or false, got 64",
    "optimizer < 1": "< must compare two numbers or two texts, got 'adam' < 1",
    "1 < optimizer": "< must compare two numbers or two texts, got 1 < 'adam'",
    "flag >= 1": ">= must compare two numbers or two texts, got true >= 1",
    "layers > layers": "> must compare two numbers or two texts, got a list > a list",
    "0 < a < 'x'": "< must compare two numbers or two texts, got 64 < 'x'",
    "1 in a": "in needs a list, or two texts, got 1 in 64",
    "1 not in optimizer": "in needs a list, or two texts, got 1 in 'adam'",
    "big + 1": "integers must be from -2^53 to 2^53, got a larger one",
    "-big - 1": "integers must be from -2^53 to 2^53, got a larger one",
    "2 ** 54": "integers must be from -2^53 to 2^53, got a larger one",
    "2 ** big": "numbers must be finite, got one too large from **",
    "-3 ** big": "numbers must be finite, got one too large from **",
    "huge * huge": "numbers must be finite, got one too large",
    "huge ** 2": "numbers must be finite, got one too large",
    "huge * huge - huge * huge": "numbers must be finite, got one too large",
    "(-2) ** 0.5": "a negative number must have a whole exponent, got -2 ** 0.5",
    "log(0)": "must be defined, got log(0)",
    "log(a, 1)": "must be defined, got log(64, 1)",
    "sqrt(-1)": "must be defined, got sqrt(-1)",
    "exp(1000)": "numbers must be finite, got one too large from exp",
    "floor(huge)": "integers must be from -2^53 to 2^53, got a larger one",
    "abs(optimizer)": "an argument of abs must be a number, got 'adam'",
    "max(a, flag)": "an argument of max must be a number, got true",
    "max(a)": "the arguments of max must be several numbers or a list of numbers, got 64",
    "min([])": "the arguments of min must be several numbers or a list of numbers, got an empty list",
    "max(layers)": "an argument of max must be a number, got 'x'",
    "len(a)": "the argument of len must be a text or a list, got 64",
    "round(lr, 0.5)": "digits must be an integer from -308 to 308, got 0.5",
    "round(a, -big)": "digits must be an integer from -308 to 308, got -9007199254740992",
    "round(1.7e308, -308)": "numbers must be finite, got one too large",
    "[layers]": "a list must not contain lists, got one",
    "[[1]] if flag else 2": "a list must not contain lists, got one",
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


def test_a_compiled_expression_is_evaluated_for_every_configuration() -> None:
    holds = compile_expression(parse_expression("a * b <= 4096 and lr < 0.1"))

    assert [holds({"a": 64, "b": b, "lr": lr}) for b in (64, 65) for lr in (0.05, 0.1)] == [
        True,
        False,
        False,
        False,
    ]


NUMBERS = some.sampled_from(["a", "b", "zero", "lr", "1", "2.5", "3", "1e-3", "10"])


def compound(parts: some.SearchStrategy[str]) -> some.SearchStrategy[str]:
    pairs = some.tuples(parts, some.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), parts)
    return some.one_of(
        pairs.map(lambda pair: f"({' '.join(pair)})"),
        parts.map(lambda part: f"(-{part})"),
        some.tuples(some.sampled_from(["max", "min"]), parts, parts).map(
            lambda call: f"{call[0]}({call[1]}, {call[2]})"
        ),
        some.tuples(some.sampled_from(["abs", "floor", "sqrt", "log", "exp"]), parts).map(
            lambda call: f"{call[0]}({call[1]})"
        ),
        some.tuples(parts, parts, parts, some.sampled_from(["<", "<=", "==", "!=", ">"])).map(
            lambda four: f"({four[0]} if {four[1]} {four[3]} {four[2]} else {four[0]})"
        ),
    )


def rational(text: str) -> Any:  # noqa: C901 - an operation each
    """Evaluate with Python's own eval, in which each float is the fraction that it is written as."""

    def fraction(value: Any) -> Any:
        return Fraction(repr(value)) if isinstance(value, float) else value

    def power(base: Any, exponent: Any) -> Any:
        whole = isinstance(exponent, int) and abs(exponent) <= 64
        if whole and (isinstance(base, Fraction) or exponent < 0):
            return Fraction(base) ** exponent
        return fraction(base**exponent if whole else float(base) ** float(exponent))

    def of_integers(operation: str, left: Any, right: Any) -> Any:
        value = eval(f"left {operation} right", {"left": left, "right": right})  # noqa: S307 - as above
        return value if isinstance(left, int) and isinstance(right, int) else Fraction(value)

    class Exact(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            return called("fraction", node)

        def visit_Name(self, node: ast.Name) -> ast.expr:
            return called("fraction", node)

        def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
            left, right = self.visit(node.left), self.visit(node.right)
            match node.op:
                case ast.Pow():
                    return called("power", left, right)
                case ast.Div():
                    return ast.BinOp(called("Fraction", left), node.op, right)
                case ast.FloorDiv() | ast.Mod():
                    sign = "//" if isinstance(node.op, ast.FloorDiv) else "%"
                    return called("of_integers", ast.Constant(sign), left, right)
                case _:
                    return ast.BinOp(left, node.op, right)

        def visit_Call(self, node: ast.Call) -> ast.expr:
            assert isinstance(node.func, ast.Name)
            arguments = [self.visit(argument) for argument in node.args]
            return called("fraction", called(node.func.id, *arguments))

    def called(name: str, *arguments: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])

    tree = ast.fix_missing_locations(ast.Expression(Exact().visit(ast.parse(text, mode="eval").body)))
    functions = {name: getattr(math, name) for name in ("exp", "floor", "log", "sqrt")}
    own = {"fraction": fraction, "power": power, "of_integers": of_integers, "Fraction": Fraction}
    names = {**VALUES, **functions, **own, "max": max, "min": min, "abs": abs}
    return eval(compile(tree, text, "eval"), names)  # noqa: S307 - as above


@given(some.recursive(NUMBERS, compound, max_leaves=8))
def test_random_arithmetic_gives_the_float_nearest_to_the_exact_number_or_an_error(text: str) -> None:
    try:
        value = compute(text)
    except ComputeError:
        assert goes_out_of_range(text)
    else:
        exact = rational(text)
        assert repr(value) == repr(float(exact) if isinstance(exact, Fraction) else exact)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0.1 + 0.2 == 0.3",
            "lr + 0.2 <= 0.3",
            "0.3 < lr + 0.2 + 1e-30",
            "1 - 0.9 == lr",
            "1.1 * 1.1 == 1.21",
        ),
        *("3 * lr >= 0.3 and -3 * lr == -0.3", "10 ** -3 == 0.001", "0.1 + 0.2 in [0.3]", "0.3 / lr == 3"),
        *("[lr + 0.2] == [0.3]", "b / 3 + b / 3 + b / 3 == b", "0.3 // lr == 3 and 0.3 % lr == 0"),
        *("-0.3 // 0.2 == -2 and -0.3 % 0.2 == 0.1", "max(0.1 + 0.2, lr) == 0.3", "abs(lr - 0.3) == 0.2"),
        *("ceil(0.1 * 3 * 10) == 3 and floor(4.35 * 100) == 435", "lr == 0.1 < lr + 1e-20"),
        *("round(2.675 * 10, 2) == 26.75 and round(2.675, 2) == 2.68", "lr * 1e-300 * 1e-300 > 0"),
        *(
            "not lr + 0.2 < 0.3",
            "not 1.1 ** 2 != 1.21",
            "not 3 * lr not in [0.3, 0.4]",
            "not huge + 1 == huge",
        ),
    ],
)
def test_decimals_are_what_they_are_written_as(text: str) -> None:
    assert compute(text) is True


def goes_out_of_range(text: str) -> bool:
    """Tell whether some part of a text has no value, or a number that no spec can hold."""
    for node in reversed(list(ast.walk(ast.parse(text, mode="eval").body))):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Pow)
            and rational(ast.unparse(node.right)) > 53
        ):
            return True
        try:
            value = rational(ast.unparse(node)) if isinstance(node, ast.expr) else None
        except (ArithmeticError, ValueError, TypeError):  # TypeError: a complex number
            return True
        if isinstance(value, complex) or (isinstance(value, Fraction) and abs(value) > sys.float_info.max):
            return True
        if isinstance(value, int) and abs(value) > 2**53:
            return True
    return False


BOOLEANS = some.sampled_from(
    ["flag", "off", "a < b", "lr < 1", "optimizer == 'adam'", "1 < b <= 5", "b in [1, 5]"]
)


@given(
    some.recursive(
        BOOLEANS,
        lambda parts: some.one_of(
            parts.map(lambda part: f"not {part}"),
            parts.map(lambda part: f"({part})"),
            some.lists(parts, min_size=2, max_size=4).map(" and ".join),
            some.lists(parts, min_size=2, max_size=4).map(" or ".join),
        ),
        max_leaves=8,
    )
)
def test_random_logic_gives_pythons_truth(text: str) -> None:
    assert compute(text) is python(text)
