"""`summary.csv`, one physical line per trial, and `replicates.csv`, one line per configuration.

Numbers, booleans and null are bare, whole numbers without a point (1.0 is written `1`). Text values are in
double quotes. A quoted cell that opens with `[`, `{` or `"` is JSON: lists, and text that would be ambiguous
otherwise. Text that a spreadsheet would take for a formula has a leading `'`, which the reader removes.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat, starmap
from typing import Any

from sweepledger.formats import csv_cells
from sweepledger.formats.csv_cells import split_raw
from sweepledger.formats.json import load as load_json
from sweepledger.formats.record_json import LARGEST_NUMBER
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal, pareto_indices
from sweepledger.structs.record import BATCH_NAME, TIME, TRIAL_ID, Status, TrialResult
from sweepledger.structs.values import Value, canonical, canonical_json, written

SUMMARY_FILE = "summary.csv"

PARENT_COLUMN = "parent"
"""A column after these of a search whose trials have parent trials."""
ERROR_COLUMN = "error"
"""The last column if a record says why its trial failed."""
PARAMETER_PREFIX = "params."
METRIC_PREFIX = "metrics."

MAX_METRIC_COLUMNS = 256
"""Limit for trials that invent names: the summary has the most common metrics, the records have all."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_OF_RECORDS = re.compile(rf"{TRIAL_ID}\n{BATCH_NAME}\n(?:{TIME})?\n(?:{TIME})?", re.ASCII).fullmatch
"""Checks trial, batch and both times at once: whoever reads them makes paths and numbers from them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A line of the summary; None stands for values of a missing record."""

    trial: str
    batch: str
    index: int
    replicate: int
    in_spec: bool | None
    """Whether the spec contained the trial at the time of writing; None if that was unknown."""
    status: Status
    reason: str | None
    attempts: int
    program: str
    assignment: Mapping[str, Value]
    """Absent parameters are not in the mapping."""
    metrics: Mapping[str, float]
    """Finite ones only, in the order of the columns."""
    seconds: float | None
    node_class: str | None
    """The pool on whose nodes it ran."""
    seed: int | None
    code: str
    ran: str | None
    """An image with its digest, or `process`."""
    data: str | None
    started: str | None
    finished: str | None
    parent: str | None = None
    """Id of the parent trial."""
    error: str | None = None
    """What was said of its failure, such as the last line of a traceback."""

    @classmethod
    def of(cls, outcome: TrialResult) -> "SummaryRow":
        """Return the line that the summary will have of a result."""
        record = outcome.record
        metrics = record.metrics.items() if record else ()
        values: dict[str, Any] = {name: getattr(outcome, name) for name in _OF_RESULT}
        values |= {name: getattr(record, name, None) for name in _OF_RECORD}
        return cls(**values, metrics={name: value for name, value in metrics if value is not None})

    def metric(self, name: str) -> float | None:
        """Return a metric for ranking; None unless the trial is ok and reported it."""
        return self.metrics.get(name) if self.status is Status.OK else None


_FIELDS = tuple(field.name for field in fields(SummaryRow))
FIRST_COLUMNS = _FIELDS[: _FIELDS.index("assignment")]
LAST_COLUMNS = _FIELDS[_FIELDS.index("metrics") + 1 : _FIELDS.index(PARENT_COLUMN)]
_OF_RECORD = ("seconds", "seed", "ran", "started", "finished")
_OF_RESULT = tuple(name for name in _FIELDS if name not in {*_OF_RECORD, "metrics"})


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """A parsed summary."""

    parameters: tuple[str, ...]
    metrics: tuple[str, ...]
    """The objective first, if any trial reported it."""
    rows: tuple[SummaryRow, ...]


def write(outcomes: Sequence[TrialResult], *, objective: str) -> str:
    """Return the text of the summary, with rows in the given order."""
    parameters = parameter_names(outcomes)
    metrics = _metric_names(outcomes, objective)
    has_parents = any(outcome.parent for outcome in outcomes)
    has_errors = any(outcome.error for outcome in outcomes)
    lines = [
        ",".join(
            [
                *FIRST_COLUMNS,
                *(text_cell(PARAMETER_PREFIX + name) for name in parameters),
                *(text_cell(METRIC_PREFIX + name) for name in metrics),
                *LAST_COLUMNS,
                *([PARENT_COLUMN] if has_parents else []),
                *([ERROR_COLUMN] if has_errors else []),
            ]
        )
    ]
    for outcome in outcomes:
        parent = [text_cell(outcome.parent)] if has_parents else []
        error = [text_cell(outcome.error)] if has_errors else []
        lines.append(",".join([*_cells(SummaryRow.of(outcome), parameters, metrics), *parent, *error]))
    return "".join(f"{line}\n" for line in lines)


