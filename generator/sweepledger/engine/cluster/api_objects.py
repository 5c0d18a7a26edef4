"""Objects of the Kubernetes API as JSON: strict checks of their shape."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sweepledger.formats.manifest_fields import value_at
from sweepledger.structs.kubernetes import Manifest

MAX_DEPTH = 128
"""Maximum nesting depth, far above that of any object of Kubernetes or its controllers."""
MAX_BRACKETS = 4_000_000
"""Maximum number of lists and objects in one response, twice that of 20,000 Jobs."""
NESTED = frozenset({dict, list})
EXCERPT_LENGTH = 80


class UnexpectedResponseError(Exception):
    """A response is not valid for the Kubernetes API. The message has the reason."""


def parse_object(output: bytes) -> dict[str, Any]:
    """Return the JSON object that kubectl printed. Raises UnexpectedResponseError."""
    try:
        if output.count(b"{") + output.count(b"[") > MAX_BRACKETS:
            raise UnexpectedResponseError(
                f"{len(output)} bytes with more than {MAX_BRACKETS} lists and objects"
            )
        response = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise UnexpectedResponseError(f"invalid JSON: {excerpt(output)}") from error
    if not isinstance(response, dict) or _is_deep(response):
        raise UnexpectedResponseError(f"not a Kubernetes object: {excerpt(output)}")
    return response


def require_text(response: Mapping[str, Any], *path: str) -> str:
    """Return the string at a path. Raises UnexpectedResponseError."""
    node = value_at(response, *path)
    if not isinstance(node, str):
        raise UnexpectedResponseError(f"an object without {'.'.join(path)}: {_excerpt_json(response)}")
    return node


def require_object(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the response if it is an object with a kind and valid common fields. Raises UnexpectedResponseError."""
    require_text(response, "kind")
    return _require_shape(response)


def require_list(response: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the items of a list response. Raises UnexpectedResponseError."""
    items = response.get("items")
    if not isinstance(items, list):
        raise UnexpectedResponseError(f"not a list of objects: {_excerpt_json(response)}")
    return tuple(map(_require_shape, items))


def excerpt(output: bytes) -> str:
    """Return the beginning of an output in quotes."""
    text = repr(output[:EXCERPT_LENGTH].decode(errors="replace"))
    return f"{text}…" if len(output) > EXCERPT_LENGTH else text


def _excerpt_json(value: Any) -> str:
    return excerpt(json.dumps(value).encode())


def _require_shape(value: Any) -> Mapping[str, Any]:
    require_text(value if isinstance(value, dict) else {"": value}, "metadata", "name")
    for path, kind, of in SHAPE:
        parent, last = value_at(value, *path[:-1]), path[-1]
        if not isinstance(parent, dict) or last not in parent:
            continue
        node = parent[last]
        items = node.values() if isinstance(node, dict) else node
        is_valid = isinstance(node, kind) and all(isinstance(item, of) for item in items)
        # Controllers write null for some empty fields. Two fields are used unchecked and must not be null.
        if not is_valid and (node is not None or path in NEVER_NULL):
            raise UnexpectedResponseError(
                f"an object with an invalid {'.'.join(path)}: {_excerpt_json(node)}"
            )
    checked: Mapping[str, Any] = value
    return checked


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        children = (node.values() if type(node) is dict else node for node in level)
        level = [child for group in children for child in group if type(child) in NESTED]
        if not level:
            return False
    return True


SHAPE: tuple[tuple[tuple[str, ...], type, type], ...] = (
    (("metadata", "labels"), dict, str),
    (("metadata", "ownerReferences"), list, dict),
    (("spec",), dict, object),
    (("spec", "accessModes"), list, str),
    (("status",), dict, object),
    (("status", "conditions"), list, dict),
    (("status", "sync"), dict, object),
)
"""Optional fields that other modules read without a type check, their types, and those of what is in them."""
NEVER_NULL = frozenset({("metadata", "labels"), ("spec",)})


def object_names(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the names of objects, sorted."""
    return tuple(sorted(str(manifest["metadata"]["name"]) for manifest in manifests))
