"""`summary.csv`: one physical line a trial, finished or not; numbers in the one form of `structs/values`.

Numbers, booleans and null are bare, whole ones without a point (1.0 is written `1`). Text values are in
double quotes. A quoted cell that opens with `[`, `{` or `"` is JSON: lists, and text that would mislead
without. Text that a spreadsheet would take for a formula is led by `'`, which the reader takes off again.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from generator.formats.table import CELL
from generator.structs.record import Outcome, Status
from generator.structs.values import Value, canonical, canonical_json

SUMMARY_FILE = "summary.csv"

FIRST_COLUMNS = (
    "trial",
    "batch",
    "index",
    "replicate",
    "in_spec",
    "status",
    "reason",
    "attempts",
    "program",
)
LAST_COLUMNS = ("seconds", "node_class", "seed", "code", "ran", "data", "started", "finished")
PARENT = "parent"
"""The last column of a search whose trials go on from others."""
PARAMETER_PREFIX = "params."
METRIC_PREFIX = "metrics."

MOST_METRIC_COLUMNS = 256
"""Of trials that invent names: the metrics that most trials report are shown, the records hold all."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A trial as the summary shows it; None where it left no record."""

    trial: str
    batch: str
    index: int
    replicate: int
    in_spec: bool | None
    """Whether the spec asked for it when this was written; None where nobody could say."""
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
    """The pool that it was placed in."""
    seed: int | None
    code: str
    ran: str | None
    """An image's digest, or `process`."""
    data: str | None
    started: str | None
    finished: str | None
    parent: str | None = None
    """The trial whose checkpoint it went on from."""

    def metric(self, name: str) -> float | None:
        """The value that may be ranked: None unless the trial is ok and reported it."""
        return self.metrics.get(name) if self.status is Status.OK else None


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """A summary read back."""

    parameters: tuple[str, ...]
    metrics: tuple[str, ...]
    """The objective first, if any trial reported it."""
    rows: tuple[SummaryRow, ...]


def write(outcomes: Sequence[Outcome], *, objective: str) -> str:
    """Write the summary, its rows in the order given."""
    parameters = parameter_names(outcomes)
    metrics = metric_names(outcomes, objective)
    has_parents = any(outcome.parent for outcome in outcomes)
    lines = [
        ",".join(
            [
                *FIRST_COLUMNS,
                *(text_cell(PARAMETER_PREFIX + name) for name in parameters),
                *(text_cell(METRIC_PREFIX + name) for name in metrics),
                *LAST_COLUMNS,
                # Only where there is one: most trials begin at their first step.
                *([PARENT] if has_parents else []),
            ]
        )
    ]
    for outcome in outcomes:
        parent = [text_cell(outcome.parent)] if has_parents else []
        lines.append(",".join([*_cells(outcome, parameters, metrics), *parent]))
    return "".join(f"{line}\n" for line in lines)


