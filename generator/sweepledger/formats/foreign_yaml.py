"""Other tools' YAML, read as those tools read it (YAML 1.1, aliases and all), but within caps.

Dates and unknown tags become text, keys are always text; a number that is not finite is refused.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

BYTES = 1024 * 1024
"""Four times what our own specs may have: others write out what ours abbreviate."""
DEPTH = 64
NODES = 100_000
"""Counted after aliases are expanded, so that a few hundred bytes cannot mean a billion values."""

EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", re.ASCII)
LONGEST_INTEGER = 512
"""Bits; what is longer, no float can be compared with and not every Python can print."""

PREFIX = "tag:yaml.org,2002:"


class Unpointed(str):
    """Text to YAML 1.1, as `1e-3` without quotes, whose author meant a number."""

    __slots__ = ()


class ForeignError(ValueError):
    """The file is not one of the format it was said to be of, or says what cannot be made sense of."""

    def __init__(self, message: str, *, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        """From 1; None where it is not known."""
        self.hint = hint


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader, which W&B and Hydra read with, less what no value of ours can be."""


def _plain(loader: Any, node: yaml.Node) -> Any:
    """Read what a tag stands at as if there were none."""
    match node:
        case yaml.ScalarNode():
            return str(node.value)
        case yaml.SequenceNode():
            return loader.construct_sequence(node, deep=True)
        case _:
            return _mapping(loader, node)


def _mapping(loader: Any, node: Any) -> dict[str, Any]:
    _refuse_repeated(node)
    loader.flatten_mapping(node)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _refuse_repeated(node: Any) -> None:
    """Look before merge keys are flattened: what stands beside `<<` may repeat what it brings."""
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ForeignError("keys must be text, got a list or a mapping", line=_line(key))
        if key.value in seen:
            raise ForeignError(f"must not repeat the key {key.value!r}", line=_line(key))
        seen.add(key.value)


def _text(loader: Any, node: yaml.ScalarNode) -> str:
    text = str(loader.construct_scalar(node))
    return Unpointed(text) if not node.style and EXPONENT.fullmatch(text) else text


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    found = int(loader.construct_yaml_int(node))
    if found.bit_length() > LONGEST_INTEGER:
        raise ForeignError(
            f"must be a smaller number, got one of {found.bit_length()} bits", line=_line(node)
        )
    return found


def _float(loader: Any, node: yaml.ScalarNode) -> float:
    number = float(loader.construct_yaml_float(node))
    if not math.isfinite(number):
        raise ForeignError(f"must be a finite number, got {node.value!r}", line=_line(node))
    return number


for _tag in ("timestamp", "binary", "omap", "pairs", "set"):
    _Loader.add_constructor(PREFIX + _tag, _plain)
_Loader.add_constructor(PREFIX + "map", _mapping)
_Loader.add_constructor(PREFIX + "float", _float)
_Loader.add_constructor(PREFIX + "int", _integer)
_Loader.add_constructor(PREFIX + "str", _text)
_Loader.add_constructor(None, _plain)  # any other tag


def load(content: bytes) -> Any:
    """Read the one document of a file. Raises ForeignError."""
    if len(content) > BYTES:
        raise ForeignError(f"must be at most {BYTES} bytes, got {len(content)}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ForeignError("must be UTF-8", line=content[: error.start].count(b"\n") + 1) from error
    try:
        _refuse_large(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, narrowed
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        raise ForeignError(f"must be valid YAML: {words}", line=mark.line + 1 if mark else None) from error
    except yaml.YAMLError as error:
        raise ForeignError(f"must be valid YAML: {str(error).splitlines()[0]}") from error
    except ForeignError:
        raise
    except (ValueError, KeyError, IndexError) as error:  # long digits, `!!bool maybe`, `!!int` of nothing
        raise ForeignError(f"must be readable: {error}") from error


def number(value: object) -> int | float | None:
    """Take a value for a number, also the text that YAML 1.1 makes of a bare `1e-3`; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, Unpointed) and math.isfinite(float(value)):
        return float(value)
    return None


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    anchor: str | None
    before: int
    """Values before it."""
    height: int = 1


@dataclass(slots=True)
class _Counter:
    """Counts what events stand for, aliases expanded. The loader recurses: it must see no deep document."""

    anchors: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Values and levels of each."""
    stack: list[_Open] = field(default_factory=list)
    total: int = 0

    def take(self, event: Any) -> None:
        """Take the next event. Raises ForeignError at the first that is too much."""
        match event:
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    raise ForeignError(f"the alias *{event.anchor} has no value", line=_line(event))
                self._add(*self.anchors[event.anchor])
            case yaml.ScalarEvent():
                self._add(1, 0)
                self._remember(event.anchor, 1, 0)
            case yaml.CollectionStartEvent():
                self.stack.append(_Open(event.anchor, self.total))
                self.total += 1
            case yaml.CollectionEndEvent():
                closed = self.stack.pop()
                self._add(0, closed.height)
                self._remember(closed.anchor, self.total - closed.before, closed.height)
        if len(self.stack) + max((node.height for node in self.stack[-1:]), default=0) > DEPTH + 1:
            raise ForeignError(f"must nest at most {DEPTH} levels deep", line=_line(event))
        if self.total > NODES:
            raise ForeignError(f"must hold at most {NODES} values", line=_line(event))

    def _add(self, values: int, height: int) -> None:
        self.total += values
        if self.stack:
            self.stack[-1].height = max(self.stack[-1].height, height + 1)

    def _remember(self, anchor: str | None, values: int, height: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (values, height)


def _refuse_large(text: str) -> None:
    counter = _Counter()
    for event in _events(text):
        counter.take(event)


def _events(text: str) -> Iterator[Any]:
    yield from yaml.parse(text, Loader=yaml.CSafeLoader)


def _line(marked: Any) -> int:
    return int(marked.start_mark.line) + 1