def parameter_names(outcomes: Iterable[TrialResult]) -> tuple[str, ...]:
    """Return the parameters of all trials in the order of their first appearance."""
    return tuple(dict.fromkeys(name for outcome in outcomes for name in outcome.assignment))


def _metric_names(outcomes: Iterable[TrialResult], objective: str) -> tuple[str, ...]:
    """Return the metrics of the records that count: the objective first, then the others sorted."""
    reported = Counter(
        name for outcome in outcomes if outcome.record is not None for name in outcome.record.metrics
    )
    reported.pop(objective, None)
    commonest = sorted(reported, key=lambda name: (-reported[name], name))[: MAX_METRIC_COLUMNS - 1]
    return (objective, *sorted(commonest))


def _cells(row: SummaryRow, parameters: Sequence[str], metrics: Sequence[str]) -> Iterator[str]:
    yield from (_cell(getattr(row, name)) for name in FIRST_COLUMNS)
    for name in parameters:
        yield value_cell(row.assignment[name]) if name in row.assignment else ""
    yield from (number_cell(row.metrics.get(name)) for name in metrics)
    yield from (_cell(getattr(row, name)) for name in LAST_COLUMNS)


def _cell(value: str | float | None) -> str:
    match value:
        case None | str():
            return text_cell(value)
        case bool():
            return canonical_json(value)
        case _:
            return number_cell(value)


def number_cell(number: float | None) -> str:
    """Return the shortest text that reads back as an equal number; empty for None and not finite numbers."""
    return "" if number is None or not math.isfinite(number) else repr(canonical(number))


def text_cell(text: str | None) -> str:
    """Return text as a cell, bare if all readers agree on it; empty for None."""
    if text is None:
        return ""
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def value_cell(value: Value) -> str:
    """Return a hyperparameter as a cell from which its type can be read back."""
    match value:
        case None | bool():
            return canonical_json(value)
        case int() | float():
            return repr(written(value))
        case str() if value.isprintable() and not value.startswith(("[", "{", '"')):
            return _quoted(value)
        case _:
            return csv_cells.quote(json.dumps(written(value), allow_nan=False, separators=(",", ":")))


def _quoted(text: str) -> str:
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        text = "'" + text
    return csv_cells.quote(text)


def read(text: str) -> SummaryTable:
    """Return a parsed summary. Raises ValueError with the line number if `write` cannot have written it."""
    head, *body = text.split("\n")
    if not body or body.pop() != "":
        raise ValueError("the summary must end with a line end")
    names = [_text(cell) or "" for cell in _split(head, 1)]
    metrics = tuple(_named(names, METRIC_PREFIX))
    parameters = tuple(_named(names, PARAMETER_PREFIX))
    prefixed = [PARAMETER_PREFIX + name for name in parameters] + [METRIC_PREFIX + name for name in metrics]
    columns = [*FIRST_COLUMNS, *prefixed, *LAST_COLUMNS]
    optional = [name for name in (PARENT_COLUMN, ERROR_COLUMN) if name in names[len(columns) :]]
    if names != [*columns, *optional] or len(set(names)) < len(names):
        raise ValueError(f"line 1: not the columns of a summary: {head[:200]!r}")
    lines = [_split(line, number) for number, line in enumerate(body, start=2)]
    for number, cells in enumerate(lines, start=2):
        if len(cells) != len(names):
            raise ValueError(f"line {number}: must have {len(names)} cells, but got {len(cells)}")
    columns_of = dict(zip(names, zip(*lines, strict=True), strict=True)) if lines else {}
    return SummaryTable(parameters, metrics, tuple(_rows(columns_of, parameters, metrics)))


