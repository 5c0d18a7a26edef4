"""A CSV file of assignments as people write it: a header of names, then one physical line an assignment.

It is read as strictly as a spec. A bare cell means what a plain scalar means there, a quoted one is text,
an empty one is an absent value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from generator.problems import Problem
from generator.reader import characters
from generator.reader.reading import PROBLEMS, limited
from generator.reader.scalars import Refusal, resolve
from generator.reader.shown import cut, shown
from generator.structs.values import Scalar, Value

BYTES = 16 * 1024 * 1024
LINES = 100_000
"""As many assignments as a sweep can have trials."""

COLUMNS = 100
CELLS = 2_000_000
"""Lines times columns: what a hundred megabytes hold once each is a value."""
LINE_BYTES = 64 * 1024

MEANINGS = 10_000
"""Cells whose meaning is remembered: columns that are sampled hardly repeat themselves."""

# Possessive throughout: a cell is read in one way or none, so no line takes more than linear time.
CELL = re.compile(r'([ \t]*+)(?:"([^"]*+(?:""[^"]*+)*+)"[ \t]*+|([^,"]*+))(,|$)')
NOT_PLAIN = re.compile(r"[][{}#&*!|>%@`']|[-?:](?:\s|$)|.*(?::(?:\s|$)|\s#|\t)")
"""How no plain scalar of YAML begins, or what none holds."""


@dataclass(frozen=True, slots=True)
class Table:
    """The contents of a file of assignments."""

    file: str
    lines: tuple[bytes, ...]
    """As they stand between line feeds: equal for files that differ in line ends only."""
    names: tuple[str, ...]
    rows: tuple[Mapping[str, Value], ...]
    """Absent values are not in the mapping."""

    @property
    def text(self) -> str:
        """The whole file, with LF line ends."""
        return b"\n".join(self.lines).decode()

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.rows) * len(self.names)

    def problem(self, row: int, name: str, message: str, *, code: str, hint: str | None = None) -> Problem:
        """Say that something is wrong with a value."""
        line = row + 2
        cells = _cells(self.lines[line - 1].decode())
        assert cells is not None
        return Problem(self.file, line, cells[self.names.index(name)].column, name, message, code, hint)


class _Cell(
    NamedTuple
):  # there are half a million in a large file, and a dataclass takes three times as long
    column: int
    quoted: str | None
    bare: str


@dataclass(slots=True)
class _Reader:
    file: str
    problems: list[Problem] = field(default_factory=list)
    meanings: dict[str, Scalar | Refusal] = field(default_factory=dict)
    """Columns repeat themselves: what a bare cell means is found once."""

    def header(self, line: bytes, rows: int) -> tuple[str, ...]:
        """Read the names of the columns, and see that there is something under them, but not too much."""
        text = self.text(1, line)
        if not rows:
            hint = "a line an assignment"
            self.report(0, 0, "must have a header and at least one assignment", hint=hint)
        if self.problems:
            return ()
        names = self.names(text)
        if len(names) > COLUMNS:
            self.report(1, 1, f"must have at most {COLUMNS} columns, got {len(names)}", hint=None)
        elif len(names) * rows > CELLS:
            message = f"must have at most {CELLS} cells, got {rows} lines of {len(names)}"
            self.report(0, 0, message, hint=None, code="too-large")
        return names

    def names(self, line: str) -> tuple[str, ...]:
        """Read the header's cells."""
        found: dict[str, None] = {}
        for cell in _cells(line) or ():
            name = cell.bare if cell.quoted is None else cell.quoted
            if not name:
                hint = "the first line names each column"
                self.report(1, cell.column, "must be the name of a column, got nothing", hint=hint)
            elif name in found:
                message = f"must not repeat a column, got {shown(name)}"
                self.report(1, cell.column, message, hint="keep one of them")
            found[name] = None
        if not found:
            self.report(1, 1, _malformed(line), hint="the first line names each column: lr,width")
        return tuple(found)

    def text(self, number: int, line: bytes) -> str:
        """Decode a line, of which no more can be said if it leaves a problem."""
        if len(line) > LINE_BYTES:
            message = f"must be at most {LINE_BYTES} bytes, got a line of {len(line)}"
            self.report(number, 1, message, hint=None, code="too-large")
            return ""
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode()) + 1
            message = f"must be UTF-8, got byte 0x{line[error.start]:02x}"
            self.report(number, column, message, hint="save the file as UTF-8", code="not-utf8")
            return ""
        for found in islice(characters.INVISIBLE.finditer(text), PROBLEMS):
            message = f"must not hold an invisible character, got {characters.described(found[0])}"
            column = found.start() + 1
            self.report(number, column, message, hint="delete it", code="invisible-character")
        return text

    def row(self, number: int, line: bytes, names: tuple[str, ...]) -> Mapping[str, Value]:
        """Read one assignment."""
        before = len(self.problems)
        text = self.text(number, line)
        if len(self.problems) > before:
            return {}
        cells = _cells(text)
        if cells is None:
            self.report(number, 1, _malformed(text), hint='text is written "so"; a quote in it is doubled')
            return {}
        if len(cells) != len(names) or not text.strip():
            message = f"must have {len(names)} cells, as the header, got {len(cells) if text.strip() else 0}"
            self.report(number, 1, message, hint="an empty cell stands for an absent value")
            return {}
        values: dict[str, Value] = {}
        for name, cell in zip(names, cells, strict=True):
            if cell.quoted is not None:
                values[name] = cell.quoted
            elif cell.bare:
                values[name] = self.value(number, name, cell)
        return MappingProxyType(values)

    def value(self, line: int, name: str, cell: _Cell) -> Scalar:
        """Give a bare cell its meaning; null where it has none."""
        meaning = self.meanings[cell.bare] if cell.bare in self.meanings else _meaning(cell.bare)
        if len(self.meanings) < MEANINGS:
            self.meanings[cell.bare] = meaning
        if isinstance(meaning, Refusal):
            self.report(line, cell.column, meaning.message, code=meaning.code, hint=meaning.hint, name=name)
            return None
        return meaning

    def report(
        self,
        line: int,
        column: int,
        message: str,
        *,
        hint: str | None,
        code: str = "list-file",
        name: str = "",
    ) -> None:
        """Note a problem."""
        self.problems.append(Problem(self.file, line, column, name, message, code, hint))


