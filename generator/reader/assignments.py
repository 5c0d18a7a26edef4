"""A CSV file of assignments as people write it: a header of names, then one physical line an assignment.

It is read as strictly as a spec. A bare cell means what a plain scalar means there, a quoted one is text,
an empty one is an absent value.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from generator.problems import Problem
from generator.reader import characters
from generator.reader.reading import limited
from generator.reader.scalars import Refusal, resolve
from generator.reader.shown import cut, shown
from generator.structs.values import Scalar, Value

BYTES = 16 * 1024 * 1024
LINES = 100_000
"""As many assignments as a sweep can have trials."""

COLUMNS = 100
PROBLEMS = 1000
"""Where reading stops: a hostile file could have millions."""

CELL = re.compile(r'([ \t]*)(?:"((?:[^"]|"")*)"[ \t]*|([^,"]*))(,|$)')
NOT_PLAIN = re.compile(r"[][{}#&*!|>%@`']|[-?:](?:\s|$)|.*(?::\s|\s#)")
"""How no plain scalar of YAML begins, or what none holds."""


@dataclass(frozen=True, slots=True)
class Table:
    """The contents of a file of assignments."""

    file: str
    text: str
    """With LF line ends: equal for files that differ in nothing else."""
    names: tuple[str, ...]
    rows: tuple[Mapping[str, Value], ...]
    """Absent values are not in the mapping."""

    def problem(self, row: int, name: str, message: str, *, code: str, hint: str | None = None) -> Problem:
        """Say that something is wrong with a value."""
        line = row + 2
        cells = _cells(self.text.split("\n")[line - 1])
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

    def names(self, line: str) -> tuple[str, ...]:
        """Read the header."""
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
        if len(found) > COLUMNS:
            self.report(1, 1, f"must have at most {COLUMNS} columns, got {len(found)}", hint=None)
        return tuple(found)

    def row(self, number: int, line: str, names: tuple[str, ...]) -> Mapping[str, Value]:
        """Read one assignment."""
        cells = _cells(line)
        if cells is None:
            self.report(number, 1, _malformed(line), hint='text is written "so"; a quote in it is doubled')
            return {}
        if len(cells) != len(names) or not line.strip():
            message = f"must have {len(names)} cells, as the header, got {len(cells) if line.strip() else 0}"
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
        if cell.bare not in self.meanings:
            self.meanings[cell.bare] = _meaning(cell.bare)
        meaning = self.meanings[cell.bare]
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
    if len(content) > BYTES:
        message = f"must be at most {BYTES} bytes, got more"
        return (Problem(file, 0, 0, "", message, code="too-large"),)
    try:
        text = characters.decode(content)
    except UnicodeDecodeError as error:
        message = f"must be UTF-8, got byte 0x{content[error.start]:02x} at offset {error.start}"
        return (Problem(file, 0, 0, "", message, code="not-utf8", hint="save the file as UTF-8"),)
    if invisible := tuple(_invisible(text, file)):
        return limited(list(invisible))
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) - 1 > LINES:
        message = f"must have at most {LINES} lines after the header, got {len(lines) - 1}"
        return (Problem(file, 0, 0, "", message, code="too-large"),)
    return _table(file, text, lines)


def _table(file: str, text: str, lines: list[str]) -> Table | tuple[Problem, ...]:
    reader = _Reader(file)
    if len(lines) < 2:  # noqa: PLR2004 - a header and a line
        reader.report(0, 0, "must have a header and at least one assignment", hint="a line an assignment")
        return tuple(reader.problems)
    names = reader.names(lines[0])
    if reader.problems:
        return limited(reader.problems)
    rows: list[Mapping[str, Value]] = []
    for number, line in enumerate(lines[1:], start=2):
        rows.append(reader.row(number, line, names))
        if len(reader.problems) > PROBLEMS:
            break
    return limited(reader.problems) or Table(file, text, names, tuple(rows))


def _invisible(text: str, file: str) -> Iterator[Problem]:
    for mark, character in characters.invisible(text):
        message = f"must not hold an invisible character, got {characters.described(character)}"
        yield Problem(file, *mark, "", message, code="invisible-character", hint="delete it")


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
