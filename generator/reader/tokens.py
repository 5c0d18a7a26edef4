"""The words of an expression, each with its place, and what people write who think of another language."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from generator.reader import characters
from generator.reader.scalars import FLOAT, INTEGER, Refusal, resolve
from generator.reader.shown import cut
from generator.structs.values import Value

LONGEST = 1_000
"""Characters of an expression; the tokens of one are read into memory at once."""

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
FOREIGN_SYMBOLS = {
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
    """A text is no expression; says where, and what to write instead."""

    def __init__(self, offset: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.offset = offset
        """Where in the text, from 0."""
        self.message = message
        self.hint = hint


class Form(Enum):
    """What a token is."""

    VALUE = auto()
    NAME = auto()
    SIGN = auto()
    """An operator, a bracket, a comma or a keyword."""
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A word of an expression."""

    form: Form
    text: str
    """As written, but a name without its backticks."""
    offset: int
    value: Value = None
    """Of a number, a text, true, false and null."""

    def __str__(self) -> str:
        return "the end" if self.form is Form.END else cut(repr(self.text))


def tokens(text: str) -> Iterator[Token]:
    """Take a text apart; the last token is its end. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(LONGEST, f"must be at most {LONGEST} characters, got {len(text)}")
    offset = 0
    while offset < len(text):
        found = TOKEN.match(text, offset)
        if found is None or found.lastgroup == "foreign":
            raise _foreign(text, offset, found[0] if found else text[offset])
        if found.lastgroup != "space":
            yield _token(str(found.lastgroup), found[0], offset)
        offset = found.end()
    yield Token(Form.END, "", offset)


def _token(group: str, text: str, offset: int) -> Token:
    match group:
        case "number":
            return Token(Form.VALUE, text, offset, _number(text, offset))
        case "text":
            _visible(text, offset)
            return Token(Form.VALUE, text, offset, text[1:-1])
        case "name":
            _visible(text, offset)
            return Token(Form.NAME, text[1:-1], offset)
        case "word" if text in CONSTANTS:
            return Token(Form.VALUE, text, offset, CONSTANTS[text])
        case "word" if text in FOREIGN_WORDS:
            hint = f"write {FOREIGN_WORDS[text]}; a parameter of this name is written `{text}`"
            raise ExpressionError(offset, f"must be {FOREIGN_WORDS[text]!r}, got {text!r}", hint)
        case "word" if text not in KEYWORDS:
            return Token(Form.NAME, text, offset)
        case _:
            return Token(Form.SIGN, text, offset)


def _number(text: str, offset: int) -> Value:
    if not (INTEGER.fullmatch(text) or FLOAT.fullmatch(text)):
        hint = "write it such as 1000, 0.001 or 1e-3"
        raise ExpressionError(offset, f"must be a plain decimal number, got {cut(text)}", hint)
    meaning = resolve(text)
    if isinstance(meaning, Refusal):
        raise ExpressionError(offset, meaning.message)
    return meaning


def _foreign(text: str, offset: int, found: str) -> ExpressionError:
    if characters.INVISIBLE.match(found):
        return _invisible(found, offset)
    hint = FOREIGN_SYMBOLS.get(found)
    if hint is None and not found.isascii():
        hint = "names in expressions are ASCII; texts stand in quotes"
    if found in {"'", '"', "`"}:
        return ExpressionError(offset, f"must be closed, got {cut(text[offset:])}", hint)
    return ExpressionError(offset, f"must not have {found!r}", hint)


def _visible(text: str, offset: int) -> None:
    found = characters.INVISIBLE.search(text)
    if found:
        raise _invisible(found[0], offset + found.start())


def _invisible(character: str, offset: int) -> ExpressionError:
    message = f"must not hold an invisible character, got {characters.described(character)}"
    return ExpressionError(offset, message, "delete it")
