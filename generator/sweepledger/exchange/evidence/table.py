"""Finished trials in a table: CSV or JSON Lines of any tool, of W&B's and Optuna's exports, and of `sweep results`.

A column belongs to a parameter or a metric of the sweep if its name is that name, or that name after one of the
usual prefixes. Everything else is ignored.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.formats.evidence_jsonl import MAX_EVIDENCE_BYTES, ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader.scalars import Refusal, resolve_scalar
from sweepledger.structs.domain import Choice
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value, is_number

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


def read_csv(content: bytes, sweep: Sweep) -> Iterator[ForeignTrial]:
    """Yield the finished trials of a CSV file with a header. Raises ForeignError."""
    rows = csv.DictReader(io.StringIO(_text(content), newline=""), strict=True)
    try:
        for row in rows:
            if None in row or None in row.values():
                raise ForeignError("must have as many cells as the header", line=rows.line_num)
            cells = {name: value for name, value in row.items() if value != ""}
            yield from _trials(cells, sweep, line=rows.line_num)
    except csv.Error as error:
        raise ForeignError(f"is not CSV: {error}", line=rows.line_num) from error


def read_jsonl(content: bytes, sweep: Sweep) -> Iterator[ForeignTrial]:
    """Yield the finished trials of JSON Lines, also with objects such as `config`. Raises ForeignError."""
    for number, line in enumerate(_text(content).split("\n"), start=1):
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


def _text(content: bytes) -> str:
    if len(content) > MAX_EVIDENCE_BYTES:
        raise ForeignError(f"must have at most {MAX_EVIDENCE_BYTES} bytes, got {len(content)}")
    try:
        return content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise ForeignError("must be UTF-8", line=content[: error.start].count(b"\n") + 1) from error


def _trials(cells: Mapping[str, Any], sweep: Sweep, *, line: int) -> Iterator[ForeignTrial]:
    """Yield the trial of one row, unless it has not finished."""
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
        status = (
            Status.DIVERGED if any(_has_metric(cells, name) for name in numbers.keys() - metrics) else None
        )
    if status is not None:
        yield ForeignTrial(_configuration(cells, sweep), metrics, status)


def _configuration(cells: Mapping[str, Any], sweep: Sweep) -> dict[str, Value]:
    """Return the values of the sweep's parameters, with the types of its search space where that is possible."""
    assert sweep.search is not None
    configuration: dict[str, Value] = {}
    for parameter in sweep.search.space.parameters:
        columns = [prefix + parameter.name for prefix in PARAMETER_PREFIXES]
        value = next((cells[name] for name in columns if cells.get(name) is not None), None)
        if value is None:
            continue
        domain = parameter.domain
        same = (
            [each for each in domain.values if str(each) == str(value)] if isinstance(domain, Choice) else []
        )
        configuration[parameter.name] = same[0] if same else _typed(value)
    return configuration


def _typed(value: Any) -> Value:
    """Return a cell as the value that it has in a spec; as text, which no space has, if no spec can have it."""
    if not isinstance(value, str):
        typed: Value = value if _is_value(value) else str(value)
        return typed
    resolved = {"True": True, "False": False}.get(value, resolve_scalar(value))
    return value if isinstance(resolved, Refusal) else resolved


def _is_value(value: Any) -> bool:
    match value:
        case list():
            return all(map(_is_value, value))
        case float():
            return math.isfinite(value)
        case int():
            return abs(value) <= LARGEST_EXACT_INTEGER
        case _:
            return not isinstance(value, dict)


def _metric_columns(name: str, place: int) -> list[str]:
    """Return the columns of a metric; Optuna calls the objectives `value`, or `values_0`, `values_1` …."""
    return [*(prefix + name for prefix in METRIC_PREFIXES), f"values_{place}", *["value"] * (place == 0)]


def _has_metric(cells: Mapping[str, Any], name: str) -> bool:
    return any(cells.get(prefix + name) is not None for prefix in METRIC_PREFIXES)


def _metric(cells: Mapping[str, Any], name: str, place: int) -> float | None:
    """Return a finite metric of a row; None without one."""
    for column in _metric_columns(name, place):
        value = cells.get(column)
        try:
            number = float(value) if isinstance(value, str) or is_number(value) else None
        except (OverflowError, ValueError):
            continue
        if number is not None and math.isfinite(number):
            return number
    return None
