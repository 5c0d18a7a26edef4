"""How a found value stands in a message: by repr, without credentials, never longer than a line can bear."""

import re

LONGEST = 60

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


def cut(text: str) -> str:
    """Cut a text that is too long for a message and say how long it was."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
