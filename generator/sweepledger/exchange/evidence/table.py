"""Finished trials in a table: CSV or JSON Lines of any tool, of W&B's and Optuna's exports, and of `sweep results`.

A column belongs to a parameter or a metric of the sweep if its name is that name, or that name after one of the
usual prefixes. Everything else is ignored.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.exchange.evidence.space_values import Quoted, configuration_of
from sweepledger.formats import csv_cells
from sweepledger.formats.evidence_jsonl import MAX_EVIDENCE_BYTES, ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError, decoded
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, is_number

PARAMETER_PREFIXES = ("", "params.", "params_", "param_", "config.", "hparams.")
METRIC_PREFIXES = ("", "metrics.", "metric_", "summary.", "summary/", "user_attrs_")
SECTIONS = ("params", "parameters", "config", "configuration", "hparams", "metrics", "summary")
"""Objects whose members count as columns, as in W&B's and MLflow's JSON."""
STATUS_COLUMNS = ("status", "state")

STATUSES: Mapping[str, Status | None] = {
    **dict.fromkeys(("ok", "complete", "completed", "finished", "succeeded", "terminated"), Status.OK),
    **dict.fromkeys(("failed", "fail", "crashed", "error", "timeout", "oom"), Status.FAILED),
    **dict.fromkeys(("pruned", "stopped", "earlystopped", "early_stopped"), Status.PRUNED),
    "diverged": Status.DIVERGED,
    **dict.fromkeys(("running", "waiting", "pending", "killed", "missing", "cancelled"), None),
}
"""Status of a trial by other tools' words, in small letters; None: the trial has not finished, and is skipped."""


def read_csv(content: bytes, sweep: Sweep, _study: str | None) -> tuple[None, Iterator[ForeignTrial]]:
    """Return the finished trials of a CSV file with a header. Raises ForeignError."""
    return None, _csv_trials(content, sweep)


def _csv_trials(content: bytes, sweep: Sweep) -> Iterator[ForeignTrial]:
    lines = _logical_lines(decoded(content, MAX_EVIDENCE_BYTES))
    number, header = next(lines, (1, ""))
    names = [str(cell) for cell in _cells(header, number)]
    for number, line in lines:
        values = _cells(line, number)
        if len(values) != len(names):
            raise ForeignError("must have as many cells as the header", line=number)
        yield from _trials(dict(zip(names, values, strict=True)), sweep, line=number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each row with the number of its last line: a text in quotes may have line ends. Empty rows are left out."""
    row: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        row.append(line)
        if sum(each.count('"') for each in row) % 2 == 0:
            if any(row):
                yield number, "\n".join(row)
            row = []
    if row:
        raise ForeignError("is not CSV: a quote is not closed", line=number)


def _cells(line: str, number: int) -> list[str]:
    """Return the cells of a row, those between quotes as such. Raises ForeignError."""
    cells = csv_cells.split_line(line)
    if cells is None:
        raise ForeignError("is not CSV: a quote is misplaced", line=number)
    return [cell.bare if cell.quoted is None else Quoted(cell.quoted) for cell in cells]


def read_jsonl(content: bytes, sweep: Sweep, _study: str | None) -> tuple[None, Iterator[ForeignTrial]]:
    """Return the finished trials of JSON Lines, also with objects such as `config`. Raises ForeignError."""
    return None, _jsonl_trials(content, sweep)


def _jsonl_trials(content: bytes, sweep: Sweep) -> Iterator[ForeignTrial]:
    for number, line in enumerate(decoded(content, MAX_EVIDENCE_BYTES).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (RecursionError, ValueError) as error:
            raise ForeignError("must be a JSON object", line=number) from error
        if not isinstance(data, dict):
            raise ForeignError("must be a JSON object", line=number)
        cells = {name: value for name, value in data.items() if not isinstance(value, dict)}
        for section in SECTIONS:
            inner = data.get(section)
            # W&B stores {"lr": {"value": 0.1}} in its files of settings.
            for name, value in inner.items() if isinstance(inner, dict) else ():
                is_wrapped = isinstance(value, dict) and "value" in value
                cells.setdefault(name, value["value"] if is_wrapped else value)
        yield from _trials(cells, sweep, line=number)


def _trials(cells: Mapping[str, Any], sweep: Sweep, *, line: int) -> Iterator[ForeignTrial]:
    by_name = {name.casefold(): value for name, value in cells.items()}
    word = next((str(by_name[name]) for name in STATUS_COLUMNS if name in by_name), "ok").casefold()
    word = word.rpartition(".")[2]  # Optuna writes TrialState.COMPLETE
    if word not in STATUSES:
        raise ForeignError(f"has an unknown state {word!r}", line=line)
    status = STATUSES[word]
    if status is None:
        return
    numbers = {metric.name: _metric(cells, metric.name, place) for place, metric in enumerate(sweep.metrics)}
    metrics = {name: number for name, number in numbers.items() if number is not None}
    if status is Status.OK and len(metrics) < len(numbers):
        missing = [(name, place) for place, name in enumerate(numbers) if name not in metrics]
        others = [cells.get(column) for one in missing for column in _metric_columns(*one)]
        status = Status.DIVERGED if any(cell not in (None, "") for cell in others) else None
    if status is not None:
        yield ForeignTrial(_configuration(cells, sweep), metrics, status)


def _configuration(cells: Mapping[str, Any], sweep: Sweep) -> dict[str, Value]:
    assert sweep.search is not None

    def cell(name: str) -> Any:
        columns = [prefix + name for prefix in PARAMETER_PREFIXES if prefix + name in cells]
        full = [column for column in columns if cells[column] is not None and cells[column] != ""]
        if not columns:
            raise KeyError(name)
        return cells[(full or columns)[0]]

    return configuration_of(sweep.search.space.parameters, cell)


def _metric_columns(name: str, place: int) -> list[str]:
    """Return the columns of a metric; Optuna calls the objectives `value`, or `values_0`, `values_1` …."""
    return [*(prefix + name for prefix in METRIC_PREFIXES), f"values_{place}", *["value"] * (place == 0)]


def _metric(cells: Mapping[str, Any], name: str, place: int) -> float | None:
    for column in _metric_columns(name, place):
        value = cells.get(column)
        try:
            number = float(value) if isinstance(value, str) or is_number(value) else None
        except (OverflowError, ValueError):
            continue
        if number is not None and math.isfinite(number):
            return number
    return None
