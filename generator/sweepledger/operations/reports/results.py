"""The trials of a sweep, best first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sweepledger.errors import IdleError, UsageError
from sweepledger.expressions import kinds, parser
from sweepledger.expressions.evaluation import ComputeError, compile_expression
from sweepledger.formats import json, parquet, summary_csv
from sweepledger.formats.summary_csv import SummaryTable
from sweepledger.operations.collection.attempts import finished_here, with_unrecorded
from sweepledger.operations.repository import catalog, programs
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import batches, files
from sweepledger.repo.state import state_folder
from sweepledger.structs.expression import names_in
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.program import Program
from sweepledger.structs.record import Status, SummaryRow, pareto_front
from sweepledger.structs.values import Value

SECONDS = "seconds"
"""Trials can be sorted by this besides metrics; a metric with this name takes precedence."""


class Ineligibility(StrEnum):
    """Why a trial is not ranked."""

    SPEC = "not in spec"
    PROGRAM = "older program"
    """Older than the ranked one."""
    NEWER_PROGRAM = "newer program"


@dataclass(frozen=True)
class RankedTrials:
    """The sorted trials of a sweep."""

    sweep: str
    metric: Metric
    """The objective; rows are sorted by the metric `by`."""
    by: str
    table: SummaryTable
    rows: tuple[SummaryRow, ...]
    barred: tuple[Ineligibility | None, ...]
    """Why each row is not ranked; None if it is."""
    others: tuple[str, ...] = ()
    """Other metrics of a search with several, if they are not shown as `column`."""
    front: frozenset[str] = frozenset()
    """Trials that no other beats in all of these metrics."""
    laptop: tuple[str, ...] = ()
    """Batches with a listed trial that are marked as made on a laptop."""
    unrecorded: frozenset[tuple[str, int]] = frozenset()
    """Batch and index of the rows that have finished here, and that no commit has."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    """The programs of all rows by digest, the newest last."""
    ranked_program: str | None = None
    """The digest of the one whose trials are ranked; None: all are."""
    head: str | None = None
    """The digest of the one that the spec and the code of the commit are which is checked out; None if it is none."""

    @property
    def ranked_rows(self) -> tuple[SummaryRow, ...]:
        """The rows that are ranked."""
        return tuple(row for row, why in zip(self.rows, self.barred, strict=True) if why is None)

    def is_recorded(self, row: SummaryRow) -> bool:
        """Return whether a commit has a row, which otherwise has only finished here."""
        return (row.batch, row.index) not in self.unrecorded

    @property
    def column(self) -> str:
        """The metric to show."""
        return self.metric.name if self.by not in self.table.metrics else self.by

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "sweep": self.sweep,
            "sorted_by": self.by,
            "laptop": self.laptop,
            "head_program": self.head,
            "trials": [self._row_data(*row) for row in zip(self.rows, self.barred, strict=True)],
        }

    def _row_data(self, row: SummaryRow, why: Ineligibility | None) -> dict[str, Any]:
        return {
            "trial": row.trial,
            "batch": row.batch,
            "index": row.index,
            "status": row.status,
            "reason": row.reason,
            "error": row.error,
            "configuration": row.assignment,
            "metrics": row.metrics,
            "seconds": row.seconds,
            "program": row.program,
            "recorded": self.is_recorded(row),
            "not_ranked": why,
            # Only for sweeps with several metrics.
            **({"front": row.trial in self.front and why is None} if self.others else {}),
        }

    def first(self, count: int) -> "RankedTrials":
        """Return the same ranking, limited to its first `count` trials."""
        return replace(self, rows=self.rows[:count], barred=self.barred[:count])


FIXED_COLUMNS = (
    *("trial", "batch", "status", "reason", "error"),
    *("seed", "seconds", "attempts", "started", "finished"),
)
"""Columns that can be chosen and compared besides parameters and metrics."""


def cell_value(row: SummaryRow, column: str) -> Value:
    """Return the value of a row in a column; None if it has none."""
    if column in row.assignment:
        return row.assignment[column]
    if column in row.metrics:
        return row.metrics[column]
    value = getattr(row, column) if column in FIXED_COLUMNS else None
    return str(value) if isinstance(value, Status) else value


def require_columns(table: SummaryTable, columns: Iterable[str], note: str = "") -> None:
    """Raise UsageError for a column that a summary does not have."""
    # Parameters hide metrics of the same name, and both hide fixed columns.
    known = tuple(dict.fromkeys((*table.parameters, *table.metrics, *FIXED_COLUMNS)))
    for column in columns:
        if column not in known:
            raise UsageError(f"no column {column!r}", hint=f"columns: {', '.join(known)}{note}")


def row_condition(text: str, table: SummaryTable) -> Callable[[SummaryRow], bool]:
    """Compile an expression of columns, such as `rate < 0.1 and status == 'ok'`, to a test of a trial.

    A missing value is null. A trial for which the expression has no result does not meet the condition. Raises
    UsageError.
    """
    try:
        tree = parser.parse_expression(text)
    except parser.ExpressionError as error:
        message = f"--where {error.message}{parser.position_in(text, error.offset)}"
        raise UsageError(message, hint=error.hint) from error
    names = {name.name for name in names_in(tree)}
    require_columns(table, sorted(names), note="; put text in quotes, as in status == 'ok'")
    known = {name: frozenset(kinds.type_of(cell_value(row, name)) for row in table.rows) for name in names}
    null = frozenset({kinds.ValueType.NULL})
    known = {name: kinds.ANY if present <= null else present for name, present in known.items()}
    for problem in kinds.check_condition(text, tree, known):
        message = f"--where {problem.message}{parser.position_in(text, problem.offset)}"
        raise UsageError(message, hint=problem.hint)
    compute = compile_expression(tree)

    def holds(row: SummaryRow) -> bool:
        try:
            return compute({name: cell_value(row, name) for name in names}) is True
        except ComputeError:
            return False

    return holds


def rank_trials(
    workspace: Workspace,
    reference: str,
    *,
    state: Path | None = None,
    by: str | None = None,
    top: int | None = None,
    where: Sequence[str] = (),
    all_programs: bool = False,
) -> RankedTrials:
    """Sort a sweep's finished trials by a metric, or by `seconds`; trials without it come last.

    Only trials that meet all conditions in `where` are listed. Besides recorded trials, these are the trials of active
    batches that have finished on this machine.

    Unranked trials come after all ranked trials, and trials of other programs after those of the ranked program:
    of HEAD's, or of the newest if HEAD's has no trial. With `all_programs`, those of all programs are ranked. The
    sweep's own metrics are sorted by their goal, others upwards. Raises IdleError if nothing has finished, UsageError.
    """
    present = batches.in_work_tree(workspace.root)
    name = catalog.choose_sweep(workspace.root, reference, catalog.sweep_names(workspace, present))
    stored = batches.of_sweep(present, name)
    readable = batches.readable(stored)
    table, unrecorded = _table(
        workspace, name, readable, (state or state_folder(workspace.repository)) / "results"
    )
    if not stored or table is None:
        hint, path = f"`sweep status {name}` shows its state", catalog.summary_path(name)
        mirrored = catalog.mirrored(state_folder(workspace.repository), workspace.settings.git.branch)
        if workspace.repository.files(workspace.base_commit(None), path) or (
            mirrored is not None and mirrored[0].files(mirrored[1], path)
        ):
            hint = f"`git pull {workspace.remote} {workspace.settings.git.branch}` brings its results here"
        raise IdleError(f"nothing is recorded of {name!r} here", hint=hint)
    lock = stored[-1].lock
    metric, wanted = lock.metric, by or lock.metric.name
    if wanted not in {metric.name, *table.metrics, SECONDS}:
        metrics = ", ".join(dict.fromkeys((*table.metrics, SECONDS)))
        raise UsageError(f"no metric {wanted!r} in {name}", hint=f"metrics: {metrics}")
    conditions = [row_condition(text, table) for text in where]
    locks = [batch.lock for batch in readable]
    head = programs.ranked_program(workspace.repository, workspace.repository.commit("HEAD"), locks)
    candidates = catalog.eligible_rows(table.rows, readable, head)
    ranked = candidates[0].program if candidates else head or lock.program.digest
    if all_programs:
        candidates = tuple(row for row in table.rows if row.in_spec is not False)
    if wanted in {metric.name, *table.metrics}:
        best = catalog.rank_rows(table.rows, wanted, metric.goal if wanted == metric.name else Goal.MINIMIZE)
    else:
        # A failed trial was not fast.
        timed = [row for row in table.rows if row.status is Status.OK and row.seconds is not None]
        best = tuple(sorted(timed, key=lambda row: (row.seconds, row.trial)))
    able, with_value = frozenset(map(id, candidates)), frozenset(map(id, best))

    def place(row: SummaryRow) -> tuple[bool, ...]:
        """Return the sort key that comes before a trial's value."""
        return not all_programs and row.program != ranked, id(row) not in with_value, id(row) not in able

    listed = sorted((*best, *(row for row in table.rows if id(row) not in with_value)), key=place)
    rows = tuple(row for row in listed if all(holds(row) for holds in conditions))[:top]
    order = list(dict.fromkeys(each.program.digest for each in locks))
    newer = order[order.index(ranked) + 1 :] if ranked in order else []

    def barred(row: SummaryRow) -> Ineligibility:
        program = Ineligibility.NEWER_PROGRAM if row.program in newer else Ineligibility.PROGRAM
        return Ineligibility.SPEC if row.in_spec is False else program

    run = {row.program for row in table.rows}
    shown = wanted if wanted in table.metrics else metric.name
    marked = catalog.laptop_batches_here(workspace.root, name)
    return RankedTrials(
        name,
        metric,
        wanted,
        table,
        rows,
        tuple(None if id(row) in able else barred(row) for row in rows),
        tuple(each.name for each in lock.metrics if each.name != shown) if lock.other_metrics else (),
        frozenset(row.trial for row, _ in pareto_front(candidates, lock.metrics)),
        tuple(batch for batch in marked if batch in {row.batch for row in rows}),
        unrecorded,
        {each.program.digest: each.program for each in locks if each.program.digest in run},
        ranked_program=None if all_programs else ranked,
        head=head if head in run else None,
    )


