"""CSV of configurations: a header of parameter names, one configuration per line, empty cells for absent parameters.

An unquoted cell has the same meaning as a plain scalar in a spec; a cell in quotes is text. Writing is exact.
Reading is lenient, because other tools quote and spell differently, and reports which cells it reads as text.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from sweepledger.exchange import configuration_list, trials
from sweepledger.exchange.configuration_list import MAX_FILE_BYTES
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss
from sweepledger.formats import csv_cells
from sweepledger.formats.evidence_jsonl import MAX_EVIDENCE_BYTES, ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError, decoded
from sweepledger.reader import characters, safe_repr
from sweepledger.reader.scalars import Refusal, resolve_scalar
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

# Possessive quantifiers throughout: a row matches in at most one way, so that every file takes linear time.
ROW = re.compile(r'(?P<cells>(?:[^"\r\n]++|"[^"]*+")*+)(?:\r?\n|\r|\Z)')
MAX_LINES = 1_000_000
"""Includes empty lines, and lines within quotes."""
MAX_COLUMNS = 1_000
"""Ten times the limit of a spec's own file: other tools write many more columns."""
MAX_CELLS = 2_000_000
MAX_CACHED_CELLS = 10_000
"""Cells whose value is cached: columns of sampled values rarely repeat."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")

Cell = tuple[str, bool]
"""The text, and whether it was in quotes."""


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with the lines of a table as its list. Raises ForeignError."""
    lines = _lines(decoded(content, MAX_FILE_BYTES))
    header = next(lines, None)
    columns, losses = _columns(header[1]) if header else ([], ())
    doubts: dict[tuple[str, str], Loss] = {}
    rows = [*_rows(columns, lines, doubts)]
    if not rows:
        raise ForeignError("must have a header and at least one line under it", line=1)
    kept, repeated = configuration_list.distinct_configurations(rows)
    losses = (*losses, *doubts.values(), *repeated)
    if configuration_list.fits_in_spec(kept):
        return configuration_list.imported_list(name, kept, losses)
    beside = Loss(
        f"{len(rows)} lines",
        f"too many for a spec: copy the file next to it as {name}.csv; it is read strictly there: "
        "fix there what is listed here",
    )
    spec = configuration_list.spec_frame(name, "list", assignments=f"{name}.csv")
    return Imported(spec, (*configuration_list.IMPORT_LOSSES, *losses, beside))


def _lines(text: str) -> Iterator[tuple[int, list[Cell]]]:
    """Yield the number and cells of each line that is not empty."""
    if (lines := text.count("\n") + text.count("\r")) > MAX_LINES:
        raise ForeignError(f"must have at most {MAX_LINES} lines, got {lines}")
    position, number = 0, 1
    while position < len(text):
        row = ROW.match(text, position)
        cells = None if row is None else csv_cells.split_line(row["cells"])
        if row is None or cells is None:
            hint = 'a quote within quotes is written ""'
            raise ForeignError("a quote is in the wrong position", line=number, hint=hint)
        if len(cells) > MAX_COLUMNS:
            raise ForeignError(f"must have at most {MAX_COLUMNS} columns, got more", line=number)
        if row["cells"].strip():
            yield (
                number,
                [(cell.raw.strip(), False) if cell.quoted is None else (cell.quoted, True) for cell in cells],
            )
        number += row[0].count("\n")
        position = row.end()


def _columns(header: Sequence[Cell]) -> tuple[list[str | None], tuple[Loss, ...]]:
    """Return the names of columns; a first column without a name has the row numbers of a data frame."""
    names: list[str | None] = [text for text, _ in header]
    losses: tuple[Loss, ...] = ()
    if names[0] == "":
        names[0] = None
        losses = (Loss("the first column", "it has no name, so it was read as row numbers and left out"),)
    for name in names:
        if name is None:
            continue
        if name and (";" in name or "\t" in name):
            raise ForeignError(f"cells must be separated by commas, got {safe_repr(name)}", line=1)
        if names.count(name) > 1:
            raise ForeignError(f"must not repeat the column {safe_repr(name)}", line=1)
        configuration_list.checked_configuration({name: None}, "header")
    return names, losses