def as_columns(table: SummaryTable, rows: Sequence[SummaryRow]) -> dict[str, list[Any]]:
    """Return some rows of a summary as its columns, by name; None for an empty cell."""
    return {
        **{name: [getattr(row, name) for row in rows] for name in FIRST_COLUMNS},
        "status": [str(row.status) for row in rows],
        **{PARAMETER_PREFIX + name: [row.assignment.get(name) for row in rows] for name in table.parameters},
        **{METRIC_PREFIX + name: [row.metrics.get(name) for row in rows] for name in table.metrics},
        **{name: [getattr(row, name) for row in rows] for name in LAST_COLUMNS},
        **({ERROR_COLUMN: [row.error for row in rows]} if any(row.error for row in table.rows) else {}),
    }


def _split(line: str, number: int) -> list[str]:
    cells = csv_cells.split_written_line(line)
    if cells is None:
        raise ValueError(f"line {number}: not a line of a summary: {line[:200]!r}")
    return cells


def _named(names: Iterable[str], prefix: str) -> Iterator[str]:
    return (name.removeprefix(prefix) for name in names if name.startswith(prefix))


def _rows(
    cells: Mapping[str, Sequence[str]], parameters: Sequence[str], metrics: Sequence[str]
) -> Iterator[SummaryRow]:
    """Yield the rows. Columns are converted one by one, which takes a third of the time of row by row."""
    if not cells:
        return
    values = [_column(cells, PARAMETER_PREFIX + name, _value) for name in parameters]
    numbers = [_column(cells, METRIC_PREFIX + name, _metric) for name in metrics]
    rows = zip(
        *(_column(cells, name, _READERS[name]) for name in FIRST_COLUMNS),
        _mappings(parameters, values) if values else ({} for _ in cells["trial"]),
        _mappings(metrics, numbers),
        *(_column(cells, name, _READERS[name]) for name in LAST_COLUMNS),
        *(
            _column(cells, name, _READERS[name]) if name in cells else repeat(None)
            for name in (PARENT_COLUMN, ERROR_COLUMN)
        ),
        strict=False,
    )
    for number, row in enumerate(starmap(SummaryRow, rows), start=2):
        found = row.trial, row.batch, row.started, row.finished
        if not _OF_RECORDS("\n".join(text or "" for text in found)):
            raise ValueError(f"line {number}: must have a trial, its batch and its times, but got {found}")
        yield row


def _column(cells: Mapping[str, Sequence[str]], name: str, convert: Callable[[str], Any]) -> list[Any]:
    values = dict.fromkeys(cells[name])  # most columns have few
    for cell in values:
        try:
            values[cell] = convert(cell)
        except ValueError as error:
            raise ValueError(f"line {cells[name].index(cell) + 2}: {name}: {error}") from error
    return list(map(values.__getitem__, cells[name]))


def _mappings(names: Sequence[str], columns: Iterable[Sequence[Any]]) -> Iterator[Mapping[str, Any]]:
    for values in zip(*columns, strict=True):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not _ABSENT}


def _text(cell: str) -> str | None:
    quoted = csv_cells.unquote(cell)
    return (cell or None) if quoted is None else quoted.removeprefix("'")


def _required(cell: str) -> str:
    text = _text(cell)
    if text is None:
        raise ValueError("must not be empty")
    return text


def _count(cell: str) -> int:
    return int(_required(cell))


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
    if number is not None and abs(number) > LARGEST_NUMBER:
        raise ValueError(f"must be at most {LARGEST_NUMBER:g}")
    return _ABSENT if number is None else number


def _value(cell: str) -> Any:
    quoted = csv_cells.unquote(cell)
    if quoted is not None:
        text = quoted.removeprefix("'")
        return load_json(text) if text.startswith(("[", "{", '"')) else text
    if not cell:
        return _ABSENT
    if cell in _WORDS:
        return _WORDS[cell]
    if not _NUMBER.fullmatch(cell):
        raise ValueError(f"must be a value, but got {cell!r}")
    return int(cell) if _INTEGER.fullmatch(cell) else float(cell)


_ABSENT = object()
"""Value of a cell of which the row's mapping has no member."""

