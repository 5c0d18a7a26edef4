"""A partial read of `summary.csv`, for reading thousands of versions of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sweepledger.formats.csv_cells import split_raw
from sweepledger.formats.summary_csv import METRIC_PREFIX, text_cell
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal, pareto_indices
from sweepledger.structs.record import Status


@dataclass(frozen=True, slots=True)
class SummaryExcerpt:
    """Counts of a summary, and its best trial."""

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
    return replace(excerpt, front=_front_size(lock, ranked)) if lock and lock.other_metrics else excerpt


def _front_size(lock: BatchLock, ranked: Iterable[tuple[str, tuple[float, ...]]]) -> int:
    metrics = lock.metrics
    return len(pareto_indices([values for _, values in ranked if len(values) == len(metrics)], metrics))
