"""CSV of assignments: a header of parameter names, an assignment a line, an empty cell where one is absent.

A bare cell means what a plain scalar means in a spec, a cell in quotes is text. Writing is exact; reading is
lenient, since other tools quote and spell as they like, and says what it took for text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from generator.exchange import listing
from generator.exchange.loss import Exported, ForeignError, Imported, Loss
from generator.reader import characters, shown
from generator.reader.scalars import Refusal, resolve
from generator.structs.sweep import Sweep
from generator.structs.values import Value, canonical

# Possessive throughout: a cell is read in one way or none, so no file takes more than linear time.
CELL = re.compile(
    r'[ \t]*+(?:"(?P<quoted>[^"]*+(?:""[^"]*+)*+)"[ \t]*+|(?P<bare>[^",\r\n]*+))(?P<end>,|\r?\n|\r|\Z)'
)
LARGEST = 16 * 1024 * 1024
LINES = 100_000
"""As many assignments as a sweep can have trials."""
MOST_LINES = 1_000_000
"""With empty ones, and those within quotes."""
COLUMNS = 1_000
"""Ten times what a spec's own table may have: others write down whatever they know."""
CELLS = 2_000_000
REMEMBERED = 10_000
"""Cells whose meaning is found once; columns that are sampled hardly repeat themselves."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")

Cell = tuple[str, bool]
"""The text, and whether it stood in quotes."""


def read(content: bytes, *, name: str) -> Imported:
    """Make a list of a table's lines. Raises ForeignError."""
    if len(content) > LARGEST:
        raise ForeignError(f"must be at most {LARGEST} bytes, got {len(content)}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ForeignError("must be UTF-8", line=content[: error.start].count(b"\n") + 1) from error
    lines = _lines(text)
    header = next(lines, None)
    columns, losses = _columns(header[1]) if header else ([], ())
    reading = _Reading(columns)
    kept, repeated = listing.once(reading.row(cells, number) for number, cells in lines)
    if not reading.lines:
        raise ForeignError("must have a header and at least one line under it", line=1)
    losses = (*listing.UNSAID, *losses, *reading.losses.values(), *repeated)
    if listing.fits(kept):
        return Imported(listing.frame(name, "list", assignments=[dict(values) for values in kept]), losses)
    beside = Loss(
        f"{reading.lines} lines",
        f"too many to stand in a spec: put the file beside it as {name}.csv; there it is read strictly: "
        "what is named here must be mended in it",
    )
    return Imported(listing.frame(name, "list", file=f"{name}.csv"), (*losses, beside))


def _lines(text: str) -> Iterator[tuple[int, list[Cell]]]:
    """Cut the text into cells; a line without any character is none."""
    if (lines := text.count("\n") + text.count("\r")) > MOST_LINES:
        raise ForeignError(f"must have at most {MOST_LINES} lines, got {lines}")
    position, number, cells = 0, 1, []
    first = number
    while position < len(text):
        found = CELL.match(text, position)
        if found is None:
            raise ForeignError(
                "a quote stands in the wrong place", line=number, hint='a quote within quotes is written ""'
            )
        quoted = found["quoted"]
        cells.append((found["bare"].strip(), False) if quoted is None else (quoted.replace('""', '"'), True))
        if len(cells) > COLUMNS:
            raise ForeignError(f"must have at most {COLUMNS} columns, got more", line=number)
        number += found[0].count("\n")
        position = found.end()
        if found["end"] != ",":
            if cells != [("", False)]:
                yield first, cells
            cells, first = [], number
    if cells:
        yield first, [*cells, ("", False)]


def _columns(header: Sequence[Cell]) -> tuple[list[str | None], tuple[Loss, ...]]:
    """Read the names; a first column without one is the row number that data frames write."""
    names: list[str | None] = [text for text, _ in header]
    losses: tuple[Loss, ...] = ()
    if names[0] == "":
        names[0] = None
        losses = (Loss("the first column", "it has no name, so it was taken for row numbers and left out"),)
    for name in names:
        if name is None:
            continue
        if name and (";" in name or "\t" in name):
            raise ForeignError(f"cells must be separated by commas, got {shown(name)}", line=1)
        if names.count(name) > 1:
            raise ForeignError(f"must not repeat the column {shown(name)}", line=1)
        listing.checked({name: None}, "header")
    return names, losses


class _Reading:
    """Lines of cells to assignments; a text is looked at once a column, and told once."""

    def __init__(self, columns: Sequence[str | None]) -> None:
        self.columns = columns
        self.known: dict[tuple[str, Cell], Value] = {}
        self.losses: dict[tuple[str, str], Loss] = {}
        self.lines = 0

    def row(self, cells: Sequence[Cell], number: int) -> dict[str, Value]:
        """Give a line's values; empty cells are absent."""
        self.lines += 1
        if self.lines > LINES or self.lines * len(self.columns) > CELLS:
            raise ForeignError(f"must have at most {LINES} lines and {CELLS} cells, got more", line=number)
        if len(cells) != len(self.columns):
            raise ForeignError(
                f"must have {len(self.columns)} cells, as the header has, got {len(cells)}", line=number
            )
        return {
            column: self.value(column, cell)
            for column, cell in zip(self.columns, cells, strict=True)
            if column is not None and cell != ("", False)
        }

    def value(self, column: str, cell: Cell) -> Value:
        """Give a cell's value."""
        key = (column, cell)
        if key in self.known:
            return self.known[key]
        found = self._text(column, cell[0]) if cell[1] else self._bare(column, cell[0])
        if len(self.known) < REMEMBERED:
            self.known[key] = found
        return found

    def _text(self, column: str, text: str) -> str:
        if text and isinstance(resolve(text), int | float):
            why = "quoted, so it is text; take the quotes away where a number or a truth value is meant"
            self.losses.setdefault((column, "quoted"), Loss(f'{column}: "{text}"', why))
        return text

    def _bare(self, column: str, text: str) -> Value:
        found = resolve(text)
        if not isinstance(found, Refusal):
            return found
        why = f"taken for text, since it {found.message}"
        self.losses.setdefault((column, found.code), Loss(f"{column}: {text[:40]}", why))
        return text


def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Write the assignments so that `file:` in a spec reads the same values back."""
    used = {name for values in assignments for name in values}
    columns = [name for name in sweep.columns if name in used]
    lines = [",".join(columns)]
    lines += [
        ",".join([_cell(values[name]) if name in values else "" for name in columns])
        for values in assignments
    ]
    losses = (*listing.left_behind(sweep), *_not_read_back(assignments))
    return Exported("\n".join(lines) + "\n", losses)


def _not_read_back(assignments: Sequence[Mapping[str, Value]]) -> Iterator[Loss]:
    """Name the parameters with values that a spec's own CSV cannot say."""
    lists = {
        name for values in assignments for name, value in values.items() if isinstance(value, list | tuple)
    }
    strange = {
        name
        for name, text in set(listing.texts(assignments))
        if any(character in text for character in "\r\n") or characters.INVISIBLE.search(text)
    }
    formulas = {name for name, text in set(listing.texts(assignments)) if text.startswith(FORMULA)}
    for name in sorted(formulas):
        yield Loss(
            name, "a text that a spreadsheet takes for a formula; it stands as it is, so open it elsewhere"
        )
    for name in sorted(lists):
        yield Loss(name, "lists stand there as JSON, which is read back as text")
    for name in sorted(strange):
        yield Loss(name, "a text with a line end or an invisible character, which no spec may name in a file")


def _cell(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(canonical(value))
        case str():
            return _quoted(value)
        case _:
            return _quoted(json.dumps(canonical(value)))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