def parameter_names(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """List the parameters of all trials in the order in which they first appear."""
    return tuple(dict.fromkeys(name for outcome in outcomes for name in outcome.assignment))


def metric_names(outcomes: Iterable[Outcome], objective: str) -> tuple[str, ...]:
    """List the metrics of the attempts that count: the objective first, the rest sorted."""
    reported = Counter(
        name for outcome in outcomes if outcome.record is not None for name in outcome.record.metrics
    )
    reported.pop(objective, None)
    commonest = sorted(reported, key=lambda name: (-reported[name], name))[: MOST_METRIC_COLUMNS - 1]
    return (objective, *sorted(commonest))


def _cells(outcome: Outcome, parameters: Sequence[str], metrics: Sequence[str]) -> Iterator[str]:
    record = outcome.record
    yield from (outcome.trial, outcome.batch, str(outcome.index), str(outcome.replicate))
    yield "" if outcome.in_spec is None else canonical_json(outcome.in_spec)
    yield from (outcome.status, text_cell(outcome.reason), str(outcome.attempts), text_cell(outcome.program))
    for name in parameters:
        yield value_cell(outcome.assignment[name]) if name in outcome.assignment else ""
    for name in metrics:
        yield number_cell(None if record is None else record.metrics.get(name))
    yield number_cell(None if record is None else record.seconds)
    yield text_cell(outcome.node_class)
    yield "" if record is None else str(record.seed)
    yield text_cell(outcome.code)
    yield text_cell(None if record is None else record.ran)
    yield text_cell(outcome.data)
    yield text_cell(None if record is None else record.started)
    yield text_cell(None if record is None else record.finished)


def number_cell(number: float | None) -> str:
    """Write a number in its shortest form that reads back equal; empty for none."""
    return "" if number is None or not math.isfinite(number) else repr(canonical(number))


def text_cell(text: str | None) -> str:
    """Write text that is bare where every reader takes it alike; empty for none."""
    if text is None:
        return ""
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def value_cell(value: Value) -> str:
    """Write a hyperparameter so that its kind can be read back."""
    match value:
        case None | bool():
            return canonical_json(value)
        case int() | float():
            return number_cell(value)
        case str() if value.isprintable() and not value.startswith(("[", "{", '"')):
            return _quoted(value)
        case _:
            return '"' + canonical_json(value).replace('"', '""') + '"'


def _quoted(text: str) -> str:
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"'


def read(text: str) -> SummaryTable:
    """Read a summary back. Raises ValueError with the line's number where it is not what `write` writes."""
    head, *body = text.split("\n")
    if not body or body.pop() != "":
        raise ValueError("the summary must end with a line end")
    names = [_text(cell) or "" for cell in _split(head, 1)]
    metrics = tuple(_named(names, METRIC_PREFIX))
    parameters = tuple(_named(names, PARAMETER_PREFIX))
    prefixed = [PARAMETER_PREFIX + name for name in parameters] + [METRIC_PREFIX + name for name in metrics]
    columns = [*FIRST_COLUMNS, *prefixed, *LAST_COLUMNS]
    if names not in (columns, [*columns, PARENT]) or len(set(names)) < len(names):
        raise ValueError(f"line 1: not the columns of a summary: {head[:200]!r}")
    rows = []
    for number, line in enumerate(body, start=2):
        cells = _split(line, number)
        if len(cells) != len(names):
            raise ValueError(f"line {number}: must have {len(names)} cells, but got {len(cells)}")
        try:
            rows.append(_row(dict(zip(names, cells, strict=True)), parameters, metrics))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return SummaryTable(parameters, metrics, tuple(rows))


_Cell = tuple[str | None, str]
"""Quoted text, or None and bare text."""


def _split(line: str, number: int) -> list[_Cell]:
    found = list(CELL.finditer(line))
    if "".join(cell[0] for cell in found) != line:
        raise ValueError(f"line {number}: not a line of a summary: {line[:200]!r}")
    return [(cell[1], cell[2] or "") for cell in found]


def _named(names: Iterable[str], prefix: str) -> Iterator[str]:
    return (name.removeprefix(prefix) for name in names if name.startswith(prefix))


def _row(cells: Mapping[str, _Cell], parameters: Sequence[str], metrics: Sequence[str]) -> SummaryRow:
    values = {name: cells[PARAMETER_PREFIX + name] for name in parameters}
    numbers = {name: _number(cells[METRIC_PREFIX + name]) for name in metrics}
    seed = _text(cells["seed"])
    return SummaryRow(
        trial=_required(cells, "trial"),
        batch=_required(cells, "batch"),
        index=int(_required(cells, "index")),
        replicate=int(_required(cells, "replicate")),
        in_spec=_truth(cells["in_spec"]),
        status=Status(_required(cells, "status")),
        reason=_text(cells["reason"]),
        attempts=int(_required(cells, "attempts")),
        program=_required(cells, "program"),
        assignment={name: _value(cell) for name, cell in values.items() if cell != (None, "")},
        metrics={name: number for name, number in numbers.items() if number is not None},
        seconds=_number(cells["seconds"]),
        node_class=_text(cells["node_class"]),
        seed=None if seed is None else int(seed),
        code=_required(cells, "code"),
        ran=_text(cells["ran"]),
        data=_text(cells["data"]),
        started=_text(cells["started"]),
        finished=_text(cells["finished"]),
        parent=_text(cells[PARENT]) if PARENT in cells else None,
    )


def _text(cell: _Cell) -> str | None:
    quoted, bare = cell
    return (bare or None) if quoted is None else _unquoted(quoted)


def _unquoted(quoted: str) -> str:
    return quoted.replace('""', '"').removeprefix("'")


def _required(cells: Mapping[str, _Cell], name: str) -> str:
    text = _text(cells[name])
    if text is None:
        raise ValueError(f"{name} must not be empty")
    return text


def _truth(cell: _Cell) -> bool | None:
    text = _text(cell)
    if text not in {None, "true", "false"}:
        raise ValueError(f"in_spec must be true, false or empty, but got {text!r}")
    return None if text is None else text == "true"


def _number(cell: _Cell) -> float | None:
    text = _text(cell)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"must be a number, but got {text!r}")
    return float(text)


def _value(cell: _Cell) -> Value:
    quoted, bare = cell
    if quoted is not None:
        text = _unquoted(quoted)
        value: Value = json.loads(text) if text.startswith(("[", "{", '"')) else text
        return value
    if bare in _WORDS:
        return _WORDS[bare]
    if not _NUMBER.fullmatch(bare):
        raise ValueError(f"must be a value, but got {bare!r}")
    number: int | float = json.loads(bare)
    return number
