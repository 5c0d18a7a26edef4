"""`hyperparams.yml` of the NVIDIA and EIDF examples: a list of `hyperparam_set:` items, one a job.

Written byte for byte as their generators do, which is what PyYAML's `dump` writes of the list.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from generator.formats import foreign_yaml
from generator.formats.foreign_yaml import ForeignError
from generator.structs.values import Value

KEY = "hyperparam_set"
HEAD = f"- {KEY}:\n"

ITEM_LINE = re.compile(rb"^- ", re.MULTILINE)
PART_BYTES = 256 * 1024
"""Large files are read in parts of whole items, so that the loader's caps hold for each part."""
LARGEST = 64 * 1024 * 1024


def write(sets: Iterable[Mapping[str, Value]]) -> str:
    """Write the sets; a parameter that is absent has no line."""
    lines = _Lines()
    return "".join(map(lines.item, sets)) or "[]\n"


class _Lines:
    """The line of a name and a value, remembered: PyYAML's dumper takes 150 microseconds for each set."""

    def __init__(self) -> None:
        self.heads: dict[str, str] = {}
        self.texts: dict[tuple[str, str], str] = {}

    def item(self, values: Mapping[str, Value]) -> str:
        """Write one set."""
        if not values:
            return f"- {KEY}: {{}}\n"
        return HEAD + "".join([self.line(name, values[name]) for name in sorted(values)])

    def line(self, name: str, value: Value) -> str:
        """Write one value, with its name and its line end."""
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
        """Ask PyYAML itself: it quotes, folds and escapes by the text and by the column it stands in."""
        key = (name, repr(value))
        if key not in self.texts:
            self.texts[key] = _dumped(name, value if isinstance(value, str) else list(value or ()))  # type: ignore[arg-type]
        return self.texts[key]


def _dumped(name: str, value: Any) -> str:
    return str(yaml.dump([{KEY: {name: value}}], default_flow_style=False)).removeprefix(HEAD)


def _float(value: float) -> str:
    """Write a float as PyYAML does: its readers take no exponent for a number without a point before it."""
    text = repr(value)
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text


def read(content: bytes) -> tuple[dict[str, Any], ...]:
    """Read the sets in the file's order. Raises ForeignError."""
    if len(content) > LARGEST:
        raise ForeignError(f"must be at most {LARGEST} bytes, got {len(content)}")
    items: list[Any] = []
    for first_line, part in _parts(content):
        try:
            found = foreign_yaml.load(part)
        except ForeignError as error:
            line = None if error.line is None else first_line + error.line
            raise ForeignError(str(error), line=line, hint=error.hint) from error
        if not isinstance(found, list):
            raise _not_a_list(found)
        items += found
    return tuple(_set(item, number) for number, item in enumerate(items, start=1))


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut a file before items, into parts of about equal size; give how many lines stand before each."""
    start, line = 0, 0
    while len(content) - start > 2 * PART_BYTES:
        found = ITEM_LINE.search(content, start + PART_BYTES)
        if found is None:
            break
        yield line, content[start : found.start()]
        line += content.count(b"\n", start, found.start())
        start = found.start()
    yield line, content[start:]


def _not_a_list(found: object) -> ForeignError:
    kind = "a mapping" if isinstance(found, dict) else "nothing" if found is None else repr(found)[:40]
    return ForeignError(
        f"must be a list of `{KEY}:` items, got {kind}", hint=f"each item is `- {KEY}: {{…}}`"
    )


def _set(item: Any, number: int) -> dict[str, Any]:
    if not isinstance(item, dict) or list(item) != [KEY] or not isinstance(item[KEY], dict):
        keys = f"the keys {', '.join(map(repr, item))[:80]}" if isinstance(item, dict) else "no mapping"
        raise ForeignError(
            f"item {number}: must be a mapping with the one key {KEY!r}, got {keys}",
            hint=f"each item is `- {KEY}: {{…}}`",
        )
    return dict(item[KEY])
