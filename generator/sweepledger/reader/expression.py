"""From the text of a constraint or a derived value to its tree, by the part of Python's grammar it needs.

    expression  = or-test ["if" or-test "else" expression]
    operators   = or, and, not, comparisons (chained), + -, * / // %, the sign -, **; the weakest first
    operand     = number, text, true, false, null, name, function(…), […], (…)

Nothing here computes what it reads, and nothing knows which names there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast, get_args

from generator.reader.shown import cut
from generator.reader.tokens import KEYWORDS, ExpressionError, Form, Token, tokens
from generator.structs.expression import (
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    ComparisonOperator,
    Conditional,
    Expression,
    Function,
    Listed,
    Literal,
    Logic,
    LogicOperator,
    Name,
    Sign,
)

__all__ = ["DEPTH", "NODES", "ExpressionError", "parse"]

DEPTH = 32
NODES = 200
"""More than a person can read; whoever walks a tree may recurse."""

OR, AND, NOT, COMPARISON, SUM, PRODUCT, MINUS, POWER = range(1, 9)
"""How tightly an operator holds what stands beside it, as in Python."""

TIGHTNESS = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(get_args(ComparisonOperator), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys(("*", "/", "//", "%"), PRODUCT),
    "**": POWER,
}
ARGUMENTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(get_args(Function), (1, 1)),
    **dict.fromkeys(("log", "round"), (1, 2)),
    **dict.fromkeys(("max", "min"), (1, NODES)),
}
"""How many a function takes, at least and at most."""

OUT_OF_PLACE = {
    "is": "write == to compare",
    "[": "values have no items to take out",
    "(": "only a function's name can stand before (",
    ")": "it closes nothing",
    "]": "it closes nothing",
    "+": "leave a leading + out",
    ",": "several values stand in a list: [a, b]",
}


def parse(text: str) -> Expression:
    """Read an expression. Raises ExpressionError at the first place that makes no sense."""
    parser = _Parser(tokens(text))
    whole = parser.expression()
    token = parser.token
    if token.form is not Form.END:
        raise ExpressionError(
            token.offset, f"must end here or go on with an operator, got {token}", _way(token)
        )
    return whole


@dataclass(slots=True)
class _Parser:
    """Reads from left to right with one token in hand. Recursion is bounded by DEPTH."""

    source: Iterator[Token]
    token: Token = field(init=False)
    nodes: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.token = next(self.source)

    def expression(self) -> Expression:
        """Read an expression of any kind."""
        yes = self.operation(OR)
        if not self._is("if"):
            return yes
        self._next()
        test = self.operation(OR)
        self._expect("else", "write a if c else b")
        return self._made(Conditional(test, yes, self._nested_expression()))

    def operation(self, least: int) -> Expression:
        """Read an operand, and all operators after it that hold at least so tightly."""
        self._deeper()
        left = self._signed(least)
        while (operator := self._operator()) and (tightness := TIGHTNESS[operator]) >= least:
            left = self._operated(operator, left, tightness)
        self.depth -= 1
        return left

    def _operated(self, operator: str, left: Expression, tightness: int) -> Expression:
        if tightness == COMPARISON:
            return self._made(Comparison(left, tuple(self._steps())))
        if tightness in {OR, AND}:
            return self._made(
                Logic(cast(LogicOperator, operator), tuple(self._terms(operator, left, tightness)))
            )
        self._next()
        # A power holds more tightly than the sign on its left, and less than the one on its right.
        right = self.operation(MINUS if tightness == POWER else tightness + 1)
        return self._made(Arithmetic(cast(ArithmeticOperator, operator), left, right))

    def _terms(self, operator: str, first: Expression, tightness: int) -> Iterator[Expression]:
        yield first
        while self._is(operator):
            self._next()
            yield self.operation(tightness + 1)

    def _steps(self) -> Iterator[tuple[ComparisonOperator, Expression]]:
        while (operator := self._operator()) and TIGHTNESS[operator] == COMPARISON:
            self._next()
            if operator == "not in":
                self._expect("in", "write not in")
            yield cast(ComparisonOperator, operator), self.operation(COMPARISON + 1)

    def _operator(self) -> str | None:
        """Name the operator in hand, `not` being the first half of `not in`."""
        if self.token.form is not Form.SIGN:
            return None
        text = "not in" if self.token.text == "not" else self.token.text
        return text if text in TIGHTNESS else None

    def _signed(self, least: int) -> Expression:
        token = self.token
        if self._is("-"):
            self._next()
            return self._made(Sign("-", self.operation(MINUS)))
        if self._is("not"):
            if least > NOT:
                hint = "put brackets around it: (not a)"
                raise ExpressionError(token.offset, "must be an operand, got 'not'", hint)
            self._next()
            return self._made(Sign("not", self.operation(NOT)))
        return self._operand()

    def _operand(self) -> Expression:
        token = self.token
        self._next()
        match token:
            case Token(Form.VALUE):
                return self._made(Literal(token.value))
            case Token(Form.NAME) if self._is("("):
                return self._call(token)
            case Token(Form.NAME):
                return self._made(Name(token.text, token.offset))
            case Token(Form.SIGN, "["):
                return self._made(Listed(self._items(token, "]")))
            case Token(Form.SIGN, "("):
                inner = self.expression()
                self._close(token, ")")
                return inner
            case _:
                raise ExpressionError(token.offset, f"must be a value or a name, got {token}", _way(token))

    def _call(self, name: Token) -> Expression:
        if name.text not in ARGUMENTS:
            message = f"must be a function, got {cut(repr(name.text))}"
            raise ExpressionError(name.offset, message, _nearest_function(name.text))
        opening = self.token
        self._next()
        arguments = self._items(opening, ")")
        least, most = ARGUMENTS[name.text]
        if not least <= len(arguments) <= most:
            span = {1: "one value", 2: "one or two values"}.get(most, "one or more values")
            raise ExpressionError(name.offset, f"{name.text} must be given {span}, got {len(arguments)}")
        return self._made(Call(cast(Function, name.text), arguments))

    def _items(self, opening: Token, closing: str) -> tuple[Expression, ...]:
        """Read values up to the closing bracket; a comma may stand after the last."""
        items: list[Expression] = []
        while not self._is(closing):
            items.append(self.expression())
            if not self._is(","):
                break
            self._next()
        self._close(opening, closing)
        return tuple(items)

    def _close(self, opening: Token, closing: str) -> None:
        if self.token.form is Form.END:
            raise ExpressionError(opening.offset, f"must be closed, got {opening}", f"add {closing}")
        self._expect(closing, _way(self.token))

    def _nested_expression(self) -> Expression:
        self._deeper()
        nested = self.expression()
        self.depth -= 1
        return nested

    def _is(self, text: str) -> bool:
        return self.token.form is Form.SIGN and self.token.text == text

    def _expect(self, text: str, hint: str | None) -> None:
        if not self._is(text):
            raise ExpressionError(self.token.offset, f"must go on with {text!r}, got {self.token}", hint)
        self._next()

    def _next(self) -> None:
        self.token = next(self.source, self.token)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise ExpressionError(self.token.offset, f"must nest at most {DEPTH} levels deep")

    def _made(self, node: Expression) -> Expression:
        self.nodes += 1
        if self.nodes > NODES:
            message = f"must have at most {NODES} values, names and operators"
            raise ExpressionError(self.token.offset, message)
        return node


def _way(token: Token) -> str | None:
    """Say what to do about a token that stands where it cannot."""
    if token.form is Form.SIGN and token.text in KEYWORDS:
        return f"a parameter of this name is written `{token.text}`"
    return OUT_OF_PLACE.get(token.text)


def _nearest_function(found: str) -> str:
    # Late: only a mistake needs it.
    import difflib  # noqa: PLC0415

    close = difflib.get_close_matches(found.lower(), ARGUMENTS, n=1, cutoff=0.7)
    return f"did you mean {close[0]}(…)?" if close else f"functions: {', '.join(sorted(ARGUMENTS))}"