_READERS_OF_TYPES: Mapping[Any, Callable[[str], Any]] = {
    str: _required,
    str | None: _text,
    int: _count,
    int | None: lambda cell: _count(cell) if cell else None,
    float | None: _number,
    bool | None: _truth,
    Status: lambda cell: Status(_required(cell)),
}
_READERS = {
    field.name: _READERS_OF_TYPES[field.type]
    for field in fields(SummaryRow)
    if field.name not in {"assignment", "metrics"}
}

REPLICATES_FILE = "replicates.csv"

REPLICATES_COLUMNS = ("in_spec", "count", "mean", "standard_deviation", "low", "high", "trials")
"""After the parameters; `low` and `high` are the ends of the 95 % interval of the mean."""


@dataclass(frozen=True, slots=True)
class ReplicatesRow:
    """Statistics of a configuration's replicates; None if there are too few results."""

    assignment: Mapping[str, Any]
    in_spec: bool | None
    count: int
    """Number of results that the statistics use."""
    mean: float | None
    deviation: float | None
    low: float | None
    high: float | None
    trials: tuple[str, ...]
    """Trial ids by replicate, including trials without a result."""


def write_replicates(rows: Iterable[ReplicatesRow], parameters: Sequence[str]) -> str:
    """Return the text of the table, with rows in the given order."""
    head = [*(text_cell(PARAMETER_PREFIX + name) for name in parameters), *REPLICATES_COLUMNS]
    lines = [",".join(head), *(",".join(_replicates_cells(row, parameters)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def _replicates_cells(row: ReplicatesRow, parameters: Sequence[str]) -> list[str]:
    return [
        *(value_cell(row.assignment[name]) if name in row.assignment else "" for name in parameters),
        "" if row.in_spec is None else canonical_json(row.in_spec),
        str(row.count),
        *(number_cell(number) for number in (row.mean, row.deviation, row.low, row.high)),
        text_cell(" ".join(row.trials)),
    ]


@dataclass(frozen=True, slots=True)
class SummaryExcerpt:
    """Counts of a summary, and its best trial, for reading thousands of versions of it."""

    trials: int
    ok: int
    trial: str | None
    """Id of the best trial, the smaller id of equal ones; None if no trial can be ranked."""
    value: float | None
    seconds: float = 0.0
    """Sum of the durations of the attempts that count."""
    front: int = 0
    """Size of the Pareto front, for several metrics."""


def read_summary_excerpt(text: str, lock: BatchLock | None) -> SummaryExcerpt:
    """Return counts, and the best trial of the newest batch's program. Raises ValueError."""
    head, *rows = text.split("\n")
    if not rows or rows.pop() != "":
        raise ValueError("the summary must end with a line end")
    names = split_raw(head)
    if not {"trial", "status", "program", "seconds"}.issubset(names):
        raise ValueError(f"line 1: not the columns of a summary: {head[:200]!r}")
    # The columns of the metrics, the objective first; empty without the objective.
    metrics = [text_cell(METRIC_PREFIX + metric.name) for metric in lock.metrics] if lock else []
    columns = [names.index(name) for name in metrics if name in names] if {*metrics[:1]} & {*names} else []
    trial, status, program, took = map(names.index, ("trial", "status", "program", "seconds"))
    sign = -1.0 if lock and lock.metric.goal is Goal.MAXIMIZE else 1.0
    newest = lock and lock.program.digest
    ok, spent, ranked = 0, 0.0, list[tuple[str, tuple[float, ...]]]()
    for number, row in enumerate(rows, start=2):
        cells = split_raw(row)
        if len(cells) != len(names):
            raise ValueError(f"line {number}: must have {len(names)} cells, but got {len(cells)}")
        if cells[took]:
            spent += float(cells[took])
        if cells[status] != Status.OK:
            continue
        ok += 1
        if lock and columns and cells[columns[0]] and cells[program] == newest:
            values = tuple(float(cells[column]) for column in columns if cells[column])
            ranked.append((cells[trial], values))
    value, best = min(((sign * values[0], trial_id) for trial_id, values in ranked), default=(None, None))
    excerpt = SummaryExcerpt(len(rows), ok, best, None if value is None else sign * value, spent)
    if not lock or not lock.other_metrics:
        return excerpt
    complete = [values for _, values in ranked if len(values) == len(metrics)]
    return replace(excerpt, front=len(pareto_indices(complete, lock.metrics)))
