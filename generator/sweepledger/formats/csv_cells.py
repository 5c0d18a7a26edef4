"""Cells of CSV files in which each row is one physical line, and the tables of such lines that this program wrote.

A cell is bare, or between double quotes, where a quote is written twice. Blanks around quotes are accepted
here; readers of files that this program wrote refuse them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sweepledger.structs.values import Value, written

# Possessive throughout: a cell is read in one way or not at all, so no line takes more than linear time.
_SIMPLE = re.compile(r'"[^"]*+"').fullmatch
_UNPADDED = re.compile(r'".*"', re.DOTALL).fullmatch
_CELL = re.compile(r'([ \t]*+)(?:"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"[ \t]*+|[^",]*+),')

ABSENT: Any = object()
"""Value of an empty cell, for which the mapping of its row has no member."""


class Cell(NamedTuple):  # a large file has half a million; a dataclass takes three times as long
    """One cell of a line."""

    column: int
    """Column of its first character that is not blank, from 1."""
    raw: str
    """Everything between the commas."""
    quoted: str | None
    """The text between the quotes; None for a bare cell."""

    @property
    def bare(self) -> str:
        """Text of a bare cell without blanks around it; empty for a quoted cell."""
        return self.raw.strip(" \t") if self.quoted is None else ""


def split_line(line: str) -> list[Cell] | None:
    """Return the cells of a line; None if a quote is misplaced."""
    cells: list[Cell] = []
    line, start = f"{line},", 0
    while start < len(line):
        match = _CELL.match(line, start)  # a search would take the time of each rest of the line
        if match is None:
            return None
        quoted = match["quoted"]
        text = None if quoted is None else quoted.replace('""', '"')
        cells.append(Cell(match.end(1) + 1, match[0][:-1], text))
        start = match.end()
    return cells


def split_written_line(line: str) -> list[str] | None:
    """Return the cells of a line that this program wrote, quotes included; None for any other line."""
    parts = line.split(",")
    if all(
        map(_SIMPLE, [part for part in parts if '"' in part])
    ):  # no comma or quote in a text: nearly all lines
        return parts
    cells = split_line(line)
    if cells is None or any(cell.quoted is not None and not _UNPADDED(cell.raw) for cell in cells):
        return None
    return [cell.raw for cell in cells]


def written_lines(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line of a table that this program wrote. Raises ValueError with the line number."""
    *lines, end = text.split("\n")
    if not lines or end:
        raise ValueError("the table must end with a line end")
    count = 0
    for number, line in enumerate(lines, start=1):
        cells = split_written_line(line)
        if cells is None or count not in {0, len(cells)}:
            raise ValueError(f"line {number}: must have {count or 'only'} cells, but got {line[:200]!r}")
        count = len(cells)
        yield cells


def read_columns(
    rows: Sequence[Sequence[str]], readers: Iterable[tuple[str, Callable[[str], Any]]]
) -> dict[str, list[Any]]:
    """Return the values of each named column of the rows below a header; each column has a function for its cells.

    Raises ValueError with the line number. Reading by rows would take three times as long.
    """
    columns: dict[str, list[Any]] = {}
    for place, (name, read) in enumerate(readers):
        cells = [row[place] for row in rows]
        values = dict.fromkeys(cells)  # most columns have few
        for cell in values:
            try:
                values[cell] = read(cell)
            except ValueError as error:
                raise ValueError(f"line {cells.index(cell) + 2}: {name}: {error}") from error
        columns[name] = list(map(values.__getitem__, cells))
    return columns


def row_mappings(columns: Mapping[str, Sequence[Any]], count: int) -> Iterator[Mapping[str, Any]]:
    """Yield a mapping from column names to values for each of `count` rows."""
    for place in range(count):
        yield {name: value for name, column in columns.items() if (value := column[place]) is not ABSENT}


def unquote(cell: str) -> str | None:
    """Return the text of a quoted cell of a written line; None for a bare cell."""
    return cell[1:-1].replace('""', '"') if cell[:1] == '"' else None


def quote(text: str) -> str:
    """Write text as a quoted cell."""
    return '"' + text.replace('"', '""') + '"'


def value_cell(value: Value) -> str:
    """Return a value as a cell: texts and lists between quotes, everything else bare, in its original spelling."""
    if isinstance(value, str):
        return quote(value)
    text = json.dumps(written(value), allow_nan=False)
    return quote(text) if isinstance(value, list | tuple) else text
