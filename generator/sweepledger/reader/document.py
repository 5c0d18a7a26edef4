"""YAML documents: nodes with positions, paths, and plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sweepledger.problems import DocumentPath, Problem, format_path


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


DOCUMENT_START = Mark(1, 1)


@dataclass(frozen=True, slots=True)
class Document:
    """The content of one document."""

    file: str
    text: str
    """Without byte order mark and with LF line ends: equal for files that differ in nothing else."""
    data: Any
    """Plain dicts, lists and scalars; None at the paths in `unread`, and for an empty file."""
    unread: frozenset[DocumentPath]
    """Paths whose values were rejected, so that no further check applies to them."""
    marks: Mapping[DocumentPath, tuple[Mark, Mark]]
    """Where each value starts, and its key; the item of a list starts both."""
    divided: Mapping[DocumentPath, tuple[str, ...]]
    """For each list whose commas divide texts that bring brackets of their own: these texts as they were meant."""
    is_empty: bool
    """Whether the document contains no value."""

    def mark(self, path: DocumentPath) -> Mark:
        """Return where the value at a path starts; the nearest parent if the value is missing."""
        return self._nearest(path)[0]

    def key_mark(self, path: DocumentPath) -> Mark:
        """Return where the last key of a path starts; for the item of a list, the item."""
        return self._nearest(path)[1]

    def problem(
        self, path: DocumentPath, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Return a problem at a path."""
        mark = self._nearest(path)[at_key]
        return Problem(self.file, mark.line, mark.column, format_path(path), message, code, hint)

    def _nearest(self, path: DocumentPath) -> tuple[Mark, Mark]:
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, (DOCUMENT_START, DOCUMENT_START))
