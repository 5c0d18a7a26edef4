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
    text, at = content.encode() if isinstance(content, str) else content, 0
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        rule, _, place = str(error).partition(" - at ")
        path = place.replace("`", "").replace("$.", "").replace("$", "")
        field = f"{path}: " if path else ""
        # The line of the key in text from `write`; for a missing key, that of the nearest key above.
        for key in re.findall(r"[^.\[\] ]+", path):
            at = max(at, text.find(f'"{key}":'.encode(), at))
        raise TextError(f"{prefix}{field}{rule}", line=text.count(b"\n", 0, at) + 1) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if byte := re.search(r"\(byte ([0-9]+)\)\Z", str(error)):
            at = int(byte[1])
        raise TextError(f"{prefix}is not JSON: {error}", line=text.count(b"\n", 0, at) + 1) from error
