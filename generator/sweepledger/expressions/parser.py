"""The parser of constraints, derived values and filters, which accepts part of Python's grammar.

    expression  = or-test ["if" or-test "else" expression]
    operators   = or, and, not, comparisons (chained), + -, * / // %, the sign -, **; the weakest first
    operand     = number, text, true, false, null, name, function(…), […], (…)

It evaluates nothing and does not know which names exist.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import cast, get_args

from sweepledger.reader import characters
from sweepledger.reader.safe_repr import truncate
from sweepledger.reader.scalars import FLOAT, INTEGER, Refusal, resolve_scalar
from sweepledger.structs import expression as tree
from sweepledger.structs.values import Value

MAX_LENGTH = 1_000
"""Longest expression, in characters."""

KEYWORDS = frozenset({"and", "else", "false", "if", "in", "not", "null", "or", "true"})
CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}

TOKEN = re.compile(
    r"""(?P<space>[ \t\n]+)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[A-Za-z0-9_.]*)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)
    |(?P<text>'[^'\n]*'|"[^"\n]*")
    |(?P<name>`[^`\n]+`)
    |(?P<foreign>===|!==|&&|\|\||<>|:=|=<|=>|\+\+|[-+*/%]=|\*\*=|<<|>>|=(?!=)|!(?!=))
    |(?P<symbol>\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],])""",
    re.VERBOSE | re.ASCII,
)

FOREIGN_WORDS = {
    **dict.fromkeys(("True", "TRUE"), "true"),
    **dict.fromkeys(("False", "FALSE"), "false"),
    **dict.fromkeys(("None", "Null", "NULL", "nil", "undefined"), "null"),
    **{word.upper(): word for word in ("and", "or", "not", "in", "if", "else")},
}
FOREIGN_SYMBOL_HINTS = {
    **dict.fromkeys(("&&", "&"), "write and"),
    **dict.fromkeys(("||", "|"), "write or"),
    **dict.fromkeys(("!", "~"), "write not"),
    **dict.fromkeys(("=", "===", ":="), "write == to compare"),
    **dict.fromkeys(("!==", "<>", "≠"), "write !="),
    **dict.fromkeys(("=<", "≤"), "write <="),
    **dict.fromkeys(("=>", "≥"), "write >="),
    **dict.fromkeys(("×", "·"), "write *"),  # noqa: RUF001 - what word processors write
    **dict.fromkeys("‘’“”", "put texts between ' and '"),  # noqa: RUF001 - likewise
    **dict.fromkeys("?:", "write a if c else b"),
    **dict.fromkeys("{}", "write lists between [ and ]"),
    "^": "write ** for a power",
    "÷": "write /",
    "−": "write -",  # noqa: RUF001 - likewise
    "$": "write the name alone",
    ".": "values have no attributes; a nested name is written whole, such as optimizer.lr",
    "'": "close the text with another '",
    '"': 'close the text with another "',
    "`": "a name in backticks needs one before and one after it",
}


class ExpressionError(ValueError):
    """The text is not an expression. Carries the position and a hint."""

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        """Offset in the text, from 0."""
        self.message = message
        self.hint = hint


def position_in(text: str, offset: int | None) -> str:
    """Return a suffix for a message with the position of the mistake in the text; empty without an offset."""
    return "" if offset is None else f" at character {offset + 1} of {truncate(repr(text))}"


