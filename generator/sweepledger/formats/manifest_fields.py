"""Lenient access to the fields of an object of the Kubernetes API.

A proxy or a wrapper may change what a server sends, so an object may have any shape. A field that is missing
or has another type is read as empty.
"""

from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

LATEST_TIME = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""Later times cannot be represented in every time zone."""


def value_at(node: object, *path: str) -> Any:
    """Return the value at a path, or None."""
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


def text_at(node: object, *path: str) -> str:
    """Return the string at a path, or an empty string."""
    value = value_at(node, *path)
    return value if isinstance(value, str) else ""


def int_at(node: object, *path: str) -> int | None:
    """Return the integer at a path, or None."""
    value = value_at(node, *path)
    return value if type(value) is int else None


def objects_at(node: object, *path: str) -> list[Object]:
    """Return the JSON objects in the list at a path."""
    values = value_at(node, *path)
    return [item for item in values if isinstance(item, dict)] if isinstance(values, list) else []


def named_object(node: object, name: str, *path: str) -> Object:
    """Return the object with this name from the list at a path, or an empty object."""
    return next((item for item in objects_at(node, *path) if item.get("name") == name), {})


def condition(node: object, name: str) -> Object:
    """Return the status condition of this type, or an empty object."""
    return next((item for item in objects_at(node, "status", "conditions") if item.get("type") == name), {})


def has_condition(node: object, name: str) -> bool:
    """Return whether the status condition of this type is true."""
    return condition(node, name).get("status") == "True"


def time_at(node: object, *path: str) -> float | None:
    """Return the time at a path in seconds since 1970, or None. Container runtimes report an unknown time as 1970."""
    try:
        seconds = datetime.fromisoformat(text_at(node, *path)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < LATEST_TIME else None
