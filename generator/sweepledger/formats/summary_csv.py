"""`summary.csv`, one physical line per trial, and `replicates.csv`, one line per configuration.

Numbers, booleans and null are bare, whole numbers without a point (1.0 is written `1`). Text values are in
double quotes. A quoted cell that opens with `[`, `{` or `"` is JSON: lists, and text that would be ambiguous
otherwise. Text that a spreadsheet would take for a formula has a leading `'`, which the reader removes.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any

from sweepledger.formats import csv_cells
from sweepledger.formats.csv_cells import ABSENT
from sweepledger.formats.json import load as load_json
from sweepledger.formats.record_json import LARGEST_NUMBER
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal, pareto_indices
from sweepledger.structs.record import BATCH_NAME, TIME, TRIAL_ID, Status, SummaryRow, TrialResult
from sweepledger.structs.values import Value, canonical, canonical_json, written

SUMMARY_FILE = "summary.csv"

PARAMETER_PREFIX = "params."
METRIC_PREFIX = "metrics."

MAX_METRIC_COLUMNS = 256
"""Limit for trials that invent names: the summary has the most common metrics, the records have all."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_OF_RECORDS = re.compile(rf"{TRIAL_ID}\n{BATCH_NAME}\n(?:{TIME})?\n(?:{TIME})?", re.ASCII).fullmatch
"""Checks trial, batch and both times at once: whoever reads them makes paths and numbers from them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


PREFIXES = {"assignment": PARAMETER_PREFIX, "metrics": METRIC_PREFIX}
"""Members of a row that have a column for each name."""
_COLUMNS = {field.name: field for field in fields(SummaryRow)}
_OPTIONAL = tuple(name for name, field in _COLUMNS.items() if field.default is None)


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """A parsed summary."""

    parameters: tuple[str, ...]
    metrics: tuple[str, ...]
    """The objective first, if any trial reported it."""
    rows: tuple[SummaryRow, ...]


def write(outcomes: Sequence[TrialResult], *, objective: str) -> str:
    """Return the text of the summary, with rows in the given order."""
    rows = [*map(SummaryRow.of, outcomes)]
    reported = Counter(name for outcome in outcomes if outcome.record for name in outcome.record.metrics)
    reported.pop(objective, None)
    commonest = sorted(reported, key=lambda name: (-reported[name], name))[: MAX_METRIC_COLUMNS - 1]
    metrics = (objective, *sorted(commonest))
    return _table(_columns(rows, parameter_names(outcomes), metrics, _optional_columns(rows)))


def _optional_columns(rows: Iterable[SummaryRow]) -> tuple[str, ...]:
    return tuple(name for name in _OPTIONAL if any(getattr(row, name) is not None for row in rows))


def _columns(
    rows: Sequence[SummaryRow], parameters: Iterable[str], metrics: Iterable[str], optional: Container[str]
) -> dict[str, list[Any]]:
    named = {"assignment": parameters, "metrics": metrics}
    columns: dict[str, list[Any]] = {}
    for column in _COLUMNS:
        if column in named:
            mappings = [getattr(row, column) for row in rows]
            columns |= {
                PREFIXES[column] + name: [mapping.get(name, ABSENT) for mapping in mappings]
                for name in named[column]
            }
        elif column in optional or column not in _OPTIONAL:
            columns[column] = [getattr(row, column) for row in rows]
    return columns


def _table(columns: Mapping[str, Iterable[Any]]) -> str:
    cells: list[list[str]] = []
    for name, values in columns.items():
        write = value_cell if name.startswith(PARAMETER_PREFIX) else _cell
        cells.append([text_cell(name), *("" if value is ABSENT else write(value) for value in values)])
    return "".join(f"{','.join(line)}\n" for line in zip(*cells, strict=True))


def parameter_names(outcomes: Iterable[TrialResult]) -> tuple[str, ...]:
    """Return the parameters of all trials in the order of their first appearance."""
    return tuple(dict.fromkeys(name for outcome in outcomes for name in outcome.assignment))


def _cell(value: str | float | None) -> str:
    """Return a cell, empty for None and numbers that are not finite; other numbers as the shortest equal text."""
    match value:
        case bool():
            return canonical_json(value)
        case int() | float():
            return repr(canonical(value)) if math.isfinite(value) else ""
        case _:
            return text_cell(value)


def text_cell(text: str | None) -> str:
    """Return text as a cell, bare if all readers agree on it; empty for None."""
    if text is None:
        return ""
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def value_cell(value: Value) -> str:
    """Return a hyperparameter as a cell from which its type can be read back."""
    match value:
        case str() if value.isprintable() and not value.startswith(("[", "{", '"')):
            return _quoted(value)
        case str() | list() | tuple():
            return csv_cells.quote(json.dumps(written(value), allow_nan=False, separators=(",", ":")))
        case _:
            return csv_cells.value_cell(value)


def _quoted(text: str) -> str:
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        text = "'" + text
    return csv_cells.quote(text)


def read(text: str) -> SummaryTable:
    """Return a parsed summary. Raises ValueError with the line number if `write` cannot have written it."""
    lines = csv_cells.written_lines(text)
    head = next(lines)
    names = [_text(cell) or "" for cell in head]
    parameters, metrics = (
        tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))
        for prefix in (PARAMETER_PREFIX, METRIC_PREFIX)
    )
    if names != [*_columns((), parameters, metrics, names)] or len(set(names)) < len(names):
        raise _not_a_summary(head)
    usual = {True: _value, False: _metric}
    readers = [(name, _READERS.get(name, usual[name.startswith(PARAMETER_PREFIX)])) for name in names]
    values = csv_cells.read_columns([*lines], readers)
    return SummaryTable(parameters, metrics, tuple(_rows(values, parameters, metrics)))


def as_columns(table: SummaryTable, rows: Sequence[SummaryRow]) -> dict[str, list[Any]]:
    """Return rows of a summary as columns by name; an empty cell is None."""
    columns = _columns(rows, table.parameters, table.metrics, _optional_columns(table.rows))
    columns["status"] = [str(row.status) for row in rows]
    return {
        name: [None if value is ABSENT else value for value in values] for name, values in columns.items()
    }


def without_new_columns(text: str, recorded: bytes) -> str:
    """Return a summary without the optional columns that the recorded summary, from an earlier version, lacks."""
    head, *rows = csv_cells.written_lines(text)
    known = csv_cells.split_written_line(recorded.partition(b"\n")[0].decode(errors="replace")) or ()
    kept = [place for place, name in enumerate(head) if name in known or name not in _OPTIONAL]
    return "".join(f"{','.join(cells[place] for place in kept)}\n" for cells in (head, *rows))


def _not_a_summary(head: Iterable[str]) -> ValueError:
    return ValueError(f"line 1: not the columns of a summary: {','.join(head)[:200]!r}")


def _rows(
    values: Mapping[str, Sequence[Any]], parameters: Sequence[str], metrics: Sequence[str]
) -> Iterator[SummaryRow]:
    count, named = len(values["trial"]), {"assignment": parameters, "metrics": metrics}
    members = (
        csv_cells.row_mappings({name: values[PREFIXES[column] + name] for name in named[column]}, count)
        if column in named
        else values.get(column, repeat(None))
        for column in _COLUMNS
    )
    for number, row in enumerate(map(SummaryRow, *members), start=2):
        found = row.trial, row.batch, row.started, row.finished
        if not _OF_RECORDS("\n".join(text or "" for text in found)):
            raise ValueError(f"line {number}: must have a trial, its batch and its times, but got {found}")
        yield row


def _text(cell: str) -> str | None:
    quoted = csv_cells.unquote(cell)
    return (cell or None) if quoted is None else quoted.removeprefix("'")


def _required(cell: str) -> str:
    text = _text(cell)
    if text is None:
        raise ValueError("must not be empty")
    return text


def _truth(cell: str) -> bool | None:
    text = _text(cell)
    if text not in {None, "true", "false"}:
        raise ValueError(f"must be true, false or empty, but got {text!r}")
    return None if text is None else text == "true"


def _number(cell: str) -> float | None:
    text = _text(cell)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"must be a number, but got {text!r}")
    return float(text)


def _metric(cell: str) -> Any:
    number = _number(cell)
    if abs(number or 0.0) > LARGEST_NUMBER:
        raise ValueError(f"must be at most {LARGEST_NUMBER:g}")
    return ABSENT if number is None else number


def _value(cell: str) -> Any:
    quoted = csv_cells.unquote(cell)
    if quoted is not None:
        text = quoted.removeprefix("'")
        return load_json(text) if text.startswith(("[", "{", '"')) else text
    if not cell:
        return ABSENT
    if not _NUMBER.fullmatch(cell) and cell not in {"true", "false", "null"}:
        raise ValueError(f"must be a value, but got {cell!r}")
    return load_json(cell)


_READERS_OF_TYPES: Mapping[Any, Callable[[str], Any]] = {
    str: _required,
    str | None: _text,
    int: lambda cell: int(_required(cell)),
    int | None: lambda cell: int(_required(cell)) if cell else None,
    float | None: _number,
    bool | None: _truth,
    Status: lambda cell: Status(_required(cell)),
}
_READERS = {name: _READERS_OF_TYPES[field.type] for name, field in _COLUMNS.items() if name not in PREFIXES}

REPLICATES_FILE = "replicates.csv"


REPLICATES_COLUMNS = ("in_spec", "count", "mean", "standard_deviation", "low", "high", "trials")
"""After the parameters: the number of results that the statistics use, the ends of the 95 % interval of the mean, and
the ids of the trials by replicate.
"""


def write_replicates(assignments: Sequence[Mapping[str, Value]], statistics: Iterable[Sequence[Any]]) -> str:
    """Return the text of the table: a line per configuration, with its statistics in the order of the columns."""
    names = dict.fromkeys(name for assignment in assignments for name in assignment)
    columns = {
        PARAMETER_PREFIX + name: [assignment.get(name, ABSENT) for assignment in assignments]
        for name in names
    }
    return _table(columns | dict(zip(REPLICATES_COLUMNS, zip(*statistics, strict=True), strict=True)))


@dataclass(frozen=True, slots=True)
class SummaryExcerpt:
    """Counts of a summary, and its best trial, for reading thousands of versions of it."""

    trials: int
    ok: int
    trial: str | None
    """Id of the best trial, the smaller id of equal ones; None if no trial can be ranked."""
    value: float | None
    seconds: float
    """Sum of the durations of the attempts that count."""
    front: int
    """Size of the Pareto front, for several metrics."""


def read_summary_excerpt(text: str, lock: BatchLock | None) -> SummaryExcerpt:
    """Return counts, and the best trial of the newest batch's program. Raises ValueError.

    It reads five columns, in a tenth of the time that reading all takes.
    """
    names, *rows = csv_cells.written_lines(text)
    if not {"trial", "status", "program", "seconds"}.issubset(names):
        raise _not_a_summary(names)
    trial, status, program, took = map(names.index, ("trial", "status", "program", "seconds"))
    spent = sum(float(cells[took]) for cells in rows if cells[took])
    successes = [cells for cells in rows if cells[status] == Status.OK]
    columns: list[int] = []  # of the metrics, the objective first; empty without the objective
    if lock and text_cell(METRIC_PREFIX + lock.metric.name) in names:
        metrics = [text_cell(METRIC_PREFIX + metric.name) for metric in lock.metrics]
        columns = [names.index(name) for name in metrics if name in names]
    newest = lock and lock.program.digest
    ranked = [
        (tuple(float(cells[column]) for column in columns if cells[column]), cells[trial])
        for cells in successes
        if columns and cells[columns[0]] and cells[program] == newest
    ]
    sign = -1.0 if lock and lock.metric.goal is Goal.MAXIMIZE else 1.0
    value, best = min(((sign * values[0], trial_id) for values, trial_id in ranked), default=(None, None))
    front = 0
    if lock and lock.other_metrics:
        complete = [values for values, _ in ranked if len(values) == len(lock.metrics)]
        front = len(pareto_indices(complete, lock.metrics))
    return SummaryExcerpt(
        len(rows), len(successes), best, None if value is None else sign * value, spent, front
    )
