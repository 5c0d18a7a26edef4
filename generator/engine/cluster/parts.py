"""Parts of objects of which anything may come: what is not there, or of another kind, is empty."""

from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""Later ones cannot be written in every time zone."""


def at(node: object, *path: str) -> Any:
    """Give what stands at a path, None where nothing does."""
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


def text(node: object, *path: str) -> str:
    """Give a text, or an empty one."""
    found = at(node, *path)
    return found if isinstance(found, str) else ""


def number(node: object, *path: str) -> int | None:
    """Give a whole number."""
    found = at(node, *path)
    return found if type(found) is int else None


def objects(node: object, *path: str) -> list[Object]:
    """Give the objects of a list."""
    found = at(node, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def named(node: object, name: str, *path: str) -> Object:
    """Give the object of a list that has a name."""
    return next((one for one in objects(node, *path) if one.get("name") == name), {})


def condition(node: object, name: str) -> Object:
    """Give one of the conditions of a status; an empty one where it is not set."""
    return next((one for one in objects(node, "status", "conditions") if one.get("type") == name), {})


def moment(node: object, *path: str) -> float | None:
    """Give a time as seconds since 1970; None also for 1970 itself: so runtimes write that they know none."""
    try:
        found = datetime.fromisoformat(text(node, *path)).timestamp()
    except (ValueError, OverflowError):
        return None
    return found if 0 < found < LATEST else None
