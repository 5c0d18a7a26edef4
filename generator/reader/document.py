"""A document that was read: plain data, and the place in the file of every part of it."""

from dataclasses import dataclass
from typing import Any

from generator.problems import Problem
from generator.reader.nodes import Mapping, Mark, Node, Scalar, Sequence
from generator.reader.paths import Path, dotted

TOP = Mark(1, 1)


@dataclass(frozen=True, slots=True)
class Document:
    """One file's contents."""

    file: str
    text: str
    """Without byte order mark and with LF line ends: equal for files that differ in nothing else."""
    root: Node | None
    data: Any
    """Plain dicts, lists and scalars; None where a place is among `unread`, and for an empty file."""
    unread: frozenset[Path]
    """Places whose value was refused, so that nothing more can be said of them."""

    @property
    def is_empty(self) -> bool:
        """Tell whether the file holds no value at all."""
        return self.data is None and not self.unread

    def mark(self, path: Path) -> Mark:
        """Find where the value at a path starts; if it is not there, the nearest place above it."""
        node, _ = self._find(path)
        return TOP if node is None else node.mark

    def key_mark(self, path: Path) -> Mark:
        """Find where the key that ends a path starts; for a list's item, the item."""
        _, mark = self._find(path)
        return mark

    def problem(
        self, path: Path, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Say that something is wrong at a path."""
        mark = self.key_mark(path) if at_key else self.mark(path)
        return Problem(self.file, mark.line, mark.column, dotted(path), message, code, hint)

    def _find(self, path: Path) -> tuple[Node | None, Mark]:
        node, mark = self.root, TOP
        for part in path:
            found = _child(node, part)
            if found is None:
                break
            node, mark = found
        return node, mark


def _child(node: Node | None, part: str | int) -> tuple[Node, Mark] | None:
    match node:
        case Mapping(entries):
            for key, value in entries:
                if isinstance(key, Scalar) and key.text == part:
                    return value, key.mark
        case Sequence(items) if isinstance(part, int) and part < len(items):
            return items[part], items[part].mark
    return None
