"""Cells of CSV files in which each row is one physical line.

A cell is bare, or between double quotes, where a quote is written twice. Blanks around quotes are accepted
here; readers of files that this program wrote refuse them.
"""

import re
from typing import NamedTuple

# Possessive throughout: a cell is read in one way or not at all, so no line takes more than linear time.
_SIMPLE = re.compile(r'"[^"]*+"').fullmatch
_UNPADDED = re.compile(r'".*"', re.DOTALL).fullmatch
_QUOTED = re.compile(r'[ \t]*+"([^"]*+(?:""[^"]*+)*+)"([ \t]*+)(?:,|\Z)')


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
    parts = line.split(",")
    start = place = 0
    while place < len(parts):
        part = parts[place]
        if '"' not in part:
            cells.append(Cell(start + len(part) - len(part.lstrip(" \t")) + 1, part, None))
            start += len(part) + 1
            place += 1
            continue
        cell = _QUOTED.match(line, start)  # with the commas between its quotes
        if cell is None:
            return None
        raw = line[start : cell.end(2)]
        cells.append(Cell(cell.start(1), raw, cell[1].replace('""', '"')))
        start += len(raw) + 1
        place += 1 + raw.count(",")
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


def unquote(cell: str) -> str | None:
    """Return the text of a quoted cell of a written line; None for a bare cell."""
    return cell[1:-1].replace('""', '"') if cell[:1] == '"' else None


def quote(text: str) -> str:
    """Write text as a quoted cell."""
    return '"' + text.replace('"', '""') + '"'
