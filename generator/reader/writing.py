"""Values as a person would write them into a YAML file; what is bare here, every reader takes for that."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from generator.reader.scalars import resolve

BARE = re.compile(r"[A-Za-z](?:[A-Za-z0-9_./:@-]*[A-Za-z0-9_/])?", re.ASCII)
STEP = 2
"""Blanks by which a block is indented."""


def scalar(value: object) -> str:
    """Write text, bare where that is safe, a number, a boolean or null."""
    if isinstance(value, str) and BARE.fullmatch(value) and resolve(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def flow(value: Any) -> str:
    """Write any value on one line."""
    match value:
        case Mapping():
            return f"{{{', '.join(f'{scalar(key)}: {flow(item)}' for key, item in value.items())}}}"
        case str():
            return scalar(value)
        case Sequence():
            return f"[{', '.join(flow(item) for item in value)}]"
        case _:
            return scalar(value)


def block(key: str, value: Any, indent: int) -> str:
    """Write a key and its value: mappings a line a key, all else beside the key."""
    head = f"{' ' * indent}{scalar(key)}:"
    if not isinstance(value, Mapping) or not value:
        return f"{head} {flow(value)}"
    below = (block(name, item, indent + STEP) for name, item in value.items())
    return "\n".join((head, *below))