class TokenKind(Enum):
    """Type of a token."""

    VALUE = auto()
    NAME = auto()
    SIGN = auto()
    """An operator, a bracket, a comma or a keyword."""
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token of an expression."""

    form: TokenKind
    text: str
    """As written; a name without its backticks."""
    offset: int
    value: Value = None
    """Value of a number, text, true, false or null."""

    def __str__(self) -> str:
        return "the end" if self.form is TokenKind.END else truncate(repr(self.text))


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a text; the last one is its end. Raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(MAX_LENGTH, f"must be at most {MAX_LENGTH} characters, got {len(text)}")
    offset = 0
    while offset < len(text):
        match = TOKEN.match(text, offset)
        if match is None or match.lastgroup == "foreign":
            raise _foreign_symbol(text, offset, match[0] if match else text[offset])
        if match.lastgroup != "space":
            yield _token(str(match.lastgroup), match[0], offset)
        offset = match.end()
    yield Token(TokenKind.END, "", offset)


def _token(group: str, text: str, offset: int) -> Token:
    match group:
        case "number":
            return Token(TokenKind.VALUE, text, offset, _number(text, offset))
        case "text":
            _visible(text, offset)
            return Token(TokenKind.VALUE, text, offset, text[1:-1])
        case "name":
            _visible(text, offset)
            return Token(TokenKind.NAME, text[1:-1], offset)
        case "word" if text in CONSTANTS:
            return Token(TokenKind.VALUE, text, offset, CONSTANTS[text])
        case "word" if text in FOREIGN_WORDS:
            hint = f"write {FOREIGN_WORDS[text]}; a parameter of this name is written `{text}`"
            raise ExpressionError(offset, f"must be {FOREIGN_WORDS[text]!r}, got {text!r}", hint)
        case "word" if text not in KEYWORDS:
            return Token(TokenKind.NAME, text, offset)
        case _:
            return Token(TokenKind.SIGN, text, offset)


def _number(text: str, offset: int) -> Value:
    if not (INTEGER.fullmatch(text) or FLOAT.fullmatch(text)):
        hint = "write it such as 1000, 0.001 or 1e-3"
        raise ExpressionError(offset, f"must be a plain decimal number, got {truncate(text)}", hint)
    meaning = resolve_scalar(text)
    if isinstance(meaning, Refusal):
        raise ExpressionError(offset, meaning.message)
    return meaning


def _foreign_symbol(text: str, offset: int, symbol: str) -> ExpressionError:
    if characters.INVISIBLE.match(symbol):
        return _invisible(symbol, offset)
    hint = FOREIGN_SYMBOL_HINTS.get(symbol)
    if hint is None and not symbol.isascii():
        hint = "names in expressions must be ASCII; put text in quotes"
    if symbol in {"'", '"', "`"}:
        return ExpressionError(offset, f"must be closed, got {truncate(text[offset:])}", hint)
    return ExpressionError(offset, f"must not have {symbol!r}", hint)


def _visible(text: str, offset: int) -> None:
    match = characters.INVISIBLE.search(text)
    if match:
        raise _invisible(match[0], offset + match.start())


def _invisible(character: str, offset: int) -> ExpressionError:
    message = f"must not hold an invisible character, got {characters.describe_character(character)}"
    return ExpressionError(offset, message, "delete it")


MAX_DEPTH = 32
MAX_NODES = 200
"""More than a person can read; the limits allow recursion over the tree."""

OR, AND, NOT, COMPARISON, SUM, PRODUCT, MINUS, POWER = range(1, 9)
"""Precedence of operators, as in Python."""

PRECEDENCE = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(get_args(tree.ComparisonOperator), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys(("*", "/", "//", "%"), PRODUCT),
    "**": POWER,
}
ARGUMENT_COUNTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(get_args(tree.FunctionName), (1, 1)),
    **dict.fromkeys(("log", "round"), (1, 2)),
    **dict.fromkeys(("max", "min"), (1, MAX_NODES)),
}
"""Least and largest number of arguments of each function."""

MISPLACED_TOKEN_HINTS = {
    "is": "write == to compare",
    "[": "values have no items to take out",
    "(": "only a function's name can stand before (",
    ")": "it closes nothing",
    "]": "it closes nothing",
    "+": "leave a leading + out",
    ",": "several values stand in a list: [a, b]",
}


def parse_expression(text: str) -> tree.Expression:
    """Return the syntax tree of an expression. Raises ExpressionError at the first mistake."""
    parser = _Parser(tokenize(text))
    whole = parser.expression()
    token = parser.token
    if token.form is not TokenKind.END:
        raise ExpressionError(
            token.offset, f"must end here or go on with an operator, got {token}", _hint(token)
        )
    return whole


@dataclass(slots=True)
class _Parser:
    """A recursive descent parser with one token of lookahead. `MAX_DEPTH` bounds the recursion."""

    source: Iterator[Token]
    token: Token = field(init=False)
    nodes: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.token = next(self.source)

    def expression(self) -> tree.Expression:
        """Parse an expression."""
        yes = self.operation(OR)
        if not self._is("if"):
            return yes
        self._next()
        test = self.operation(OR)
        self._expect("else", "write a if c else b")
        self._deeper()
        no = self.expression()
        self.depth -= 1
        return self._made(tree.Conditional(test, yes, no))

    def operation(self, least: int) -> tree.Expression:
        """Parse an operand, and the operators after it that have at least this precedence."""
        self._deeper()
        left = self._signed(least)
        while (operator := self._operator()) and (precedence := PRECEDENCE[operator]) >= least:
            left = self._operated(operator, left, precedence)
        self.depth -= 1
        return left

    def _operated(self, operator: str, left: tree.Expression, precedence: int) -> tree.Expression:
        if precedence == COMPARISON:
            steps: list[tuple[tree.ComparisonOperator, tree.Expression]] = []
            while (sign := self._operator()) and PRECEDENCE[sign] == COMPARISON:
                self._next()
                if sign == "not in":
                    self._expect("in", "write not in")
                steps.append((cast(tree.ComparisonOperator, sign), self.operation(COMPARISON + 1)))
            return self._made(tree.Comparison(left, tuple(steps)))
        if precedence in {OR, AND}:
            terms = [left]
            while self._is(operator):
                self._next()
                terms.append(self.operation(precedence + 1))
            return self._made(tree.BooleanOperation(cast(tree.BooleanOperator, operator), tuple(terms)))
        self._next()
        # A power binds more tightly than a sign on its left, and less than a sign on its right.
        right = self.operation(MINUS if precedence == POWER else precedence + 1)
        return self._made(tree.Arithmetic(cast(tree.ArithmeticOperator, operator), left, right))

    def _operator(self) -> str | None:
        """Return the current operator; `not` is the first half of `not in`."""
        if self.token.form is not TokenKind.SIGN:
            return None
        text = "not in" if self.token.text == "not" else self.token.text
        return text if text in PRECEDENCE else None

    def _signed(self, least: int) -> tree.Expression:
        token = self.token
        if self._is("-"):
            self._next()
            return self._made(tree.UnaryOperation("-", self.operation(MINUS)))
        if self._is("not"):
            if least > NOT:
                hint = "put brackets around it: (not a)"
                raise ExpressionError(token.offset, "must be an operand, got 'not'", hint)
            self._next()
            return self._made(tree.UnaryOperation("not", self.operation(NOT)))
        return self._operand()

    def _operand(self) -> tree.Expression:
        token = self.token
        self._next()
        match token:
            case Token(TokenKind.VALUE):
                return self._made(tree.Literal(token.value))
            case Token(TokenKind.NAME) if self._is("("):
                return self._call(token)
            case Token(TokenKind.NAME):
                return self._made(tree.Name(token.text, token.offset))
            case Token(TokenKind.SIGN, "["):
                return self._made(tree.ListLiteral(self._items(token, "]")))
            case Token(TokenKind.SIGN, "("):
                inner = self.expression()
                self._close(token, ")")
                return inner
            case _:
                raise ExpressionError(token.offset, f"must be a value or a name, got {token}", _hint(token))

    def _call(self, name: Token) -> tree.Expression:
        if name.text not in ARGUMENT_COUNTS:
            # Late: only a mistake needs it.
            import difflib  # noqa: PLC0415

            message = f"must be a function, got {truncate(repr(name.text))}"
            close = difflib.get_close_matches(name.text.lower(), ARGUMENT_COUNTS, n=1, cutoff=0.7)
            hint = (
                f"did you mean {close[0]}(…)?"
                if close
                else f"functions: {', '.join(sorted(ARGUMENT_COUNTS))}"
            )
            raise ExpressionError(name.offset, message, hint)
        opening = self.token
        self._next()
        arguments = self._items(opening, ")")
        least, most = ARGUMENT_COUNTS[name.text]
        if not least <= len(arguments) <= most:
            span = {1: "one value", 2: "one or two values"}.get(most, "one or more values")
            raise ExpressionError(name.offset, f"{name.text} must be given {span}, got {len(arguments)}")
        return self._made(tree.Call(cast(tree.FunctionName, name.text), arguments))

    def _items(self, opening: Token, closing: str) -> tuple[tree.Expression, ...]:
        """Parse items up to the closing bracket; a comma may follow the last."""
        items: list[tree.Expression] = []
        while not self._is(closing):
            items.append(self.expression())
            if not self._is(","):
                break
            self._next()
        self._close(opening, closing)
        return tuple(items)

    def _close(self, opening: Token, closing: str) -> None:
        if self.token.form is TokenKind.END:
            raise ExpressionError(opening.offset, f"must be closed, got {opening}", f"add {closing}")
        self._expect(closing, _hint(self.token))

    def _is(self, text: str) -> bool:
        return self.token.form is TokenKind.SIGN and self.token.text == text

    def _expect(self, text: str, hint: str | None) -> None:
        if not self._is(text):
            raise ExpressionError(self.token.offset, f"must go on with {text!r}, got {self.token}", hint)
        self._next()

    def _next(self) -> None:
        self.token = next(self.source, self.token)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(self.token.offset, f"must nest at most {MAX_DEPTH} levels deep")

    def _made(self, node: tree.Expression) -> tree.Expression:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            message = f"must have at most {MAX_NODES} values, names and operators"
            raise ExpressionError(self.token.offset, message)
        return node


def _hint(token: Token) -> str | None:
    if token.form is TokenKind.SIGN and token.text in KEYWORDS:
        return f"a parameter of this name is written `{token.text}`"
    return MISPLACED_TOKEN_HINTS.get(token.text)
