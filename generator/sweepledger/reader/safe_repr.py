"""Values in messages: their repr, without credentials, truncated."""

import json
import re

MAX_VALUE_LENGTH = 60
MAX_NESTED_LENGTH = 240
"""Limit of a list or mapping, which needs more characters to be recognized."""

CREDENTIALS = re.compile(r"[^\s/@:]+:[^\s/@]+@(?!sha256:)")
MAX_REDACTED_LENGTH = 1024
"""Number of characters to search for credentials: more than are shown, and few enough to be fast."""


def safe_repr(value: object) -> str:
    """Return a value of an untrusted file for a message, truncated; for a list or mapping, only the type."""
    match value:
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case None | bool():
            return json.dumps(value)
        case str():
            return truncate(repr(_redacted(value)))
        case _:
            return truncate(repr(value))


def truncate(text: str, longest: int = MAX_VALUE_LENGTH) -> str:
    """Return a text; cut a long text and add its number of characters."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def safe_json(value: object) -> str:
    """Return a value and its content as JSON on one line, truncated."""
    if not isinstance(value, dict | list):
        return safe_repr(value)
    return truncate(_redacted(json.dumps(value, ensure_ascii=False, default=str)), MAX_NESTED_LENGTH)


def _redacted(text: str) -> str:
    return CREDENTIALS.sub("…@", text[:MAX_REDACTED_LENGTH]) + text[MAX_REDACTED_LENGTH:]
