"""`sweep results`: the summary as a table, best first."""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from generator.commands import ledger
from generator.commands.workspace import STATE, Workspace
from generator.errors import IdleError, UsageError
from generator.formats import json, parquet
from generator.formats.summary import (
    FIRST_COLUMNS,
    LAST_COLUMNS,
    METRIC_PREFIX,
    PARAMETER_PREFIX,
    SUMMARY_FILE,
    SummaryRow,
    SummaryTable,
)
from generator.repo import batches, files
from generator.repo.git import Mirror, Repository, followed
from generator.results import results_folder
from generator.structs.record import Status
from generator.structs.sweep import Goal, Metric

SECONDS = "seconds"
"""What trials can be sorted by beside their metrics; a metric of that name goes first."""


class Barred(StrEnum):
    """Why a trial may not win, whatever it reported."""

    SPEC = "not in spec"
    PROGRAM = "older program"


@dataclass(frozen=True)
class Listed:
    """A sweep's trials in an order."""

    sweep: str
    metric: Metric
    """Of the sweep; what was sorted by is `by`."""
    by: str
    table: SummaryTable
    rows: tuple[SummaryRow, ...]
    barred: tuple[Barred | None, ...]
    """Of each of these rows; None where it may win."""
    others: tuple[str, ...] = ()
    """Of a search by several metrics, those that are not shown as `column`."""
    front: frozenset[str] = frozenset()
    """Trials that no other beats in all of these metrics."""

    @property
    def column(self) -> str:
        """The metric to show."""
        return self.metric.name if self.by not in self.table.metrics else self.by


def results(workspace: Workspace, asked: str, *, by: str | None = None, top: int | None = None) -> Listed:
    """Sort a sweep's recorded trials by a metric, or by `seconds`, those without it last.

    What may not win comes behind all that may and has the metric. The sweep's own metric goes by its goal,
    any other upwards. Raises IdleError where nothing is recorded, UsageError.
    """
    present = batches.in_work_tree(workspace.root)
    name = ledger.chosen(workspace, asked, ledger.sweeps(workspace, present))
    stored = batches.of_sweep(present, name)
    table = ledger.summary(workspace, name)
    if not stored or table is None:
        settings = workspace.settings
        hint = f"`sweep status {name}` says where it stands"
        if _is_elsewhere(workspace, name):
            hint = f"`git pull {settings.remote} {settings.branch}` brings its results here"
        raise IdleError(f"nothing is recorded of {name!r} here", hint=hint)
    held = stored[-1].lock
    metric, chosen = held.metric, by or held.metric.name
    if chosen not in {metric.name, *table.metrics, SECONDS}:
        known = ", ".join(dict.fromkeys((*table.metrics, SECONDS)))
        raise UsageError(f"no metric {chosen!r} in {name}", hint=f"metrics: {known}")
    candidates = ledger.candidates(table.rows, batches.legible(stored))
    able = frozenset(map(id, candidates))
    if chosen in {metric.name, *table.metrics}:
        best = ledger.ranked(table.rows, chosen, metric.goal if chosen == metric.name else Goal.MINIMIZE)
    else:
        best = _fastest(table.rows)
    best = tuple(sorted(best, key=lambda row: id(row) not in able))
    ranked = frozenset(map(id, best))
    rows = (*best, *(row for row in table.rows if id(row) not in ranked))[:top]
    found = Listed(name, metric, chosen, table, rows, tuple(_barred(row, able) for row in rows))
    if not held.other_metrics:
        return found
    measured = (metric.name, *(one.name for one in held.other_metrics))
    others = tuple(one for one in measured if one != found.column)
    return replace(found, others=others, front=frozenset(row.trial for row in ledger.front(candidates, held)))


def _barred(row: SummaryRow, able: Container[int]) -> Barred | None:
    if id(row) in able:
        return None
    return Barred.SPEC if row.in_spec is False else Barred.PROGRAM


def _is_elsewhere(workspace: Workspace, sweep: str) -> bool:
    """Tell whether results wait to be pulled: on the branch as fetched, or in `sweep local`'s mirror."""
    path = f"{results_folder(sweep)}/{SUMMARY_FILE}"
    if workspace.repository.files(workspace.standing(None), path):
        return True
    mirror = workspace.root / STATE / Mirror.FOLDER
    if not mirror.is_dir():
        return False
    kept = Repository(mirror)
    return bool(kept.files(kept.commit(followed(workspace.settings.branch)), path))


def _fastest(rows: Iterable[SummaryRow]) -> tuple[SummaryRow, ...]:
    """Sort the trials that are ok: what failed at once was not fast."""
    timed = [row for row in rows if row.status is Status.OK and row.seconds is not None]
    return tuple(sorted(timed, key=lambda row: (row.seconds, row.trial)))


class Output(StrEnum):
    """A form that other programs read."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def written(workspace: Workspace, found: Listed, form: Output) -> bytes:
    """Write listed trials, each with every column of the summary. Raises ToolError for want of pyarrow.

    CSV has the summary's own lines, so it reads back to the last bit.
    """
    if form is Output.CSV:
        path = workspace.root / results_folder(found.sweep) / SUMMARY_FILE
        head, *lines = files.read_file(path).decode().splitlines(keepends=True)
        by_row = dict(zip(map(id, found.table.rows), lines, strict=True))
        return "".join([head, *(by_row[id(row)] for row in found.rows)]).encode()
    columns = dict(_columns(found))
    if form is Output.PARQUET:
        return parquet.write(columns)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return json.dump(rows).encode()


def _columns(found: Listed) -> Iterator[tuple[str, list[Any]]]:
    """Give the columns as the summary heads them; null where a cell is empty."""
    for name in FIRST_COLUMNS:
        yield name, [_plain(getattr(row, name)) for row in found.rows]
    for name in found.table.parameters:
        yield PARAMETER_PREFIX + name, [row.assignment.get(name) for row in found.rows]
    for name in found.table.metrics:
        yield METRIC_PREFIX + name, [row.metrics.get(name) for row in found.rows]
    for name in LAST_COLUMNS:
        yield name, [getattr(row, name) for row in found.rows]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Status) else value
