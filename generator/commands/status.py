"""`sweep status`: where every sweep stands, from git and, where one runs, the local engine."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from generator.commands import collect, ledger
from generator.commands.workspace import Workspace
from generator.formats import record
from generator.formats.summary import SummaryRow
from generator.repo import batches, volume
from generator.repo.batches import StoredBatch
from generator.structs.record import Record, Status


@dataclass(frozen=True)
class Standing:
    """A sweep's trials by what became of them."""

    sweep: str
    active: tuple[str, ...]
    """Batches that the cluster is asked to run."""
    planned: int
    running: int
    """Active, with an attempt begun and none final."""
    counts: Counter[str]
    """Of trials that ended, by status."""
    metric: str
    best: SummaryRow | None

    @property
    def missing(self) -> int:
        """Trials that nothing is known of yet."""
        return (
            self.planned - self.running - sum(self.counts[status] for status in ("ok", "diverged", "failed"))
        )


def status(workspace: Workspace, name: str | None = None, *, state: Path) -> tuple[Standing, ...]:
    """Count the trials of each sweep that has a batch in the work tree."""
    stored = batches.in_work_tree(workspace.root)
    sweeps = sorted(
        {batch.lock.sweep for batch in stored} & ({name} if name else {b.lock.sweep for b in stored})
    )
    return tuple(_standing(workspace, sweep, batches.of_sweep(stored, sweep), state) for sweep in sweeps)


def _standing(workspace: Workspace, sweep: str, stored: tuple[StoredBatch, ...], state: Path) -> Standing:
    table = ledger.summary(workspace, sweep)
    rows = table.rows if table else ()
    counts = Counter(str(row.status) for row in rows if row.status is not Status.MISSING)
    running = 0
    for batch in stored:
        if batch.is_active:
            found, begun = _live(batch, state / "results")
            counts += found
            running += begun
    metric = stored[-1].lock.metric
    best = ledger.ranked(rows, metric.name, metric.goal)
    return Standing(
        sweep,
        tuple(batch.name for batch in stored if batch.is_active),
        sum(batch.lock.trials for batch in stored),
        running,
        counts,
        metric.name,
        best[0] if best else None,
    )


def _live(batch: StoredBatch, results: Path) -> tuple[Counter[str], int]:
    """Count what an active batch has left on this machine's results volume, and what runs."""
    counts: Counter[str] = Counter()
    running = 0
    for trial in collect.expected(batch):
        found = [record.read(content) for content in volume.attempts(results, batch.name, trial.index)]
        ended = [one.status for one in found if isinstance(one, Record) and one.row == trial.row]
        final = [one for one in ended if one.is_final]
        if final:
            counts[str(final[0])] += 1
        elif len(ended) > batch.lock.retries:
            counts[str(Status.FAILED)] += 1
        elif (results / batch.name / str(trial.index)).is_dir():
            running += 1
    return counts, running
