"""The values of Hydra's overrides: `a,b`, `choice(…)`, `range(…)`, `interval(…)` and what modifies them.

Texts become what Hydra makes of them: `1` a number, `'1'` text, `1x` text. Functions: `hydra_functions`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from generator.exchange.loss import ForeignError

LENGTH = 20_000
"""Characters of a value; some patterns take the square of it."""

DEPTH = 32

_INT = r"(?:0|[1-9](?:_?[0-9])*)"
_POINT = rf"(?:{_INT}?\.[0-9](?:_?[0-9])*|{_INT}\.)"
_FLOAT = rf"[+-]?(?:(?:{_POINT}|{_INT})[eE][+-]?[0-9](?:_?[0-9])*|{_POINT}|[Ii][Nn][Ff]|[Nn][Aa][Nn])"
KINDS = tuple(
    (kind, re.compile(pattern, re.ASCII | re.DOTALL))
    for kind, pattern in (
        ("(", r"[ \t]*\([ \t]*"),
        (",", r"[ \t]*,[ \t]*"),
        (")", r"[ \t]*\)"),
        ("[", r"\[[ \t]*"),
        ("]", r"[ \t]*\]"),
        ("{", r"\{[ \t]*"),
        ("}", r"[ \t]*\}"),
        (":", r"[ \t]*:[ \t]*"),
        ("=", r"[ \t]*=[ \t]*"),
        ("float", _FLOAT),
        ("int", rf"[+-]?{_INT}"),
        ("bool", r"[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"),
        ("null", r"[Nn][Uu][Ll][Ll]"),
        ("sign", r"[/\-\\+.$%*@?|]"),
        ("id", r"[A-Za-z_][A-Za-z0-9_-]*"),
        ("escape", r"(?:\\[\\()\[\]{}:=, \t])+"),
        ("space", r"[ \t]+"),
        ("quoted", r'"(?:[^"\\]|\\.)*"' + "|" + r"'(?:[^'\\]|\\.)*'"),
        ("interpolation", r"\$\{[^}]+\}"),
    )
)
"""In Hydra's order: the longest match counts, and of equally long ones the first."""

PARTS = frozenset({"id", "null", "int", "float", "bool", "interpolation", "sign", ":", "escape", "space"})
"""What an unquoted value is made of."""


@dataclass(frozen=True, slots=True)
class Token:
    """The smallest thing that Hydra reads."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments, still to be understood."""

    name: str
    arguments: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """Values to try, in this order."""

    values: tuple[Any, ...]
    is_simple: bool = False
    """Written with commas alone, which a function may still take as its arguments."""
    is_shuffled: bool = False
    is_bare: bool = False
    """Through a function, which takes quotes off: of `choice('1')` the app gets the number 1."""


def tokens(text: str) -> tuple[Token, ...]:
    """Split a value into tokens. Raises ForeignError at a character that none begins with."""
    if len(text) > LENGTH:
        raise ForeignError(f"must be at most {LENGTH} characters, got {len(text)}")
    found: list[Token] = []
    place = 0
    while place < len(text):
        matches = [(kind, match[0]) for kind, form in KINDS if (match := form.match(text, place))]
        if not matches:
            raise ForeignError(f"must be a value that Hydra reads, got {text[place]!r} in {text[:60]!r}")
        kind, matched = max(matches, key=lambda each: len(each[1]))
        found.append(Token(kind, matched))
        place += len(matched)
    return tuple(found)


def parse(text: str, call: Callable[[Call], Any]) -> Any:
    """Read a value; several separated by commas are Choices, functions are what `call` makes of them."""
    parser = _Parser((*tokens(text), Token("end", "")), call)
    if parser.here.kind == "end":
        return ""
    values = [parser.element()]
    while parser.take(","):
        values.append(parser.element())
    if parser.here.kind != "end":
        raise ForeignError(f"must end before {parser.here.text!r} in {text[:60]!r}")
    return values[0] if len(values) == 1 else Choices(tuple(values), is_simple=True)


@dataclass(slots=True)
class _Parser:
    stream: tuple[Token, ...]
    call: Callable[[Call], Any]
    place: int = 0
    depth: int = 0

    @property
    def here(self) -> Token:
        return self.stream[self.place]

    def take(self, kind: str) -> bool:
        if self.here.kind != kind:
            return False
        self.place += 1
        return True

    def need(self, kind: str) -> None:
        if not self.take(kind):
            raise ForeignError(f"must have {kind!r}, got {self.here.text or 'the end'!r}")

    def element(self) -> Any:
        self.depth += 1
        if self.depth > DEPTH:
            raise ForeignError(f"must nest at most {DEPTH} levels deep")
        try:
            if self.take("["):
                return self._several("]", self.element)
            if self.take("{"):
                return dict(self._several("}", self._pair))
            if self.here.kind == "id" and self.stream[self.place + 1].kind == "(":
                return self._function()
            return self._primitive(PARTS)
        finally:
            self.depth -= 1

    def _several(self, end: str, item: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        if self.take(end):
            return found
        found.append(item())
        while self.take(","):
            found.append(item())
        self.need(end)
        return found

    def _pair(self) -> tuple[Any, Any]:
        key = self._primitive(PARTS - {":", "interpolation"})
        self.need(":")
        return key, self.element()

    def _function(self) -> Any:
        name = self.here.text
        self.place += 2
        arguments = self._several(")", self._argument)
        named = tuple((key, value) for key, value in arguments if key)
        return self.call(Call(name, tuple(value for key, value in arguments if not key), named))

    def _argument(self) -> tuple[str, Any]:
        name = ""
        if self.here.kind == "id" and self.stream[self.place + 1].kind == "=":
            name = self.here.text
            self.place += 2
        return name, self.element()

    def _primitive(self, allowed: frozenset[str]) -> Any:
        if self.here.kind == "quoted":
            self.place += 1
            return _unquoted(self.stream[self.place - 1].text)
        first = self.place
        while self.here.kind in allowed:
            self.place += 1
        parts = list(self.stream[first : self.place])
        if parts and parts[0].kind == "space":
            del parts[0]
        if parts and parts[-1].kind == "space":
            del parts[-1]
        if not parts:
            raise ForeignError(f"must have a value, got {self.here.text or 'nothing'!r}")
        return _meaning(parts[0]) if len(parts) == 1 else "".join(map(_verbatim, parts))


def _meaning(token: Token) -> Any:
    match token.kind:
        case "int":
            if len(token.text) > DEPTH:
                raise ForeignError(f"must be a number of fewer digits, got {token.text[:60]!r}")
            return int(token.text)
        case "float":
            return float(token.text)
        case "bool":
            return token.text.lower() == "true"
        case "null":
            return None
        case _:
            return _verbatim(token)


def _verbatim(token: Token) -> str:
    return token.text[1::2] if token.kind == "escape" else token.text


def _unquoted(text: str) -> str:
    """Take off the quotes; a backslash escapes only before a quote of the same kind."""
    quote = text[0]

    def halved(match: re.Match[str]) -> str:
        return match[0][1::2]

    return re.sub(rf"(?<!\\)\\+{quote}", halved, text[1:] if text[-2:-1] == "\\" else text[1:-1])
