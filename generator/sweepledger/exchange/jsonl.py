"""JSON Lines: an assignment an object, an object a line, an absent parameter a missing key."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from generator.exchange import listing
from generator.exchange.loss import Exported, ForeignError, Imported, Loss
from generator.structs.sweep import Sweep
from generator.structs.values import Value, canonical

LARGEST = 16 * 1024 * 1024
LINES = 100_000
"""As many assignments as a sweep can have trials."""
LINE_BYTES = 256 * 1024
"""As much as a whole spec may have."""

NESTED = Loss("objects within objects", "their parameters got dotted names, as nested parameters have here")


def read(content: bytes, *, name: str) -> Imported:
    """Make a list of a file's objects. Raises ForeignError."""
    if len(content) > LARGEST or content.count(b"\n") > LINES:
        raise ForeignError(f"must have at most {LARGEST} bytes and {LINES} lines, got more")
    lines = enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1)
    found = [_row(line, number) for number, line in lines if line.strip()]
    if not found:
        raise ForeignError("must hold at least one object, got none")
    kept, repeated = listing.once(values for values, _ in found)
    nested = any(is_nested for _, is_nested in found)
    return Imported(
        listing.frame(name, "list", assignments=listing.inline(kept)),
        (*listing.UNSAID, *repeated, *([NESTED] if nested else [])),
    )


def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Write the assignments in order, each value as exact as the trial gets it."""
    lines = [json.dumps(canonical(values), allow_nan=False) + "\n" for values in assignments]
    return Exported("".join(lines), listing.left_behind(sweep))


def _object(line: bytes, number: int) -> dict[str, Any]:
    if len(line) > LINE_BYTES:
        raise ForeignError(f"must have at most {LINE_BYTES} bytes a line, got {len(line)}", line=number)
    try:
        found = _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise ForeignError("must be UTF-8", line=number) from error
    except RecursionError as error:
        raise ForeignError("nests too deep", line=number) from error
    except json.JSONDecodeError as error:
        raise ForeignError(f"must be a JSON object: {error.msg.lower()}", line=number) from error
    except ValueError as error:
        raise ForeignError(str(error), line=number) from error
    if not isinstance(found, dict):
        raise ForeignError(f"must be a JSON object, got {found!r}"[:200], line=number)
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, times in counts.items() if times > 1)
        raise ValueError(f"must not repeat the key {repeated!r}")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, got {text!r}")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)


def _row(line: bytes, number: int) -> tuple[dict[str, Value], bool]:
    """Read a line; tell whether there were objects within it."""
    item = _object(line, number)
    try:
        flat = _flat(item)
    except RecursionError as error:  # some Pythons decode deeper than they can walk
        raise ForeignError("nests too deep", line=number) from error
    nested = any(isinstance(value, dict) for value in item.values())
    return listing.checked(flat, f"line {number}"), nested


def _flat(item: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in item.items():
        inner = _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        for key in inner.keys() & flat.keys():
            raise ForeignError(f"two values are called {key!r}")
        flat |= inner
    return flat