def read_assignments(content: bytes, file: str) -> Table | tuple[Problem, ...]:
    """Read a file of assignments; `file` is its name for people."""
    reader = _Reader(file)
    lines = content.count(b"\n")
    if len(content) > BYTES:
        reader.report(0, 0, f"must be at most {BYTES} bytes, got more", hint=None, code="too-large")
    elif lines > LINES + 1:
        message = f"must have at most {LINES} lines after the header, got {lines - 1}"
        reader.report(0, 0, message, hint=None, code="too-large")
    if reader.problems:
        return tuple(reader.problems)
    whole = content.removeprefix(characters.BYTE_ORDER_MARK.encode()).replace(b"\r\n", b"\n")
    return _table(reader, tuple(whole.split(b"\n")))


def _table(reader: _Reader, lines: tuple[bytes, ...]) -> Table | tuple[Problem, ...]:
    header, *rest = lines if lines[-1] else lines[:-1] or lines
    names = reader.header(header, len(rest))
    if reader.problems:
        return limited(reader.problems)
    rows: list[Mapping[str, Value]] = []
    for number, line in enumerate(rest, start=2):
        rows.append(reader.row(number, line, names))
        if len(reader.problems) > PROBLEMS:
            break
    return limited(reader.problems) or Table(reader.file, lines, names, tuple(rows))


def _cells(line: str) -> list[_Cell] | None:
    """Cut a line into its cells; None where a quote stands wrong."""
    found: list[_Cell] = []
    start = 0
    while True:
        cell = CELL.match(line, start)
        if cell is None:
            return None
        quoted = None if cell[2] is None else cell[2].replace('""', '"')
        found.append(_Cell(cell.end(1) + 1, quoted, (cell[3] or "").rstrip(" \t")))
        if not cell[4]:
            return found
        start = cell.end()


def _meaning(text: str) -> Scalar | Refusal:
    if NOT_PLAIN.match(text):
        hint = f'write "{cut(text)}" for the text'
        return Refusal(f"must be a plain YAML value or in quotes, got {cut(text)}", hint, code="list-file")
    return resolve(text)


def _malformed(line: str) -> str:
    return f"must be cells with commas between, got {shown(line)}"
