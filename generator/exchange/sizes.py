"""How many assignments a space has, by arithmetic on the keys of its parameters."""

import math
from collections.abc import Mapping
from typing import Any


def space_size(parameters: Mapping[str, Any]) -> int | None:
    """Count the combinations of a space; None if some parameter has no end of values."""
    sizes = [_size(keys) for keys in parameters.values()]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _size(keys: Any) -> int | None:
    match keys:
        case {"parameters": dict() as nested}:
            return space_size(nested)
        case {"value": _}:
            return 1
        case {"values": list() as values}:
            return len(values)
        case {"min": int(low), "max": int(high), "step": int(step)} if step > 0:
            return max(0, high - low) // step + 1
        case {"min": int(low), "max": int(high)} if keys.get("distribution", "int_uniform") == "int_uniform":
            return max(0, high - low) + 1
        case _:
            return None
