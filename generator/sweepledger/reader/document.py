"""YAML documents: plain data, and the positions of paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sweepledger.problems import DocumentPath, Problem, format_path


class Mark(NamedTuple):
    """A position in a file; both numbers from 1."""

    line: int
    column: int


class Place(NamedTuple):
    """The positions of a value and of its key; for the item of a list, both are the item's."""

    value: Mark
    key: Mark


DOCUMENT_START = Mark(1, 1)
NOWHERE = Place(DOCUMENT_START, DOCUMENT_START)


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
    places: Mapping[DocumentPath, Place]

    divided: Mapping[DocumentPath, tuple[str, ...]]
    """For each list whose commas divide texts that bring brackets of their own: these texts as they were meant."""
    is_empty: bool
    """Whether the document contains no value."""

    def problem(
        self, path: DocumentPath, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Return a problem at a path."""
        place = self.place(path)
        return Problem(
            self.file, *(place.key if at_key else place.value), format_path(path), message, code, hint
        )

    def place(self, path: DocumentPath) -> Place:
        """Return the place of a path, or of its nearest parent if the value is missing."""
        above = (path[:end] for end in range(len(path), -1, -1))
        return next((self.places[each] for each in above if each in self.places), NOWHERE)
