"""What a hyperparameter can be, and the one form in which two of them are compared."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

Scalar = str | int | float | bool | None
Value = Scalar | Sequence[Scalar]

LARGEST_EXACT_INTEGER = 2**53
"""Beyond it JSON readers that use doubles, Kustomize among them, lose digits."""


def canonical(value: object) -> object:
    """Give equal values one form: 1.0 becomes 1, -0.0 becomes 0, tuples become lists.

    Raises ValueError for numbers that are not finite and for kinds JSON does not know.
    """
    match value:
        case None | bool() | str() | int():
            return value
        case float() if not math.isfinite(value):
            raise ValueError(f"a value must be finite, but got {value!r}")
        case float() if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
            return int(value)
        case float():
            return value
        case Mapping():
            return {str(key): canonical(item) for key, item in value.items()}
        case list() | tuple():
            return [canonical(item) for item in value]
        case _:
            raise ValueError(f"a value must be JSON data, but got {type(value).__name__}")


def canonical_json(value: object) -> str:
    """Write a value as JSON in the one form that digests are taken of: sorted keys, no spaces, ASCII."""
    return json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: object) -> str:
    """SHA-256 of a value's canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def bytes_digest(content: bytes) -> str:
    """SHA-256 of bytes in the form lock files use: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()
