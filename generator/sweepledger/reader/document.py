"""YAML documents: nodes with positions, paths, and plain data."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from sweepledger.problems import Problem


class Mark(NamedTuple):
    """A position in a file; both numbers from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A scalar; the meaning of a plain one is not resolved yet."""

    text: str
    plain: bool
    """Whether it is neither quoted nor a block."""
    mark: Mark
    properties: tuple[str, ...] = ()
    """Anchor and tag as written; no file may have them."""


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list."""

    items: tuple["Node", ...]
    mark: Mark
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Keys and values in their order, including repeated keys."""

    entries: tuple[tuple["Node", "Node"], ...]
    mark: Mark
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AliasNode:
    """A reference to an anchor, which is never followed."""

    name: str
    mark: Mark


Node = ScalarNode | SequenceNode | MappingNode | AliasNode


DocumentPath = tuple[str | int, ...]

BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def format_path(path: DocumentPath) -> str:
    """Return a path as `parameters.width.values[2]`, with ambiguous keys in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif BARE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


DOCUMENT_START = Mark(1, 1)


@dataclass(frozen=True, slots=True)
class Document:
    """The content of one document."""

    file: str
    text: str
    """Without byte order mark and with LF line ends: equal for files that differ in nothing else."""
    root: Node | None
    data: Any
    """Plain dicts, lists and scalars; None at the paths in `unread`, and for an empty file."""
    unread: frozenset[DocumentPath]
    """Paths whose values were rejected, so that no further check applies to them."""

    @property
    def is_empty(self) -> bool:
        """Whether the document contains no value."""
        return self.data is None and not self.unread

    def mark(self, path: DocumentPath) -> Mark:
        """Return where the value at a path starts; the nearest parent if the value is missing."""
        node, _ = self._find(path)
        return DOCUMENT_START if node is None else node.mark

    def key_mark(self, path: DocumentPath) -> Mark:
        """Return where the last key of a path starts; for the item of a list, the item."""
        _, mark = self._find(path)
        return mark

    def is_plain(self, path: DocumentPath) -> bool:
        """Return whether the value at a path is a scalar without quotes."""
        node, _ = self._find(path)
        return isinstance(node, ScalarNode) and node.plain

    def problem(
        self, path: DocumentPath, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Return a problem at a path."""
        mark = self.key_mark(path) if at_key else self.mark(path)
        return Problem(self.file, mark.line, mark.column, format_path(path), message, code, hint)

    def _find(self, path: DocumentPath) -> tuple[Node | None, Mark]:
        node, mark = self.root, DOCUMENT_START
        for part in path:
            child = _child(node, part)
            if child is None:
                break
            node, mark = child
        return node, mark


def _child(node: Node | None, part: str | int) -> tuple[Node, Mark] | None:
    match node:
        case MappingNode(entries):
            for key, value in entries:
                if isinstance(key, ScalarNode) and key.text == part:
                    return value, key.mark
        case SequenceNode(items) if isinstance(part, int) and part < len(items):
            return items[part], items[part].mark
    return None
