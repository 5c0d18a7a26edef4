"""Places inside a document: keys and positions from the top, and how people read them."""

import re

Path = tuple[str | int, ...]

BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def dotted(path: Path) -> str:
    """Write a path as `parameters.width.values[2]`; keys that would be misread stand in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif BARE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text
