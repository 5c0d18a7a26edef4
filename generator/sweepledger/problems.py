"""Problems in inputs, as values that sort by location. Standard library only."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

RUNNER_PREFIX = "##["
"""A CI runner interprets a line that contains this as a command."""

LATIN_1_SIZE = 256
"""Below this code point, two hexadecimal digits name a character."""


class Severity(StrEnum):
    """Whether a problem stops the command."""

    ERROR = "error"
    WARNING = "warning"
    """Worth knowing before the merge; stops nothing."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A position in a document, for problems that are found after the document was read."""

    path: str
    """Dotted, such as `parameters.width.values[2]`; empty at the top."""
    line: int
    column: int


NO_POSITION = SourcePosition("", 0, 0)
"""Position of a value that no document contains."""


class TextError(ValueError):
    """Text that cannot be read, with the position of the first mistake."""

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        code: str = "",
    ) -> None:
        super().__init__(message)
        self.line = line
        """From 1; None if it is unknown."""
        self.column = column
        """From 1; None if it is unknown."""
        self.hint = hint
        self.code = code
        """Problem code; empty if the reader's caller chooses it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an input breaks, with its location and a hint."""

    file: str
    """Path relative to the repository, with forward slashes."""
    line: int
    """From 1; 0 if the problem concerns the whole file."""
    column: int
    """From 1; 0 if the problem concerns the whole file."""
    path: str
    """Dotted path in the document, such as `parameters.width.values[2]`; empty at the top."""
    message: str
    code: str
    """Stable kebab-case name, explained in docs/problems.md."""
    hint: str | None = None
    severity: Severity = Severity.ERROR

    @classmethod
    def at(
        cls,
        file: str,
        position: SourcePosition,
        message: str,
        *,
        code: str,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> "Problem":
        """Return a problem at a position in a file."""
        return cls(file, position.line, position.column, position.path, message, code, hint, severity)

    def __lt__(self, other: "Problem") -> bool:
        return self._key < other._key

    @property
    def _key(self) -> tuple[object, ...]:
        """All fields, so that unequal problems have an order; a missing hint comes before an empty hint."""
        hint = (self.hint is not None, self.hint or "")
        return (self.file, self.line, self.column, self.path, self.message, self.code, hint, self.severity)

    def __str__(self) -> str:
        location = self.file if not self.line else f"{self.file}:{self.line}:{self.column}"
        subject = f"{location}: {self.path}" if self.path else location
        message = self.message if self.severity is Severity.ERROR else f"warning: {self.message}"
        text = f"{subject}: {message} [{self.code}]"
        return f"{escape_line(text)}\n  hint: {escape_line(self.hint)}" if self.hint else escape_line(text)


MAX_PROBLEMS = 50
"""More of one file are of no use, and an untrusted file could have 10,000."""


def limit_problems(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return the first problems by location, and a problem that counts the rest."""
    first = sorted(problems)[:MAX_PROBLEMS]
    if len(problems) > MAX_PROBLEMS:
        last = first[-1]
        message = f"at least {len(problems) - MAX_PROBLEMS} more problems are not shown"
        first.append(Problem(last.file, last.line, last.column, "", message, code="too-many-problems"))
    return tuple(first)


DocumentPath = tuple[str | int, ...]
"""The keys and indices that lead to a value of a document."""

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


SourcePath = tuple[str | int, ...]
"""The path of a part in a sweep, such as `("search", "constraints", 2)`; empty for the whole."""


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Positions of the parts of a sweep in its spec, for problems that are found after the spec was read."""

    file: str
    """Path of the spec, relative to the repository."""
    positions: Mapping[SourcePath, SourcePosition] = field(default_factory=dict)
    root: SourcePath = ()
    """The part that this map is about."""

    def part(self, *path: str | int) -> "SourceMap":
        """Return the map of one part, in which paths begin at that part."""
        return SourceMap(self.file, self.positions, (*self.root, *path))

    def position(self, *path: str | int) -> SourcePosition:
        """Return the position of a part or of the nearest part around it, else NO_POSITION."""
        whole = (*self.root, *path)
        known = (whole[:end] for end in range(len(whole), -1, -1) if whole[:end] in self.positions)
        return next((self.positions[part] for part in known), NO_POSITION)

    def problem(
        self,
        message: str,
        *path: str | int,
        code: str,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """Return a problem at the position of a part."""
        return Problem.at(self.file, self.position(*path), message, code=code, hint=hint, severity=severity)


FEW_NAMES = 3
"""Names that a message lists: enough to find the others."""


def list_names(names: Sequence[str], most: int = FEW_NAMES) -> str:
    """Return the first names for a message, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def escape_line(text: str) -> str:
    """Return text on one line, without invisible characters and without commands to CI runners."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
    text = text.replace(RUNNER_PREFIX, f"{_escaped('#')}#[")
    blanks = len(text) - len(text.lstrip())
    # Runners also accept `::error::` after leading blanks.
    return f"{text[:blanks]}{_escaped(':')}{text[blanks + 1 :]}" if text.startswith("::", blanks) else text


def escape_cell(text: str) -> str:
    """Return text on one line that is harmless even if it is wrapped, wherever a line begins."""
    return escape_line(text).replace("::", f"{_escaped(':')}{_escaped(':')}")


def _escaped(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < LATIN_1_SIZE else f"\\u{ord(letter):04x}"
