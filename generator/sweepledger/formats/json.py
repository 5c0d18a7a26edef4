"""JSON files: sorted, indented by one, final newline, finite numbers; and a strict reader of untrusted JSON.

The strict reader limits bytes, depth and digits before it builds anything, and rejects duplicate keys. It
reads a number that is not finite as null, and half a surrogate pair as U+FFFD, so all accepted data can be
written again as standard JSON in UTF-8.
"""

import json
import re
from typing import Any


def dump(data: Any) -> str:
    """Return JSON text; equal data give equal text. Raises ValueError for numbers that are not finite."""
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def load(text: str | bytes) -> Any:
    """Return the data of JSON that this program wrote. Raises ValueError for edited JSON that is invalid."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("has too many levels") from error


MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_DOCUMENT_DEPTH = 16
MAX_INTEGER_DIGITS = 300
"""Digits of a whole number: all such numbers are finite as floats, and below Python's own limit."""

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)


class RejectedInput(Exception):  # noqa: N818 - a check result of the input
    """The document is invalid. Its text is one word from a closed set."""


def parse_untrusted_object(content: bytes) -> dict[str, Any]:
    """Return one JSON object from an untrusted document. Raises RejectedInput."""
    if len(content) > MAX_DOCUMENT_BYTES:
        raise RejectedInput("too-large")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise RejectedInput("not-utf8") from None
    if not text.strip():
        raise RejectedInput("empty")
    _refuse_depth(text)
    try:
        data = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise RejectedInput("trailing-data") from None
        is_cut = not text.strip().endswith("}") or error.pos >= len(text.rstrip())
        raise RejectedInput("truncated" if text.strip().startswith("{") and is_cut else "not-json") from None
    if not isinstance(data, dict):
        raise RejectedInput("not-an-object")
    return _whole_text(data) if "\\ud" in text.lower() else data


def _refuse_depth(text: str) -> None:
    """Raise RejectedInput for deep nesting, before the decoder recurses."""
    if text.count("{") + text.count("[") <= MAX_DOCUMENT_DEPTH:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth += bool(bracket["open"]) - bool(bracket["close"])
        if depth > MAX_DOCUMENT_DEPTH:
            raise RejectedInput("too-deep")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise RejectedInput("duplicate-key")
    return members


def _whole(digits: str) -> int:
    if len(digits) > MAX_INTEGER_DIGITS:
        raise RejectedInput("number-too-large")
    return int(digits)


def _finite(text: str) -> float | None:
    number = float(text)
    # Adding 0.0 makes -0.0 a plain zero.
    return number + 0.0 if abs(number) != float("inf") else None


_DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_int=_whole, parse_float=_finite, parse_constant=lambda _: None
)


def _whole_text(value: Any) -> Any:
    """Replace halves of surrogate pairs by U+FFFD, because UTF-8 cannot encode them."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_whole_text(item) for item in value]
        case dict():
            return _distinct([(_whole_text(key), _whole_text(item)) for key, item in value.items()])
        case _:
            return value
