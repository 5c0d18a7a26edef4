"""An imported spec as readable YAML: short mappings on one line, quotes only where the spec reader needs them.

The losses are comments above it, one per line.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from sweepledger.exchange.conversion import Imported
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader import characters
from sweepledger.reader.scalars import resolve_scalar
from sweepledger.reader.yaml_edit import format_flow

WIDTH = 100
"""Width of a mapping or a list on one line."""

SPREAD = frozenset({"parameters", "assignments", "constraints"})
"""Keys whose entries are written on separate lines, for review."""

LONGEST_INTEGER = 1024
"""Bits; Python refuses to write much longer integers, and the spec reader accepts 53."""

PLAIN = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./+*@%~ -]*[A-Za-z0-9_./+*@%~-])?", re.ASCII)
"""Texts that need no quotes, unless YAML reads them as another type."""


def spec_text(imported: Imported, source: str) -> str:
    """Return the spec as YAML; `source` describes its origin, such as `the W&B file sweep.yaml`.

    Raises ForeignError for a number that cannot be written.
    """
    header = [f"Imported from {source}."]
    if imported.losses:
        header.append("Not converted exactly:")
        header += [f"- {loss.part}: {loss.reason}" for loss in imported.losses]
    comments = (re.sub(r"[\t\r\n]+", " ", text) for text in header)
    lines = [f"# {characters.INVISIBLE.sub(characters.REPLACEMENT, text)}" for text in comments]
    return "\n".join([*lines, "", *_mapping({"version": 1, **imported.spec}, "")]) + "\n"


def _mapping(mapping: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in mapping.items():
        start, flow = f"{indent}{_text(key)}:", _flow(value)
        is_short = key not in SPREAD and len(start) + 1 + len(flow) <= WIDTH
        if is_short or not value or not isinstance(value, dict | list):
            yield f"{start} {flow}"
        else:
            yield start
            yield from (
                _mapping(value, f"{indent}  ") if isinstance(value, dict) else _items(value, f"{indent}  ")
            )


def _items(items: list[Any], indent: str) -> Iterator[str]:
    """Yield the lines of a list: mappings by their keys, scalars filled to the width."""
    if any(isinstance(item, dict | list) for item in items):
        for item in items:
            flow = _flow(item)
            if isinstance(item, dict) and item and len(indent) + 2 + len(flow) > WIDTH:
                first, *rest = _mapping(item, indent + "  ")
                yield f"{indent}- {first.lstrip()}"
                yield from rest
            else:
                yield f"{indent}- {flow}"
        return
    lines = ["["]
    for item in items:
        text = f"{_flow(item)}, "
        if len(indent) + len(lines[-1]) + len(text) > WIDTH:
            lines.append(" ")
        lines[-1] += text
    lines[-1] = lines[-1][:-2] + "]"
    yield from (indent + line.rstrip() for line in lines)


def _scalar(value: Any) -> str:
    match value:
        case str():
            return _text(value)
        case int() if value.bit_length() > LONGEST_INTEGER:
            message = f"must contain numbers that can be written, got one of {value.bit_length()} bits"
            raise ForeignError(message)
        case float() if not math.isfinite(value):
            raise ForeignError(f"must contain finite numbers, got {value!r}")
        case _:
            return json.dumps(value)


_flow = partial(format_flow, scalar=_scalar)


def _text(text: str) -> str:
    if PLAIN.fullmatch(text) and resolve_scalar(text) == text:
        return text
    # YAML reads JSON's escapes. Invisible characters are escaped to show them; the spec reader refuses them.
    return json.dumps(text, ensure_ascii=characters.INVISIBLE.search(text) is not None)
