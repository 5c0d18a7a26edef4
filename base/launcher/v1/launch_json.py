"""JSON that a trial may have written: strict, bounded, and in one canonical form."""

from __future__ import annotations

import json
import math
import os
import stat
from typing import IO, Any

from launch_files import LARGEST_FILE

DEEPEST = 16  # nested containers in such JSON
LONGEST_INTEGER = 300  # digits: each such number is a finite float
LONGEST_MATCH = 1000  # characters of a line that patterns are applied to


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object whose names are all different. Raises ValueError."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has the same name twice")
    return made


def whole(digits: str) -> int:
    """Read an integer of a length that every reader accepts. Raises ValueError."""
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a whole number has more than {LONGEST_INTEGER} digits")
    return int(digits)


def depth(value: Any) -> int:
    """Count nested containers."""
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def parse_object(content: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises ValueError with the reason."""
    try:
        data = json.loads(content.decode(), object_pairs_hook=distinct, parse_int=whole)
        levels = depth(data)
    except RecursionError:
        levels = DEEPEST + 1
    if levels > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST}")
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    return data


def open_regular(path: str) -> IO[bytes]:
    """Open a file that a trial may have written. Raises OSError, and ValueError for other kinds."""
    # Without O_NONBLOCK, a FIFO would block forever; a link could show files that are not the trial's.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ValueError("it is not a regular file")
    return open(file, "rb")


def read_object(path: str) -> dict[str, Any]:
    """Read a JSON file that a trial may have written. Raises OSError, and ValueError with the reason."""
    with open_regular(path) as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError("it is larger than 1 MiB")
    return parse_object(content)


def plain(value: Any) -> Any:
    """Turn numbers that standard JSON cannot express into text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def dump(value: Any) -> str:
    """Write a value as one line of canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"
