"""Documents of this program as JSON: written from dataclasses, and read back with a check of every type and bound."""

import json
import re
from typing import Any, TypeVar

import msgspec

from sweepledger.problems import TextError
from sweepledger.structs.values import as_data

T = TypeVar("T")


def write(document: Any) -> str:
    """Return the text of a document: one field per line, in the order of its class."""
    return json.dumps(as_data(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read(kind: type[T], content: str | bytes, *, name: str = "") -> T:
    """Return a document from untrusted text. Raises TextError, which names the field and its line.

    With a `name`, such as `a lock file`, the error begins with `not a lock file`.
    """
    prefix = f"not {name}: " if name else ""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        rule, _, place = str(error).partition(" - at ")
        path = place.replace("`", "").replace("$.", "").replace("$", "")
        field = f"{path}: " if path else ""
        raise TextError(f"{prefix}{field}{rule}", line=_line_of(content, path)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        at = _BYTE.search(str(error))
        line = 1 if at is None else _as_bytes(content).count(b"\n", 0, int(at[1])) + 1
        raise TextError(f"{prefix}is not JSON: {error}", line=line) from error


_BYTE = re.compile(r"\(byte ([0-9]+)\)\Z")
"""Where text is not JSON."""


def _line_of(content: str | bytes, path: str) -> int:
    """Return the line of the key at a path in text from `write`; for a missing key, that of the nearest key above."""
    text, at = _as_bytes(content), 0
    for key in re.findall(r"[^.\[\] ]+", path):
        at = max(at, text.find(f'"{key}":'.encode(), at))
    return text.count(b"\n", 0, at) + 1


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
