"""Finished trials of other tools as trials of a search: the values of its space that cells stand for, and tables.

Tables have no types, an empty cell may be null, and sums of binary steps have noise: 0.30000000000000004. A column
belongs to a parameter or a metric of the sweep if its name is that name, or that name after one of the usual prefixes.
Everything else is ignored.
"""

import ast
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sweepledger.formats.evidence_jsonl import ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader.scalars import Refusal, resolve_scalar
from sweepledger.structs.domain import Domain
from sweepledger.structs.record import Status
from sweepledger.structs.space import Parameter, parents_first
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value, identity, is_number

NOISE = 1e-9
"""Relative: values of a space differ by more, as they are rounded to ten digits."""

PYTHON_WORDS: Mapping[str, Value] = {"True": True, "False": False, "None": None}


class Quoted(str):
    """The text of a quoted cell, which is more likely text than a number."""

    __slots__ = ()


Cell = Callable[[str], Any]
"""A function from the name of a parameter to its cell. Raises KeyError if there is none; None is an empty one."""


def configuration_of(parameters: tuple[Parameter, ...], cell: Cell) -> dict[str, Value]:
    """Return the values in a space that the cells of a trial stand for."""
    configuration: dict[str, Value] = {}
    for parameter in parents_first(parameters, lambda each: (each,)):
        try:
            value = cell(parameter.name)
        except KeyError:
            continue
        if value is not None and value != "":
            configuration[parameter.name] = _value_in(parameter.domain, value)
        elif all(
            condition.parameter in configuration
            and identity(configuration[condition.parameter]) in set(map(identity, condition.values))
            for condition in parameter.when
        ):
            # The value that an empty cell can be; none if there are two or none.
            listed = () if parameter.domain.is_constant else parameter.domain.listed
            empty = [each for each in (None, "") if each in listed]
            if isinstance(value, Quoted) and "" in empty:
                empty = [""]
            if len(empty) == 1:
                configuration[parameter.name] = empty[0]
    return {each.name: configuration[each.name] for each in parameters if each.name in configuration}


def _value_in(domain: Domain, value: Any) -> Value:
    """Return the value in a domain that a cell stands for; without a match, the plain meaning of the cell."""
    readings = tuple(_readings(value))
    if not domain.is_constant:
        values = {identity(each): each for each in domain.listed}
        for reading in readings:
            if identity(reading) in values:
                return values[identity(reading)]
    number = next((reading for reading in readings if is_number(reading)), None)
    if number is None:
        return readings[0]
    # A listed value, or a bound, next to which the number is.
    ends = () if domain.shape is None else domain.shape.ends
    numbers = [each for each in (*(() if domain.is_constant else domain.listed), *ends) if is_number(each)]
    least = min((abs(each) for each in numbers if each), default=0.0)
    near = (each for each in numbers if math.isclose(each, number, rel_tol=NOISE))
    zero = (each for each in numbers if not each and abs(number) <= NOISE * least)
    return next(near, next(zero, number))


def _readings(value: Any) -> Iterator[Value]:
    """Yield the possible meanings of a cell, the likeliest first."""
    if not isinstance(value, str):
        yield value if _is_value(value) else str(value)
        return
    text = str(value)
    if text[:1] in {"[", "(", "{", '"'}:
        yield from _parsed(text)
    if isinstance(value, Quoted):
        yield text
        if text.startswith("'"):  # `sweep results` writes it before what a spreadsheet reads as a formula
            yield text[1:]
    if text in PYTHON_WORDS:
        yield PYTHON_WORDS[text]
    resolved = resolve_scalar(text)
    if not isinstance(resolved, Refusal):
        yield resolved
    yield text


def _parsed(text: str) -> Iterator[Value]:
    """Yield the list or the text that a cell contains as JSON or as Python."""
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, tuple):
            value = list(value)
        if isinstance(value, str | list) and _is_value(value):
            yield value
            return


def _is_value(value: Any) -> bool:
    match value:
        case list():
            return all(map(_is_value, value))
        case float():
            return math.isfinite(value)
        case int():
            return abs(value) <= LARGEST_EXACT_INTEGER
        case _:
            return value is None or isinstance(value, str)


PARAMETER_PREFIXES = ("", "params.", "params_", "param_", "config.", "hparams.")
METRIC_PREFIXES = ("", "metrics.", "metric_", "summary.", "summary/", "user_attrs_")
STATUS_COLUMNS = ("status", "state")

STATUSES: Mapping[str, Status | None] = {
    **dict.fromkeys(("ok", "complete", "completed", "finished", "succeeded", "terminated"), Status.OK),
    **dict.fromkeys(("failed", "fail", "crashed", "error", "timeout", "oom"), Status.FAILED),
    **dict.fromkeys(("pruned", "stopped", "earlystopped", "early_stopped"), Status.PRUNED),
    "diverged": Status.DIVERGED,
    **dict.fromkeys(("running", "waiting", "pending", "killed", "missing", "cancelled"), None),
}
"""Status of a trial by other tools' words, in small letters; None: the trial has not finished, and is skipped."""


def finished_trials(cells: Mapping[str, Any], sweep: Sweep, *, line: int) -> Iterator[ForeignTrial]:
    """Yield the trial of a row, if it has finished. Raises ForeignError."""
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
    assert sweep.search is not None

    def cell(name: str) -> Any:
        columns = [prefix + name for prefix in PARAMETER_PREFIXES if prefix + name in cells]
        full = [column for column in columns if cells[column] is not None and cells[column] != ""]
        if not columns:
            raise KeyError(name)
        return cells[(full or columns)[0]]

    if status is not None:
        yield ForeignTrial(configuration_of(sweep.search.space.parameters, cell), metrics, status)


def _metric_columns(name: str, place: int) -> list[str]:
    """Return the columns of a metric; Optuna's names for the objectives are `value`, or `values_0`, `values_1` …."""
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
