"""A mapping of an untrusted file; each of its keys is either used or listed as a loss."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from sweepledger.exchange.conversion import Loss
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.values import LARGEST_EXACT_INTEGER

LONGEST_SHOWN = 60
"""Characters of a value that a report shows."""
NUMBER = "a bound is a number as it is written: write the value that a variable or an expression has"

JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\}(?=\})')
"""A text of JSON, or a brace that closes before another one."""
TEMPLATE_SIGN = re.compile(r"\{\{|\}\}|\{%|\$\(|\$\{")


@dataclass(slots=True)
class Fields:
    """The keys of a mapping at a path, and the keys read so far."""

    data: dict[str, Any]
    path: str
    taken: set[str] = field(default_factory=set)
    children: dict[str, "Fields"] = field(default_factory=dict)
    """The mappings in it that were read, by their paths: what is left of them is a part of the rest."""
    is_listed: bool = False
    """Whether the rest was listed, or is not to be."""

    @classmethod
    def of(cls, data: object, path: str) -> "Fields":
        """Return the fields of a mapping; None has no fields. Raises ForeignError."""
        if data is None:
            return cls({}, path)
        if not isinstance(data, dict):
            raise ForeignError(f"{path or 'the file'} must be a mapping, got {show_value(data)}")
        return cls(data, path)

    def at(self, key: str) -> str:
        """Return the path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def take(self, key: str) -> Any:
        """Return the value of a key; None if it is absent."""
        self.taken.add(key)
        return self.data.get(key)

    def inner(self, key: str) -> "Fields":
        """Return the fields of a key's mapping."""
        return self.child(self.take(key), self.at(key))

    def child(self, data: object, path: str) -> "Fields":
        """Return the fields of a mapping within this mapping, always the same object. Raises ForeignError."""
        if path not in self.children:
            self.children[path] = Fields.of(data, path)
        return self.children[path]

    def section(self, key: str) -> "Fields":
        """Return the fields of a key's mapping; empty for another value, which `rest` then lists as a loss."""
        return self.inner(key) if isinstance(self.data.get(key), dict) else Fields({}, self.at(key))

    def items(self, key: str) -> list[Any]:
        """Return the list of a key; empty if it is absent."""
        items = self.take(key)
        if items is None:
            return []
        if not isinstance(items, list):
            raise ForeignError(
                f"{self.at(key)} must be a list, got {show_value(items)}",
                hint=f"write {key}: [{show_value(items)}]",
            )
        return items

    def each(self, key: str) -> list["Fields"]:
        """Return the fields of each mapping in a key's list."""
        return [self.child(item, f"{self.at(key)}[{place}]") for place, item in enumerate(self.items(key))]

    def text(self, key: str) -> str | None:
        """Return the text of a key, also if YAML reads it as another scalar; None if it is absent or empty."""
        value = self.take(key)
        if isinstance(value, dict | list):
            raise ForeignError(f"{self.at(key)} must be text, got {show_value(value)}")
        return None if value in {None, ""} else scalar_text(value)

    def whole(self, key: str) -> int | None:
        """Return the integer of a key; None if it is absent."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            is_quoted = isinstance(value, str) and value.isdecimal()
            got = repr(show_value(value)) if is_quoted else show_value(value)
            hint = "write it without quotes" if is_quoted else None
            raise ForeignError(f"{self.at(key)} must be a whole number, got {got}", hint=hint)
        return value

    def count(self, key: str, least: int = 0) -> int | None:
        """Return a whole number of at least `least`, also from text; otherwise return None and leave the key unread."""
        text = self.text(key)
        with suppress(ForeignError):
            if isinstance(number := exact_number(text), int) and number >= least:
                return number
        self.taken.discard(key)
        return None

    def lost(self, key: str, why: str) -> Iterator[Loss]:
        """Yield a loss for a key if it is present."""
        if self.take(key) is not None:
            yield Loss(f"{self.at(key)}: {show_value(self.data[key])}", why)

    def rest(self, why: str = "has no counterpart here") -> Iterator[Loss]:
        """Yield one loss for every unread key, here and in the mappings that were read."""
        if self.is_listed:
            return
        self.is_listed = True
        for key, value in self.data.items():
            if key not in self.taken and value not in (None, [], {}, ""):
                yield Loss(f"{self.at(key)}: {show_value(value)}", why)
        for child in self.children.values():
            yield from child.rest(why)


def json_text(value: object) -> str:
    """Return a value as JSON that a spec may contain: with the same meaning, but without template syntax.

    No text of a spec contains `}}` or `${`, which other programs would replace in manifests. Raises ForeignError
    for a number that is not finite.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ForeignError(f"must contain finite numbers, got {show_value(value)}") from error
    return JSON_TOKEN.sub(_without_signs, text)


def _without_signs(token: re.Match[str]) -> str:
    if token[0] == "}":
        return "} "
    return TEMPLATE_SIGN.sub(lambda sign: f"{sign[0][0]}\\u{ord(sign[0][1]):04x}", token[0])


def scalar_text(value: object) -> str:
    """Return a scalar as text, as close to the file as possible."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def show_value(value: object) -> str:
    """Return a value for a report, truncated if it is long."""
    text = scalar_text(value) if isinstance(value, str | int | float) else json.dumps(value, default=str)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def is_count(value: object) -> bool:
    """Return whether a value is a whole number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def no_values(place: str, *, line: int | None = None, more: str = "") -> ForeignError:
    """Return the error of a parameter whose list of values is empty."""
    hint = f"write the values to try, or remove the parameter{more}"
    return ForeignError(f"{place} must have at least one value, got none", line=line, hint=hint)


def exact_number(text: object, where: str = "the value") -> int | float:
    """Return a number for a spec; whole numbers have no decimal point. Raises ForeignError."""
    shown = repr(str(text)[:60])
    try:
        exact = Decimal(str(text).strip())
    except InvalidOperation:
        raise ForeignError(f"{where} must be a number, got {shown}", hint=NUMBER) from None
    number = float(exact)
    if not math.isfinite(number):
        hint = "a search space needs both bounds"
        raise ForeignError(f"{where} must be a finite number, got {shown}", hint=hint)
    if exact and not number:
        hint = "the smallest number is about 5e-324"
        raise ForeignError(f"{where} must not be so small that it becomes 0, got {shown}", hint=hint)
    return (
        int(exact) if exact == exact.to_integral_value() and abs(exact) <= LARGEST_EXACT_INTEGER else number
    )
