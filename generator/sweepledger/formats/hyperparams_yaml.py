"""`hyperparams.yml` of the NVIDIA and EIDF examples: a list of `hyperparam_set:` items, one per job.

It is equal byte for byte to the output of their generators, which is PyYAML's `dump` of the list.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.values import Value

KEY = "hyperparam_set"

ITEM_LINE = re.compile(rb"^- ", re.MULTILINE)
PART_BYTES = 256 * 1024
"""Large files are read in parts of whole items, so that the loader's limits apply to each part."""
MAX_BYTES = 64 * 1024 * 1024


def write(sets: Iterable[Mapping[str, Value]]) -> str:
    """Return the text of configurations; an absent parameter has no line."""
    # One by one, so that equal lists have no anchors.
    return "".join(map(_dumped, sets)) or "[]\n"


def _dumped(values: Mapping[str, Value]) -> str:
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return str(yaml.dump([{KEY: plain}], default_flow_style=False))


def read(content: bytes) -> tuple[dict[str, Any], ...]:
    """Return the configurations in their order. Raises ForeignError."""
    if len(content) > MAX_BYTES:
        raise ForeignError(f"must be at most {MAX_BYTES} bytes, got {len(content)}")
    items: list[Any] = []
    for first_line, part in _parts(content):
        try:
            part_items = foreign_yaml.load(part)
        except ForeignError as error:
            line = None if error.line is None else first_line + error.line
            raise ForeignError(str(error), line=line, hint=error.hint) from error
        if not isinstance(part_items, list):
            kinds = {dict: "a mapping", type(None): "nothing"}
            message = (
                f"must be a list of `{KEY}:` items, got {kinds.get(type(part_items), repr(part_items)[:40])}"
            )
            raise ForeignError(message, hint=f"each item is `- {KEY}: {{…}}`")
        items += part_items
    return tuple(_set(item, number) for number, item in enumerate(items, start=1))


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a file before items into parts of about equal size, each with the number of lines before it."""
    start, line = 0, 0
    while len(content) - start > 2 * PART_BYTES:
        item = ITEM_LINE.search(content, start + PART_BYTES)
        if item is None:
            break
        yield line, content[start : item.start()]
        line += content.count(b"\n", start, item.start())
        start = item.start()
    yield line, content[start:]


def _set(item: Any, number: int) -> dict[str, Any]:
    if not isinstance(item, dict) or list(item) != [KEY] or not isinstance(item[KEY], dict):
        keys = f"the keys {', '.join(map(repr, item))[:80]}" if isinstance(item, dict) else "no mapping"
        raise ForeignError(
            f"item {number}: must be a mapping with the one key {KEY!r}, got {keys}",
            hint=f"each item is `- {KEY}: {{…}}`",
        )
    return dict(item[KEY])
