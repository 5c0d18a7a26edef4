"""The files of assignments beside a spec: found, read, and held to the rules of what stands in the spec."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath

from generator.problems import Problem
from generator.reader import Path, shown
from generator.reader.assignments import BYTES, CELLS, LINES, Table, read_assignments
from generator.reader.reading import PROBLEMS
from generator.spec.draft import Draft
from generator.spec.rules.choices import LONGEST_VALUE
from generator.spec.rules.listing import FILE_NAME
from generator.spec.rules.templates import SIGNS

SIGN_BYTES = tuple(sign.encode() for sign in SIGNS)

Beside = Callable[[str], bytes | None]
"""Reads a file in the folder of the spec; None where no regular file has this name."""


def nothing(name: str) -> bytes | None:  # noqa: ARG001 - what any other folder answers depends on it
    """Find no file, whatever its name."""
    return None


def tables(draft: Draft, beside: Beside) -> tuple[Mapping[Path, Table], tuple[Problem, ...]]:
    """Read every file of assignments that a draft names, and tell what is wrong with each."""
    reading = _Reading(draft, beside)
    blocks: list[Path] = [place for place, _ in draft.items("blocks")]
    for path in ((), *blocks):
        name = draft.get(*path, "file", kind=str)
        if name is not None and FILE_NAME.fullmatch(name) and not reading.take(path, name):
            break
    return reading.found, tuple(dict.fromkeys(reading.problems))


@dataclass(slots=True)
class _Reading:
    """Reads each file once, however many blocks name it, and no more than a sweep could use."""

    draft: Draft
    beside: Beside
    known: dict[str, Table | tuple[Problem, ...] | None] = field(default_factory=dict)
    """By name; None where there is no such file."""
    found: dict[Path, Table] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bytes_left: int = BYTES
    lines_left: int = LINES
    cells_left: int = CELLS

    def take(self, path: Path, name: str) -> bool:
        """Read the file that a search names; tell whether another may be read."""
        place = (*path, "file")
        if name not in self.known:
            self.known[name] = self.read(name)
        match self.known[name]:
            case None:
                message = f"must be a file beside the spec, but there is no {shown(self.path(name))}"
                hint = "it must be a regular file in the same folder; links are not followed"
                self.problems.append(self.draft.problem(place, message, code="list-file", hint=hint))
            case Table() as table:
                self.lines_left -= len(table.rows)
                self.cells_left -= table.size
                self.found[path] = table
            case problems:
                self.problems += problems
        if min(self.bytes_left, self.lines_left, self.cells_left) >= 0:
            return True
        message = f"must have, with the files before, at most {BYTES} bytes, {LINES} lines and {CELLS} cells"
        hint = "one sweep has no more trials; split it in two"
        self.problems.append(self.draft.problem(place, message, code="too-large", hint=hint))
        return False

    def read(self, name: str) -> Table | tuple[Problem, ...] | None:
        """Read a file by name, and hold its texts to the rules."""
        content = self.beside(name)
        if content is None:
            return None
        self.bytes_left -= len(content)
        found = read_assignments(content, self.path(name))
        if isinstance(found, Table):
            self.problems += islice(_texts(found), PROBLEMS + 1)
        return found

    def path(self, name: str) -> str:
        """Give a file's name as a person would type it."""
        return str(PurePosixPath(self.draft.document.file).with_name(name))


def _texts(table: Table) -> Iterator[Problem]:
    """Hold the texts of a table to what the rules ask of those in a spec."""
    if max(map(len, table.lines)) <= LONGEST_VALUE and not any(_signs_in(line) for line in table.lines):
        return  # nearly always, and in a hundredth of the time
    for row, values in enumerate(table.rows):
        for name, text in values.items():
            if not isinstance(text, str):
                continue
            if len(text) > LONGEST_VALUE:
                message = f"must be at most {LONGEST_VALUE} characters, got {len(text)}"
                hint = "put it in a file of the code and sweep over the file's name"
                yield table.problem(row, name, message, code="value-too-long", hint=hint)
            if sign := _sign(text):
                message = f"must not hold {sign!r}, got {shown(text)}"
                hint = f"{SIGNS[sign]} wherever a manifest has it"
                yield table.problem(row, name, message, code="template-syntax", hint=hint)


def _signs_in(line: bytes) -> bool:
    return any(sign in line for sign in SIGN_BYTES)


def _sign(text: str) -> str | None:
    return next((sign for sign in SIGNS if sign in text), None)
