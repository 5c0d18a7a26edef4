"""A file between text and value: what rules look at, without the places already found wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from generator.problems import Place, Problem, Severity
from generator.reader import Document, Path, dotted
from generator.reader.assignments import Table
from generator.structs.settings import Settings

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that was read and whose structure was checked; it may be wrong in places."""

    document: Document
    broken: frozenset[Path]
    """Places of which nothing more can be said: refused by the reader or of the wrong structure."""
    settings: Settings
    """Of the repository; a settings file itself is checked against the defaults."""
    tables: Mapping[Path, Table] = field(default_factory=dict)
    """The files of assignments that could be read, by the path of the search that names each."""

    def get(self, *path: str | int, kind: type[Kind]) -> Kind | None:
        """Give the value at a path; None if it is absent, broken, or not of the kind."""
        value = self.document.data
        for end, part in enumerate(path, start=1):
            if not _has(value, part) or path[:end] in self.broken:
                return None
            value = value[part]
        return value if isinstance(value, kind) else None

    def number(self, *path: str | int) -> int | float | None:
        """Give the number at a path; None if it is absent, broken, or none."""
        value = self.get(*path, kind=object)
        return value if isinstance(value, int | float) else None

    def texts(self, *path: str | int) -> Iterator[tuple[Path, str]]:
        """Find all texts at and below a path."""
        value = self.get(*path, kind=object)
        match value:
            case str():
                yield path, value
            case dict() | list():
                for part in value if isinstance(value, dict) else range(len(value)):
                    yield from self.texts(*path, part)

    def items(self, *path: str | int) -> Iterator[tuple[Path, Any]]:
        """Give the sound items of a list, with their places; null is one."""
        for index, item in enumerate(self.get(*path, kind=list) or ()):
            if (*path, index) not in self.broken:
                yield (*path, index), item

    def names(self, *path: str | int) -> tuple[str, ...]:
        """List the keys of a mapping in the order written."""
        mapping: Mapping[str, Any] = self.get(*path, kind=dict) or {}
        return tuple(mapping)

    def problem(
        self, path: Path, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Say that something is wrong at a path."""
        return self.document.problem(path, message, code=code, hint=hint, at_key=at_key)

    def warning(
        self, path: Path, message: str, *, code: str, hint: str | None = None, at_key: bool = False
    ) -> Problem:
        """Say what is worth knowing of a path, and stop nothing."""
        problem = self.problem(path, message, code=code, hint=hint, at_key=at_key)
        return replace(problem, severity=Severity.WARNING)

    def place(self, path: Path, *, at_key: bool = False) -> Place:
        """Give the place of a path, for what is found out later."""
        mark = self.document.key_mark(path) if at_key else self.document.mark(path)
        return Place(dotted(path), mark.line, mark.column)


def _has(value: object, part: str | int) -> bool:
    match value:
        case dict():
            return part in value
        case list():
            return isinstance(part, int) and part < len(value)
        case _:
            return False
