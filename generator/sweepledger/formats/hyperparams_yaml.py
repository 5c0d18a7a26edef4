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
HEAD = f"- {KEY}:\n"

ITEM_LINE = re.compile(rb"^- ", re.MULTILINE)
PART_BYTES = 256 * 1024
"""Large files are read in parts of whole items, so that the loader's limits apply to each part."""
MAX_BYTES = 64 * 1024 * 1024


def write(sets: Iterable[Mapping[str, Value]]) -> str:
    """Return the text of configurations; an absent parameter has no line."""
    lines = _Lines()
    return "".join(map(lines.item, sets)) or "[]\n"


class _Lines:
    """Cached lines of names and values: PyYAML's dumper takes 150 microseconds for each configuration."""

    def __init__(self) -> None:
        self.heads: dict[str, str] = {}
        self.texts: dict[tuple[str, str], str] = {}

    def item(self, values: Mapping[str, Value]) -> str:
        """Return the text of one configuration."""
        if not values:
            return f"- {KEY}: {{}}\n"
        return HEAD + "".join([self.line(name, values[name]) for name in sorted(values)])

    def line(self, name: str, value: Value) -> str:
        """Return the line of a parameter."""
        if name not in self.heads:
            self.heads[name] = _dumped(name, 0).removesuffix("0\n")
        match value:
            case None:
                return self.heads[name] + "null\n"
            case bool():
                return self.heads[name] + ("true\n" if value else "false\n")
            case int():
                return f"{self.heads[name]}{value}\n"
            case float():
                return f"{self.heads[name]}{_float(value)}\n"
            case _:
                return self._text(name, value)

    def _text(self, name: str, value: Value) -> str:
        """Return PyYAML's own text, which it quotes, folds and escapes depending on text and column."""
        key = (name, repr(value))
        if key not in self.texts:
            self.texts[key] = _dumped(name, value if isinstance(value, str) else list(value or ()))  # type: ignore[arg-type]
        return self.texts[key]


def _dumped(name: str, value: Any) -> str:
    return str(yaml.dump([{KEY: {name: value}}], default_flow_style=False)).removeprefix(HEAD)


def _float(value: float) -> str:
    """Return a float as in PyYAML, whose readers require a point before an exponent."""
    text = repr(value)
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text


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
