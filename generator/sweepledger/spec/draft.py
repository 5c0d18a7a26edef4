"""A document whose structure was checked, as the rules read it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sweepledger.problems import DocumentPath, Problem, Severity, SourcePosition, format_path
from sweepledger.reader import Document
from sweepledger.reader.configurations import ConfigurationTable
from sweepledger.structs.settings import Settings

Kind = TypeVar("Kind")

RawMapping = Mapping[str, Any]
"""A mapping of a document, as the reader returns it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A document whose structure was checked. Parts of it may be invalid."""

    document: Document
    broken: frozenset[DocumentPath]
    """Paths that rules must not read: refused by the reader, or of the wrong structure."""
    settings: Settings
    """The repository's settings; the defaults while a settings file itself is checked."""
    table: ConfigurationTable | None = None
    """The file of configurations; None if the spec names none, or if it cannot be read."""
    computed: dict[object, Any] = field(init=False, repr=False, compare=False, default_factory=dict)
    """What was computed of this draft, by the function that computes it; a changed draft begins with nothing."""

    def get(self, *path: str | int, kind: type[Kind]) -> Kind | None:
        """Return the value at a path; None if it is absent, broken, or of another type."""
        value = self.document.data
        for end, part in enumerate(path, start=1):
            if not _has(value, part) or path[:end] in self.broken:
                return None
            value = value[part]
        return value if isinstance(value, kind) else None

    def number(self, *path: str | int) -> int | float | None:
        """Return the number at a path; None if it is absent, broken, or not a number."""
        value = self.get(*path, kind=object)
        return value if isinstance(value, int | float) else None

    def texts(self, *path: str | int) -> Iterator[tuple[DocumentPath, str]]:
        """Return all texts at and below a path."""
        value = self.get(*path, kind=object)
        match value:
            case str():
                yield path, value
            case dict() | list():
                for part in value if isinstance(value, dict) else range(len(value)):
                    yield from self.texts(*path, part)

    def items(self, *path: str | int) -> Iterator[tuple[DocumentPath, Any]]:
        """Return the items of a list that are not broken, with their paths; null is an item."""
        for index, item in enumerate(self.get(*path, kind=list) or ()):
            if (*path, index) not in self.broken:
                yield (*path, index), item

    def names(self, *path: str | int) -> tuple[str, ...]:
        """List the keys of a mapping in the order written."""
        mapping: Mapping[str, Any] = self.get(*path, kind=dict) or {}
        return tuple(mapping)

    def has(self, *path: str | int) -> bool:
        """Return whether the mapping around a path has its last key."""
        return path[-1] in self.names(*path[:-1])

    def each(self, *pattern: str) -> list[DocumentPath]:
        """Return the paths that a pattern stands for: `*` is every key of a mapping."""
        paths: list[DocumentPath] = [()]
        for part in pattern:
            paths = [
                (*path, name) for path in paths for name in (self.names(*path) if part == "*" else [part])
            ]
        return paths

    def problem(
        self, path: DocumentPath, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Return an error at a path."""
        return self.document.problem(path, message, code=code, hint=hint, at_key=at_key)

    def warning(
        self, path: DocumentPath, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Return a warning at a path."""
        problem = self.problem(path, message, code=code, hint=hint, at_key=at_key)
        return replace(problem, severity=Severity.WARNING)

    def place(self, path: DocumentPath, *, at_key: bool = False) -> SourcePosition:
        """Return the position of a path, for problems that are found later."""
        mark = self.document.places[path][at_key]
        return SourcePosition(format_path(path), mark.line, mark.column)


def _has(value: object, part: str | int) -> bool:
    match value:
        case dict():
            return part in value
        case list():
            return isinstance(part, int) and part < len(value)
        case _:
            return False


Rule = Callable[[Draft], Iterable[Problem]]
