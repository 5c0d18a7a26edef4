"""`sweep status`: where every sweep stands, from git and, where one runs, the local engine."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from generator.commands import collect, ledger
from generator.commands.workspace import Workspace
from generator.errors import UsageError
from generator.formats import record
from generator.formats.summary import SummaryRow
from generator.repo import batches, volume
from generator.repo.batches import StoredBatch
from generator.results import BatchResults, judge
from generator.structs.names import is_sweep_name
from generator.structs.record import Record, Status


@dataclass(frozen=True)
class Tally:
    """A sweep's trials by what became of them."""

    sweep: str
    batches: int
    """In the work tree, active or archived; none while the sweep is only a spec."""
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


def status(workspace: Workspace, name: str | None = None, *, state: Path) -> tuple[Tally, ...]:
    """Count the trials of one sweep, or of all that have a spec or a batch. Raises UsageError."""
    stored = batches.in_work_tree(workspace.root)
    specs = {path.stem for path in workspace.spec_paths() if is_sweep_name(path.stem)}
    known = sorted(specs | {batch.lock.sweep for batch in stored})
    if name is not None and name not in known:
        raise UsageError(f"no sweep {name!r}", hint=f"sweeps: {', '.join(known) or 'none yet'}")
    return tuple(
        _tally(workspace, sweep, batches.of_sweep(stored, sweep), state)
        for sweep in known
        if name in {None, sweep}
    )


def _tally(workspace: Workspace, sweep: str, stored: tuple[StoredBatch, ...], state: Path) -> Tally:
    if not stored:
        return Tally(
            sweep, batches=0, active=(), planned=0, running=0, counts=Counter(), metric="", best=None
        )
    table = ledger.summary(workspace, sweep)
    rows = table.rows if table else ()
    counts = Counter(str(row.status) for row in rows if row.status is not Status.MISSING)
    running = 0
    active = [batch for batch in stored if batch.is_active]
    for batch in active:
        found, begun = _live(batch, state / "results")
        counts += found
        running += begun
    metric = stored[-1].lock.metric
    best = ledger.ranked(rows, metric.name, metric.goal)
    return Tally(
        sweep,
        batches=len(stored),
        active=tuple(batch.name for batch in active),
        planned=sum(batch.lock.trials for batch in stored),
        running=running,
        counts=counts,
        metric=metric.name,
        best=best[0] if best else None,
    )


def _live(batch: StoredBatch, results: Path) -> tuple[Counter[str], int]:
    """Count what an active batch has left on this machine's results volume, as the collector would."""
    expected = collect.expected(batch)
    left = [
        record.read(content)
        for trial in expected
        for content in volume.attempts(results, batch.name, trial.index)
    ]
    records = tuple(one for one in left if isinstance(one, Record))
    judged = judge(BatchResults(batch.lock, expected, records))
    counts: Counter[str] = Counter()
    running = 0
    for outcome, attempts in zip(judged.outcomes, judged.attempts, strict=True):
        # The launcher starts nothing over a record that is final to it, whatever we think of its metric.
        if len(attempts) > batch.lock.retries or any(one.record.status.is_final for one in attempts):
            counts[str(outcome.status)] += 1
        elif (results / batch.name / str(outcome.index)).is_dir():
            running += 1
    return counts, running
