"""`sweep status`: where every sweep stands, from git and the local engine, or the cluster that runs it."""

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.commands import ledger, live, recorded, searching
from generator.commands.gathered import Gathered
from generator.commands.live import Live, Remark
from generator.commands.origins import Origin, origins
from generator.commands.reached import Reached, reached
from generator.commands.standing import RANKS, Standing
from generator.commands.workspace import Workspace
from generator.engine.cluster.kubectl import Kubectl
from generator.errors import UnreadableError
from generator.formats.summary import SummaryRow
from generator.problems import Problem
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
    """In the first metric, where there are several."""
    front: tuple[SummaryRow, ...] = ()
    """The trials that no other beats, where there are several metrics."""
    remarks: tuple[Remark, ...] = ()
    """What a person should know of those in the cluster."""
    problems: tuple[Problem, ...] = ()
    """Why batches cannot be read; their trials are not counted."""
    mistakes: tuple[Problem, ...] = ()
    """Of its spec, looked at where one sweep was asked about, or where the sweep has no batch yet."""
    search: Reached | None = None
    """How far it has come, where it goes by rounds."""
    origin: Origin | None = None
    """Its spec, batches and results, where one sweep was asked about."""

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

    What runs is asked of the cluster where there is a way to one. A batch that cannot be read is among the
    problems of its sweep. Raises UsageError, ClusterError.
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
    found = origins(workspace, tip, stored, wanted) if asked is not None else {}
    come = dict(_searches(workspace, wanted, tip, stored))
    return tuple(
        replace(
            _tally(workspace, sweep, replace(look, stored=batches.of_sweep(stored, sweep))),
            mistakes=_mistakes(workspace, sweep) if asked or not batches.of_sweep(stored, sweep) else (),
            search=come.get(sweep),
            origin=found.get(sweep),
        )
        for sweep in sorted(wanted)
    )


def _mistakes(workspace: Workspace, sweep: str) -> tuple[Problem, ...]:
    """Find what is wrong with a spec. Those of all sweeps are not read: there may be many."""
    path = workspace.root / searching.spec_path(sweep)
    read = workspace.parse(path) if path.is_file() else ()
    return read if isinstance(read, tuple) else ()


def _searches(
    workspace: Workspace, wanted: Container[str], tip: str | None, stored: Sequence[StoredBatch]
) -> Iterator[tuple[str, Reached]]:
    """Say how far each search has come whose spec can be read."""
    searches = [one for one in searching.in_work_tree(workspace) if one.name in wanted]
    standing = batches.in_commit(workspace.repository, tip) if searches else ()
    held = {batch.name for batch in standing}
    for sweep in searches:
        here = batches.legible(batches.of_sweep(stored, sweep.name))
        new = [batch for batch in here if batch.name not in held]
        yield sweep.name, reached(workspace, sweep, tip, batches.of_sweep(standing, sweep.name), new)


def _tally(workspace: Workspace, sweep: str, look: "_Look") -> Tally:
    active = tuple(batch.name for batch in look.stored if batch.is_active)
    table = ledger.summary(workspace, sweep) if look.stored else None
    rows = table.rows if table else ()
    counts, problems = look.counts(rows)
    readable = batches.legible(look.stored)
    held = readable[-1].lock if readable else None
    metric = held.metric if held else None
    able = ledger.candidates(rows, readable)
    best = ledger.ranked(able, metric.name, metric.goal) if metric else ()
    return Tally(
        sweep,
        batches=len(look.stored),
        active=active,
        counts=counts,
        metric=metric.name if metric else "",
        best=best[0] if best else None,
        front=ledger.front(able, held),
        remarks=tuple(remark for name in active if name in look.live for remark in look.live[name].remarks),
        problems=problems,
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

    def counts(self, rows: tuple[SummaryRow, ...]) -> tuple[Counter[str], tuple[Problem, ...]]:
        """Count the trials by standing; tell why those of some batches are not among them."""
        listed = Counter(row.batch for row in rows)
        found: dict[str, Standing] = {}
        problems: list[Problem] = []
        _take(found, ((row.trial, Standing(row.status.kind)) for row in rows))
        for batch in self.stored:
            try:
                _take(found, self._standings(batch.vetted(), listed[batch.name]))
            except UnreadableError as error:
                problems += error.problems
        return Counter[str](found.values()), tuple(problems)

    def _standings(self, batch: StoredBatch, listed: int) -> Iterable[tuple[str, Standing]]:
        """Say where a batch's trials stand, of which so many are in the summary. Raises UnreadableError."""
        if batch.is_active:
            live = self.live.get(batch.name)
            return self._here(batch) if live is None else live.standings.items()
        if self._is_pending(batch):
            return ((row.trial, Standing.CANCELLED) for row in batch.rows)
        return ((row.trial, Standing.MISSING) for row in batch.rows if listed < batch.lock.trials)

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
