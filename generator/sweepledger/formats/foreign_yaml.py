"""YAML of other tools, read as those tools read it (YAML 1.1 with aliases), but within limits.

Dates and unknown tags become text, keys are always text; a number that is not finite is refused.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sweepledger.formats.yaml import error_line, error_text
from sweepledger.problems import TextError

MAX_BYTES = 1024 * 1024
"""Four times the limit of specs, because other tools write out what specs abbreviate."""
MAX_DEPTH = 64
MAX_NODES = 100_000
"""Counted after the expansion of aliases, so that a few hundred bytes cannot mean a billion values."""

EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+", re.ASCII)
MAX_INTEGER_BITS = 512
"""Longer integers cannot be compared with floats, and not every Python can print them."""

TAG_PREFIX = "tag:yaml.org,2002:"


class ExponentText(str):
    """Text in YAML 1.1 that its author meant as a number, such as `1e-3` without quotes."""

    __slots__ = ()


class ForeignError(TextError):
    """The file does not have the format that the user named, or a value has no meaning here."""


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader, which W&B and Hydra use, without types that no parameter can have."""


def _plain(loader: Any, node: yaml.Node) -> Any:
    """Construct a tagged node as if it had no tag."""
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
    """Raise ForeignError for a repeated key. Call it before merge keys are flattened, whose keys may repeat."""
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ForeignError("keys must be text, got a list or a mapping", line=_line(key))
        if key.value in seen:
            raise ForeignError(f"must not repeat the key {key.value!r}", line=_line(key))
        seen.add(key.value)


def _text(loader: Any, node: yaml.ScalarNode) -> str:
    text = str(loader.construct_scalar(node))
    return ExponentText(text) if not node.style and EXPONENT.fullmatch(text) else text


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    number = int(loader.construct_yaml_int(node))
    if number.bit_length() > MAX_INTEGER_BITS:
        raise ForeignError(
            f"must be a smaller number, got one of {number.bit_length()} bits", line=_line(node)
        )
    return number


def _float(loader: Any, node: yaml.ScalarNode) -> float:
    number = float(loader.construct_yaml_float(node))
    if not math.isfinite(number):
        raise ForeignError(f"must be a finite number, got {node.value!r}", line=_line(node))
    return number


for _tag in ("timestamp", "binary", "omap", "pairs", "set"):
    _Loader.add_constructor(TAG_PREFIX + _tag, _plain)
_Loader.add_constructor(TAG_PREFIX + "map", _mapping)
_Loader.add_constructor(TAG_PREFIX + "float", _float)
_Loader.add_constructor(TAG_PREFIX + "int", _integer)
_Loader.add_constructor(TAG_PREFIX + "str", _text)
_Loader.add_constructor(None, _plain)  # any other tag


def load(content: bytes) -> Any:
    """Return the only document of a file. Raises ForeignError."""
    if len(content) > MAX_BYTES:
        raise ForeignError(f"must be at most {MAX_BYTES} bytes, got {len(content)}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ForeignError("must be UTF-8", line=content[: error.start].count(b"\n") + 1) from error
    try:
        _refuse_large(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader, narrowed
    except yaml.YAMLError as error:
        line = error_line(error) if isinstance(error, yaml.MarkedYAMLError) else None
        raise ForeignError(f"must be valid YAML: {error_text(error)}", line=line) from error
    except ForeignError:
        raise
    except (ValueError, KeyError, IndexError) as error:  # long digits, `!!bool maybe`, `!!int` of nothing
        raise ForeignError(f"must be readable: {error}") from error


def coerce_number(value: object) -> int | float | None:
    """Return a value as a number, including a bare `1e-3`, which is text in YAML 1.1; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, ExponentText) and math.isfinite(float(value)):
        return float(value)
    return None


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end is still to come."""

    anchor: str | None
    before: int
    """Number of values before it."""
    height: int = 1


@dataclass(slots=True)
class _Counter:
    """Counts the values of events with aliases expanded. The loader recurses and must not get a deep document."""

    anchors: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number of values and of levels of each."""
    stack: list[_Open] = field(default_factory=list)
    total: int = 0

    def take(self, event: Any) -> None:
        """Take the next event. Raises ForeignError at the first that exceeds a limit."""
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
        if len(self.stack) + max((node.height for node in self.stack[-1:]), default=0) > MAX_DEPTH + 1:
            raise ForeignError(f"must nest at most {MAX_DEPTH} levels deep", line=_line(event))
        if self.total > MAX_NODES:
            raise ForeignError(f"must hold at most {MAX_NODES} values", line=_line(event))

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
