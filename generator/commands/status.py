"""`sweep status`: where every sweep stands, from git and the local engine, or the cluster that runs it."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.commands import ledger, live, recorded
from generator.commands.gathered import Gathered
from generator.commands.live import Live, Remark
from generator.commands.standing import RANKS, Standing
from generator.commands.workspace import Workspace
from generator.engine.cluster.kubectl import Kubectl
from generator.formats.summary import SummaryRow
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.results import judge


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
    remarks: tuple[Remark, ...] = ()
    """What a person should know of those in the cluster."""

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


def status(
    workspace: Workspace,
    asked: str | None = None,
    *,
    state: Path,
    kubectl: Kubectl | None = None,
    clock: Callable[[], float] = time.time,
) -> tuple[Tally, ...]:
    """Count the trials of one sweep, or of all that have a spec or a batch.

    What runs is asked of the cluster where there is a way to one. Raises UsageError, ClusterError.
    """
    stored = batches.in_work_tree(workspace.root)
    known = ledger.sweeps(workspace, stored)
    wanted = known if asked is None else {ledger.chosen(workspace, asked, known)}
    tip = workspace.standing(None)
    followed = ledger.batch_names(workspace.repository, tip)
    look = _Look(workspace, followed, state / "results")
    if kubectl is not None:
        running = [one for one in stored if one.is_active and one.name in followed and one.sweep in wanted]
        look = replace(look, live=live.look(workspace, kubectl, running, tip=tip, now=clock()))
    return tuple(
        _tally(workspace, sweep, replace(look, stored=batches.of_sweep(stored, sweep)))
        for sweep in sorted(wanted)
    )


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
        remarks=tuple(remark for name in active if name in look.live for remark in look.live[name].remarks),
    )


@dataclass(frozen=True)
class _Look:
    """A sweep's batches, and where to look for what became of them."""

    workspace: Workspace
    followed: frozenset[str]
    """Batches that controllers see."""
    results: Path
    """This machine's results volume."""
    live: Mapping[str, Live] = field(default_factory=dict)
    """What a cluster says of active batches, where one was asked."""
    stored: tuple[StoredBatch, ...] = ()

    def counts(self, rows: tuple[SummaryRow, ...]) -> Counter[str]:
        listed = Counter(row.batch for row in rows)
        found: dict[str, Standing] = {}
        _take(found, ((row.trial, Standing(row.status.kind)) for row in rows))
        for batch in self.stored:
            if batch.name in self.live and batch.is_active:
                _take(found, self.live[batch.name].standings.items())
            elif batch.is_active:
                _take(found, self._here(batch))
            elif self._is_pending(batch):
                _take(found, ((row.trial, Standing.CANCELLED) for row in batch.rows))
            elif listed[batch.name] < batch.lock.trials:
                _take(found, ((row.trial, Standing.MISSING) for row in batch.rows))
        return Counter[str](found.values())

    def _is_pending(self, batch: StoredBatch) -> bool:
        """Tell whether an archived batch was cancelled, and is not yet recorded."""
        return not (self.workspace.root / recorded.records_file(batch)).is_file()

    def _here(self, batch: StoredBatch) -> Iterator[tuple[str, Standing]]:
        """Say what an active batch has left on this machine's results volume, as the collector would."""
        judged = judge(Gathered.read(self.results, batch).results)
        unknown = Standing.PENDING if batch.name in self.followed else Standing.PLANNED
        for outcome, attempts in zip(judged.outcomes, judged.attempts, strict=True):
            # The launcher starts nothing over a record that is final to it, whatever we think of its metric.
            if len(attempts) > batch.lock.retries or any(one.record.status.is_final for one in attempts):
                yield outcome.trial, Standing(outcome.status.kind)
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
