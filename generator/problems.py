"""One thing wrong in an input, as a value that sorts by place. Standard library only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """Whether a problem stops what was asked for."""

    ERROR = "error"
    WARNING = "warning"
    """Worth knowing before the merge; the work is done all the same."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document something was written, for what is found out later than the document is read."""

    path: str
    """Dotted, such as `parameters.width.values[2]`; empty at the top."""
    line: int
    column: int


NOWHERE = Place("", 0, 0)
"""Of what no document holds."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an input breaks, where it breaks it, and the way out."""

    file: str
    """As a person would type it: relative to the repository, with forward slashes."""
    line: int
    """From 1; 0 where the problem is the file as a whole."""
    column: int
    """From 1; 0 where the problem is the file as a whole."""
    path: str
    """Dotted place in the document, such as `parameters.width.values[2]`; empty at the top."""
    message: str
    code: str
    """Stable kebab-case name, explained in docs/problems.md."""
    hint: str | None = None
    severity: Severity = Severity.ERROR

    @classmethod
    def at(
        cls,
        file: str,
        place: Place,
        message: str,
        *,
        code: str,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> "Problem":
        """Say that something is wrong at a place of a file."""
        return cls(file, place.line, place.column, place.path, message, code, hint, severity)

    def __lt__(self, other: "Problem") -> bool:
        return self._key < other._key

    @property
    def _key(self) -> tuple[str, int, int, str, str, str, str]:
        return (self.file, self.line, self.column, self.path, self.message, self.code, self.hint or "")

    def __str__(self) -> str:
        place = self.file if not self.line else f"{self.file}:{self.line}:{self.column}"
        where = f"{place}: {self.path}" if self.path else place
        said = self.message if self.severity is Severity.ERROR else f"warning: {self.message}"
        text = f"{where}: {said} [{self.code}]"
        return f"{text}\n  hint: {self.hint}" if self.hint else text

    def as_data(self) -> dict[str, Any]:
        """Give the problem as the JSON envelope shows it."""
        return {
            "code": self.code,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
            "severity": str(self.severity),
        }
