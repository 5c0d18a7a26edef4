"""How a found value stands in a message: by repr, without credentials, never longer than a line can bear."""

import json
import re

LONGEST = 60
LONGEST_WRITTEN = 240
"""Of a list or mapping, which says little when its end is missing."""

CREDENTIALS = re.compile(r"[^\s/@:]+:[^\s/@]+@(?!sha256:)")
REDACTED_WITHIN = 1024
"""Characters; far more than are shown, and few enough for the pattern to take no time."""


def shown(value: object) -> str:
    """Show a value found in a file, cut where it is long; containers by their kind alone."""
    match value:
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return cut(repr(CREDENTIALS.sub("…@", value[:REDACTED_WITHIN]) + value[REDACTED_WITHIN:]))
        case _:
            return cut(repr(value))


def cut(text: str, longest: int = LONGEST) -> str:
    """Cut a text that is too long for a message and say how long it was."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def written(value: object) -> str:
    """Show a value with all that is in it, as YAML has it on one line; cut where it is long."""
    if not isinstance(value, dict | list):
        return shown(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return cut(CREDENTIALS.sub("…@", text[:REDACTED_WITHIN]) + text[REDACTED_WITHIN:], LONGEST_WRITTEN)
