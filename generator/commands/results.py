"""`sweep results`: the summary as a table, best first."""

from dataclasses import dataclass

from generator.commands import ledger
from generator.commands.workspace import Workspace
from generator.errors import UsageError
from generator.formats.summary import SummaryRow, SummaryTable
from generator.repo import batches
from generator.structs.sweep import Goal, Metric


@dataclass(frozen=True)
class Listed:
    """A sweep's trials in an order."""

    sweep: str
    metric: Metric
    """Of the sweep; what was sorted by is `by`."""
    by: str
    table: SummaryTable
    rows: tuple[SummaryRow, ...]


def results(workspace: Workspace, name: str, *, by: str | None = None, top: int | None = None) -> Listed:
    """Sort a sweep's recorded trials by a metric, those without it last.

    The sweep's own metric goes by its goal, any other upwards. Raises UsageError.
    """
    stored = batches.of_sweep(batches.in_work_tree(workspace.root), name)
    table = ledger.summary(workspace, name)
    if not stored or table is None:
        raise UsageError(
            f"nothing is recorded of {name!r}", hint=f"`sweep status {name}` says where it stands"
        )
    metric = stored[-1].lock.metric
    chosen = by or metric.name
    if chosen not in {metric.name, *table.metrics}:
        raise UsageError(f"no metric {chosen!r} in {name}", hint=f"metrics: {', '.join(table.metrics)}")
    best = ledger.ranked(table.rows, chosen, metric.goal if chosen == metric.name else Goal.MINIMIZE)
    rest = tuple(row for row in table.rows if row.metric(chosen) is None)
    return Listed(name, metric, chosen, table, (*best, *rest)[:top])