def _rows(
    columns: Sequence[str | None],
    lines: Iterable[tuple[int, list[Cell]]],
    losses: dict[tuple[str, str], Loss],
) -> Iterator[dict[str, Value]]:
    """Yield each line's values, without empty cells; a problem is reported as a loss once per column."""
    for count, (number, cells) in enumerate(lines, start=1):
        if count > MAX_TRIALS or count * len(columns) > MAX_CELLS:
            message = f"must have at most {MAX_TRIALS} lines and {MAX_CELLS} cells, got more"
            raise ForeignError(message, line=number)
        if len(cells) != len(columns):
            message = f"must have {len(columns)} cells, as the header has, got {len(cells)}"
            raise ForeignError(message, line=number)
        row: dict[str, Value] = {}
        for column, (text, is_quoted) in zip(columns, cells, strict=True):
            if column is not None and (text or is_quoted):
                row[column], problem, why = _meaning(text, is_quoted=is_quoted)
                if problem:
                    shown = f'"{text}"' if is_quoted else text[:40]
                    losses.setdefault((column, problem), Loss(f"{column}: {shown}", why))
        yield row


@lru_cache(MAX_CACHED_CELLS)
def _meaning(text: str, *, is_quoted: bool) -> tuple[Value, str, str]:
    """Return a cell's value, and its problem and the reason for a loss; both empty if there is none."""
    value = resolve_scalar(text)
    if isinstance(value, Refusal) and not is_quoted:
        return text, value.code, f"read as text, because it {value.message}"
    if is_quoted and text and isinstance(value, int | float):
        why = "quoted, so it is text; delete the quotes if a number or a boolean is meant"
        return text, "quoted", why
    return text if is_quoted or isinstance(value, Refusal) else value, "", ""


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Write the assignments so that `assignments:` in a spec reads the same values back."""
    used = {name for values in assignments for name in values}
    columns = [name for name in sweep.columns if name in used]
    lines = [",".join(columns)]
    lines += [
        ",".join([csv_cells.value_cell(values[name]) if name in values else "" for name in columns])
        for values in assignments
    ]
    texts = set(configuration_list.text_values(assignments))
    not_read_back = {
        "a text that a spreadsheet reads as a formula; written unchanged, so do not open the file there": {
            name for name, text in texts if text.startswith(FORMULA)
        },
        "lists are written as JSON, which is read back as text": {
            name for row in assignments for name, value in row.items() if isinstance(value, list | tuple)
        },
        "a text with a line end or an invisible character, which a spec cannot read from a file": {
            name
            for name, text in texts
            if any(character in text for character in "\r\n") or characters.INVISIBLE.search(text)
        },
    }
    losses = (Loss(name, why) for why, names in not_read_back.items() for name in sorted(names))
    return Exported("\n".join(lines) + "\n", (*configuration_list.export_losses(sweep), *losses))


def read_trials(content: bytes, sweep: Sweep, _study: str | None) -> tuple[None, Iterator[ForeignTrial]]:
    """Return the finished trials of a table with a header. Raises ForeignError."""

    def finished() -> Iterator[ForeignTrial]:
        lines = _lines(decoded(content, MAX_EVIDENCE_BYTES))
        names = [text for text, _ in next(lines, (1, []))[1]]
        for number, cells in lines:
            if len(cells) != len(names):
                raise ForeignError("must have as many cells as the header", line=number)
            values = (trials.Quoted(text) if is_quoted else text for text, is_quoted in cells)
            yield from trials.finished_trials(dict(zip(names, values, strict=True)), sweep, line=number)

    return None, finished()


FORMAT = ForeignFormat(
    "csv",
    "a header with names, and a configuration on each line",
    read=read,
    write=write,
    trials=read_trials,
    suffixes=(".csv",),
)
