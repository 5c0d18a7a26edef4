"""JSON from someone who may mean harm: bounded in bytes, depth and digits before anything is built from it.

Duplicate keys are refused. A number that is not finite reads as null, half a surrogate pair as U+FFFD,
so whatever is accepted can be written again as standard JSON in UTF-8.
"""

import json
import re
from typing import Any

LARGEST_DOCUMENT = 1024 * 1024
DEEPEST_DOCUMENT = 16
LONGEST_NUMBER = 300
"""Digits of a whole number: every one of them is a finite float, and Python's own limit is not met."""

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)


class Refused(Exception):  # noqa: N818 - a verdict on the input, not an error of ours
    """The document cannot be believed; its text is one word from a closed set."""


def parse_object(content: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises Refused."""
    if len(content) > LARGEST_DOCUMENT:
        raise Refused("too-large")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Refused("not-utf8") from None
    if not text.strip():
        raise Refused("empty")
    _refuse_depth(text)
    try:
        data = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Refused(_syntax_reason(error)) from None
    if not isinstance(data, dict):
        raise Refused("not-an-object")
    return _whole_text(data) if "\\ud" in text.lower() else data


def _refuse_depth(text: str) -> None:
    """Count brackets before anything is built: the decoder itself recurses."""
    if text.count("{") + text.count("[") <= DEEPEST_DOCUMENT:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth += bool(bracket["open"]) - bool(bracket["close"])
        if depth > DEEPEST_DOCUMENT:
            raise Refused("too-deep")


def _syntax_reason(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "trailing-data"
    text = error.doc.strip()
    cut = not text.endswith("}") or error.pos >= len(error.doc.rstrip())
    return "truncated" if text.startswith("{") and cut else "not-json"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Refused("duplicate-key")
    return made


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise Refused("number-too-large")
    return int(digits)


def _finite(text: str) -> float | None:
    number = float(text)
    # Adding 0.0 makes -0.0 a plain zero.
    return number + 0.0 if abs(number) != float("inf") else None


def _nothing(_constant: str) -> None:
    """NaN, Infinity and -Infinity."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_int=_whole, parse_float=_finite, parse_constant=_nothing
)


def _whole_text(value: Any) -> Any:
    """Put U+FFFD for halves of surrogate pairs: they have no UTF-8, so no file could hold them."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_whole_text(item) for item in value]
        case dict():
            return _distinct([(_whole_text(key), _whole_text(item)) for key, item in value.items()])
        case _:
            return value
