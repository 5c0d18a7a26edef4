"""What a commit holds of a search: its batches, what came of their trials, and what is waited for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from generator.commands import recorded, stopping
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository
from generator.results import BatchResults, judge, results_folder
from generator.results.outcomes import one_a_trial
from generator.search.adaptive import Observation
from generator.structs.record import Outcome, Record, Status
from generator.structs.stopping import StopRule
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial


@dataclass(frozen=True)
class Evidence:
    """What is known of a search before its next round is drawn."""

    sweep: Sweep
    program: str
    """Digest of the program that the next round runs, 64 hex digits."""
    asked: tuple[StoredBatch, ...] = ()
    """Every batch of the sweep, by number."""
    waiting: tuple[str, ...] = ()
    """Those that are not recorded yet."""
    observations: tuple[Observation, ...] = ()
    """What is recorded, the sweep's own first; trials of an earlier program count like a warm start."""
    stop: tuple[StopRule, ...] = ()
    """By which the trials of the next round are ended early."""

    @property
    def rounds(self) -> int:
        """The number of the last round that the program was asked for."""
        return max((batch.lock.round or 0 for batch in self._current), default=0)

    @property
    def trials(self) -> int:
        """How many trials of the program were asked for, each counted once."""
        return len({row.trial for batch in self._current for row in batch.rows})

    @property
    def engines(self) -> tuple[str, ...]:
        """What drew the rounds so far, each once, the last one last."""
        found = (batch.lock.engine for batch in reversed(self.asked) if batch.lock.engine is not None)
        return tuple(reversed(dict.fromkeys(found)))

    @property
    def _current(self) -> Iterator[StoredBatch]:
        return (batch for batch in self.asked if batch.lock.program.digest == self.program)


@dataclass(frozen=True, slots=True)
class Look:
    """Where evidence is looked for."""

    repository: Repository
    commit: str | None
    fresh: Mapping[str, BatchResults] = field(default_factory=dict)
    """What the commit that is being made records, by batch."""
    asked: tuple[StoredBatch, ...] | None = None
    """The sweep's batches of the commit, where somebody has them already."""
    hidden: Collection[str] = ()
    """Batches of the commit that do not count: they are only proposed."""

    def evidence(self, sweep: Sweep, program: str) -> Evidence:
        """Gather what is known of a search. Raises RepositoryError, UnreadableError for a broken batch."""
        asked = tuple(one for one in self._asked(sweep) if one.name not in self.hidden)
        batches.load(asked)
        known = self.repository.read(self.commit, results_folder(sweep.name))
        waiting = tuple(batch.name for batch in asked if not self._is_recorded(batch, known))
        results = [self._results(sweep, batch, known) for batch in asked if batch.name not in waiting]
        started = [list(one) for one in self._started(sweep)]
        found = [*_observed(sweep, results, program)]
        found += [one for other in started for one in _observed(sweep, other, program=None)]
        stop = stopping.rules(sweep, program, results, chain.from_iterable(started))
        return Evidence(sweep, program, asked, waiting, tuple(found), stop)

    def stop(self, sweep: Sweep, program: str) -> tuple[StopRule, ...]:
        """Work out by which rules trials that begin now are ended early; reads nothing for other sweeps."""
        return () if sweep.early_stop is None else self.evidence(sweep, program).stop

    def _is_recorded(self, batch: StoredBatch, known: Mapping[str, bytes]) -> bool:
        archived = not batch.is_active and recorded.records_file(batch) in known
        return batch.name in self.fresh or archived

    def _results(self, sweep: Sweep, batch: StoredBatch, known: Mapping[str, bytes]) -> BatchResults:
        is_cancelled = batch.name in sweep.cancel
        return self.fresh.get(batch.name) or recorded.results(batch, known, is_cancelled=is_cancelled)

    def _asked(self, sweep: Sweep) -> tuple[StoredBatch, ...]:
        if self.asked is not None:
            return self.asked
        return batches.of_sweep(batches.in_commit(self.repository, self.commit), sweep.name)

    def _started(self, sweep: Sweep) -> Iterator[Iterator[BatchResults]]:
        """Take what each of other sweeps has recorded, for a warm start."""
        search = sweep.search
        stored = batches.in_commit(self.repository, self.commit) if search and search.start else ()
        for name in search.start if search else ():
            known = self.repository.read(self.commit, results_folder(name))
            listed = batches.of_sweep(stored, name)
            batches.load(listed)
            held = [one for one in listed if not one.is_active and recorded.records_file(one) in known]
            yield (recorded.results(one, known) for one in held)


def _observed(sweep: Sweep, found: Sequence[BatchResults], program: str | None) -> Iterator[Observation]:
    """Give what came of each trial once; under another program than this it is of no round."""
    metrics = [metric.name for metric in sweep.metrics]
    rounds: dict[tuple[str, str], int] = {}
    parents: dict[tuple[str, str], str] = {}
    for batch in found:
        for trial in batch.expected:
            key = (batch.lock.program.digest, trial.trial)
            if batch.lock.round is not None:
                rounds.setdefault(key, batch.lock.round)
            if trial.index in batch.lock.parents:
                parents.setdefault(key, batch.lock.parents[trial.index])
    for one in one_a_trial(outcome for batch in found for outcome in judge(batch).outcomes):
        key = (one.program, one.trial)
        values = _values(one, metrics)
        yield Observation(
            assignment=one.assignment,
            replicate=one.replicate,
            status=_told(one, values),
            values=values,
            round=rounds.get(key) if one.program == program else None,
            trial=Trial(one.assignment, one.program, one.replicate).digest,
            parent=parents.get(key),
        )


def _told(outcome: Outcome, values: tuple[float, ...] | None) -> Status:
    """Say how a trial ended; without the metrics that are asked for today it shows nothing."""
    shows_nothing = outcome.status is Status.CANCELLED or (outcome.status is Status.OK and values is None)
    return Status.MISSING if shows_nothing else outcome.status.kind


def _values(outcome: Outcome, metrics: Sequence[str]) -> tuple[float, ...] | None:
    """Give the metrics in the order of the spec; None where one was not reported as a finite number."""
    if outcome.record is None:
        return None
    told = [outcome.record.metrics.get(name) for name in metrics]
    if told[0] is None and outcome.status is not Status.OK:
        told[0] = _last(outcome.record)
    finite = tuple(value for value in told if value is not None)
    return finite if len(finite) == len(metrics) else None


def _last(record: Record) -> float | None:
    """Give the last finite value of the curve."""
    return next((value for _, value in reversed(record.curve) if value is not None), None)