def _table(
    workspace: Workspace, name: str, stored: Sequence[batches.StoredBatch], results: Path
) -> tuple[SummaryTable | None, frozenset[tuple[str, int]]]:
    """Return the recorded rows of a sweep with its unrecorded rows, and which these are; None if there are none."""
    recorded = catalog.read_summary(workspace.root, name)
    rows, unrecorded = with_unrecorded(
        () if recorded is None else recorded.rows, finished_here(stored, results)
    )
    if not rows:
        return recorded, unrecorded
    new = [row for row in rows if (row.batch, row.index) in unrecorded]
    parameters, metrics = (
        ((), (stored[-1].lock.metric.name,)) if recorded is None else (recorded.parameters, recorded.metrics)
    )
    return SummaryTable(
        tuple(dict.fromkeys((*parameters, *(name for row in new for name in row.assignment)))),
        tuple(dict.fromkeys((*metrics, *(name for row in new for name in row.metrics)))),
        rows,
    ), unrecorded


class ResultsFormat(StrEnum):
    """A format that other programs read."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def encode_results(workspace: Workspace, table: RankedTrials, form: ResultsFormat) -> bytes:
    """Return the listed trials that are recorded in a format, with every column of the summary.

    CSV contains the lines of the summary unchanged, with exact numbers. Raises ToolError without pyarrow.
    """
    recorded = [row for row in table.table.rows if table.is_recorded(row)]
    known = frozenset(map(id, recorded))
    rows = [row for row in table.rows if id(row) in known]
    if form is ResultsFormat.CSV:
        path = workspace.root / catalog.summary_path(table.sweep)
        head, *lines = files.read_file(path).decode().splitlines(keepends=True)
        by_row = dict(zip(map(id, recorded), lines, strict=True))
        return "".join([head, *(by_row[id(row)] for row in rows)]).encode()
    columns = summary_csv.as_columns(table.table, rows)
    if form is ResultsFormat.PARQUET:
        return parquet.write(columns)
    listed = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return json.dump(listed).encode()
