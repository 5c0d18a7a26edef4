"""One thing wrong in an input, as a value that sorts by place. Standard library only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

RUNNER_PREFIX = "##["
"""Where a CI runner finds this in a line, it takes what follows for a command."""

LATIN = 256
"""Below, two hexadecimal digits name a character."""


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
        return f"{one_line(text)}\n  hint: {one_line(self.hint)}" if self.hint else one_line(text)

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


def one_line(text: str) -> str:
    """Put text on one line that hides nothing and that no CI runner takes for a command of its own."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
    text = text.replace(RUNNER_PREFIX, f"{_escaped('#')}#[")
    blanks = len(text) - len(text.lstrip())
    # Leading blanks do not keep a runner from seeing `::error::`.
    return f"{text[:blanks]}{_escaped(':')}{text[blanks + 1 :]}" if text.startswith("::", blanks) else text


def one_cell(text: str) -> str:
    """Put text on one line that is still harmless where it is folded: any part may come to begin a line."""
    return one_line(text).replace("::", f"{_escaped(':')}{_escaped(':')}")


def _escaped(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < LATIN else f"\\u{ord(letter):04x}"
