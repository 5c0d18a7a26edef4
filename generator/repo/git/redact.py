"""Keep credentials out of everything that people and logs see."""

import re

CREDENTIALS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/@\s]+@", re.IGNORECASE)


def redact(text: str) -> str:
    """Blank out user and password of every URL in a text."""
    return CREDENTIALS.sub(r"\g<scheme>***@", text)
