"""`sweep status`: where every sweep stands, from git and, where one runs, the local engine."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from generator.commands import ledger, recorded
from generator.commands.workspace import Workspace
from generator.formats import record
from generator.formats.summary import SummaryRow
from generator.repo import batches, volume
from generator.repo.batches import StoredBatch
from generator.results import BatchResults, judge
from generator.structs.record import Record


class Standing(StrEnum):
    """Where a trial stands. Of a trial that several batches list, the first of these counts."""

    OK = "ok"
    DIVERGED = "diverged"
    RUNNING = "running"
    """Active, with an attempt begun and none final."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Its batch was cancelled before it ended."""
    PENDING = "pending"
    """Merged and not begun, as far as this machine can see."""
    MISSING = "missing"
    """It has come to its end, or was cut off, without a record."""
    PLANNED = "planned"
    """Only in batches that controllers do not see: what they follow does not hold them yet."""


RANKS = {standing: rank for rank, standing in enumerate(Standing)}


@dataclass(frozen=True)
class Tally:
    """A sweep's trials by what became of them."""

    sweep: str
    batches: int
    """In the work tree, active or archived; none while the sweep is only a spec."""
    active: tuple[str, ...]
    """Batches that the cluster is asked to run, or will be."""
    counts: Counter[str]
    """By standing."""
    metric: str = ""
    best: SummaryRow | None = None

    @property
    def trials(self) -> int:
        """How many there are, each counted once."""
        return self.counts.total()

    @property
    def planned(self) -> int:
        """Trials that nobody is asked for before a merge."""
        return self.counts[Standing.PLANNED]

    @property
    def running(self) -> int:
        """Trials at work."""
        return self.counts[Standing.RUNNING]

    @property
    def pending(self) -> int:
        """Trials that were asked for and have not begun."""
        return self.counts[Standing.PENDING]

    @property
    def missing(self) -> int:
        """Trials that ended without a record."""
        return self.counts[Standing.MISSING]


def status(workspace: Workspace, asked: str | None = None, *, state: Path) -> tuple[Tally, ...]:
    """Count the trials of one sweep, or of all that have a spec or a batch. Raises UsageError."""
    stored = batches.in_work_tree(workspace.root)
    known = ledger.sweeps(workspace, stored)
    wanted = known if asked is None else {ledger.chosen(workspace, asked, known)}
    followed = ledger.batch_names(workspace.repository, workspace.standing(None))
    return tuple(
        _tally(workspace, sweep, _look(workspace, batches.of_sweep(stored, sweep), followed, state))
        for sweep in sorted(wanted)
    )


def _look(
    workspace: Workspace, stored: tuple[StoredBatch, ...], followed: frozenset[str], state: Path
) -> "_Look":
    pending = frozenset(
        batch.name
        for batch in stored
        if not batch.is_active and not (workspace.root / recorded.records_file(batch)).is_file()
    )
    return _Look(stored, followed, state / "results", pending)


def _tally(workspace: Workspace, sweep: str, look: "_Look") -> Tally:
    active = tuple(batch.name for batch in look.stored if batch.is_active)
    if not look.stored:
        return Tally(sweep, batches=0, active=(), counts=Counter())
    table = ledger.summary(workspace, sweep)
    rows = table.rows if table else ()
    metric = look.stored[-1].lock.metric
    best = ledger.ranked(rows, metric.name, metric.goal)
    return Tally(
        sweep,
        batches=len(look.stored),
        active=active,
        counts=look.counts(rows),
        metric=metric.name,
        best=best[0] if best else None,
    )


@dataclass(frozen=True)
class _Look:
    """A sweep's batches, and where to look for what became of them."""

    stored: tuple[StoredBatch, ...]
    followed: frozenset[str]
    """Batches that controllers see."""
    results: Path
    """This machine's results volume."""
    pending: frozenset[str]
    """Batches that were cancelled, and not yet recorded."""

    def counts(self, rows: tuple[SummaryRow, ...]) -> Counter[str]:
        listed = Counter(row.batch for row in rows)
        found: dict[str, Standing] = {}
        _take(found, ((row.trial, Standing(row.status)) for row in rows))
        for batch in self.stored:
            if batch.is_active:
                _take(found, self._live(batch))
            elif batch.name in self.pending:
                _take(found, ((row.trial, Standing.CANCELLED) for row in batch.rows))
            elif listed[batch.name] < batch.lock.trials:
                _take(found, ((row.trial, Standing.MISSING) for row in batch.rows))
        return Counter[str](found.values())

    def _live(self, batch: StoredBatch) -> Iterator[tuple[str, Standing]]:
        """Say what an active batch has left on this machine's results volume, as the collector would."""
        expected = recorded.expected(batch)
        left = [
            record.read(content)
            for trial in expected
            for content in volume.attempts(self.results, batch.name, trial.index)
        ]
        records = tuple(one for one in left if isinstance(one, Record))
        judged = judge(BatchResults(batch.lock, expected, records))
        unknown = Standing.PENDING if batch.name in self.followed else Standing.PLANNED
        for outcome, attempts in zip(judged.outcomes, judged.attempts, strict=True):
            # The launcher starts nothing over a record that is final to it, whatever we think of its metric.
            if len(attempts) > batch.lock.retries or any(one.record.status.is_final for one in attempts):
                yield outcome.trial, Standing(outcome.status)
            elif (self.results / batch.name / str(outcome.index)).is_dir():
                yield outcome.trial, Standing.RUNNING
            else:
                yield outcome.trial, unknown


def _take(found: dict[str, Standing], news: Iterable[tuple[str, Standing]]) -> None:
    """Keep of each trial what is most."""
    for trial, standing in news:
        known = found.get(trial)
        if known is None or RANKS[standing] < RANKS[known]:
            found[trial] = standing
