"""The state of a search at a commit: batches, observations, pending results, early-stopping rules."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from msgspec import structs

from sweepledger.errors import UnreadableError
from sweepledger.formats import evidence_jsonl
from sweepledger.formats.evidence_jsonl import EVIDENCE_SUFFIX, ForeignEvidence
from sweepledger.operations.repository import batch_records
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.results.outcomes import BatchRecords, Losses, evaluate, one_per_trial
from sweepledger.search.adaptive import Observation
from sweepledger.search.membership import membership
from sweepledger.structs.early_stopping import LearningCurve, StopRule
from sweepledger.structs.names import SPECS, results_folder
from sweepledger.structs.record import Status, TrialResult
from sweepledger.structs.run_config import Infrastructure
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import digest


def evidence_file(name: str) -> str:
    """Return the path of a file of foreign evidence in the repository."""
    return f"{SPECS}/{name}{EVIDENCE_SUFFIX}"


def stop_rules(
    sweep: Sweep, program: str, own: Iterable[BatchRecords], warm_start: Iterable[BatchRecords] = ()
) -> tuple[StopRule, ...]:
    """Compute the early-stopping rules from the recorded batches of a sweep and of its warm start.

    The sweep's own trials count only if they ran the program with this digest.
    """
    if sweep.early_stop is None:
        return ()
    current = (batch for batch in own if batch.lock.program.digest == program)
    curves: list[LearningCurve] = []
    for batch in (*current, *warm_start):
        metric = batch.lock.metric
        if (metric.name, metric.goal) != (sweep.metric.name, sweep.metric.goal):
            continue
        for outcome in evaluate(batch).outcomes:
            curve = outcome.record.curve(sweep.metric.of_curve) if outcome.record is not None else ()
            if curve and outcome.status.is_final:
                curves.append(LearningCurve(tuple(curve), outcome.status is Status.OK))
    return sweep.early_stop.compile(sweep.metric, curves)


@dataclass(frozen=True)
class RoundEvidence:
    """The input of the next round of a search."""

    sweep: Sweep
    program: str
    """Digest of the program that the next round runs, 64 hex digits."""
    batches: tuple[StoredBatch, ...] = ()
    """Every batch of the sweep, by number."""
    pending: tuple[str, ...] = ()
    """Batches without recorded results."""
    observations: tuple[Observation, ...] = ()
    """Recorded trials, the sweep's own first; trials of an earlier program count like a warm start."""
    pending_trials: tuple[Observation, ...] = ()
    """The program's trials in pending batches."""
    stop: tuple[StopRule, ...] = ()
    """Early-stopping rules for the trials of the next round."""
    foreign: Mapping[str, ForeignEvidence] = field(default_factory=dict)
    """Foreign evidence among the observations, by its name under `start`."""
    repeated: tuple[Trial, ...] = ()
    """Trials that infrastructure ended and that are to be requested again, in the order of their tables."""
    losses: Losses = field(default_factory=Losses)
    """All trials that infrastructure ended; none if the spec does not let them be requested again."""

    @property
    def rounds(self) -> int:
        """The number of the program's last round."""
        return max((batch.lock.round or 0 for batch in self._current), default=0)

    @property
    def trials(self) -> int:
        """The number of the program's trials, each counted once."""
        return len({row.trial for batch in self._current for row in batch.rows})

    @property
    def is_full(self) -> bool:
        """Whether no round may be added before a pending round is recorded, or trials are requested again."""
        rounds = self.sweep.rounds
        return bool(self.repeated) or len(self.pending) >= (1 if rounds is None else rounds.ahead)

    @property
    def awaited(self) -> str:
        """The reason why the next round waits, as text."""
        results = f"the results of {', '.join(self.pending)}" if self.pending else ""
        again = f"{len(self.repeated)} trial(s) that infrastructure ended" if self.repeated else ""
        return " and ".join(filter(None, (results, again)))

    @property
    def listed(self) -> frozenset[str]:
        """The digests of all trials that batches list."""
        return frozenset(trial.digest for batch in self.batches for trial in batch.trials)

    def expecting(self, batch: StoredBatch) -> "RoundEvidence":
        """Return the evidence once a batch without results is added."""
        return replace(
            self,
            batches=(*self.batches, batch),
            pending=(*self.pending, batch.name),
            pending_trials=(*self.pending_trials, *_pending_trials(batch, self.program)),
        )

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the distinct libraries, with versions, that proposed rounds, the latest last; omit failed models."""
        newest_first = (
            batch.lock.engine
            for batch in reversed(self.batches)
            if batch.lock.engine is not None and batch.lock.unfitted is None
        )
        return tuple(reversed(dict.fromkeys(newest_first)))

    @property
    def _current(self) -> Iterator[StoredBatch]:
        return (batch for batch in self.batches if batch.lock.program.digest == self.program)


def read_evidence(
    repository: Repository,
    commit: str | None,
    sweep: Sweep,
    program: str,
    *,
    stored: tuple[StoredBatch, ...] | None = None,
    fresh: Mapping[str, BatchRecords] = MappingProxyType({}),
) -> RoundEvidence:
    """Return the evidence of a search at a commit, with the records of `added`, by batch.

    `stored`: the sweep's batches of the commit, if they are known already. Raises RepositoryError, UnreadableError for
    a broken batch.
    """
    counted = batches.of_sweep_in_commit(repository, commit, sweep.name) if stored is None else stored
    batches.prefetch(counted)
    files = repository.read(commit, results_folder(sweep.name))
    waiting = tuple(
        batch
        for batch in counted
        if batch.name not in fresh and (batch.is_active or batch.records_file() not in files)
    )
    results = [
        fresh.get(batch.name)
        or batch_records.batch_results(batch, files, is_cancelled=batch.name in sweep.cancel)
        for batch in counted
        if batch not in waiting
    ]
    warm_start = dict(_started(repository, commit, sweep))
    infrastructure = _infrastructure(sweep, counted)
    trials = {batch.name: batch.trials for batch in counted} if infrastructure else {}
    recorded = ((trials[one.lock.name], one) for one in results)
    losses = Losses.of(recorded, infrastructure) if infrastructure else Losses()
    observations = [*_observations(sweep, results, program, frozenset(losses.last))]
    foreign = dict(foreign_evidence(repository, commit, sweep))
    started = [(name, _observations(sweep, records, program=None)) for name, records in warm_start.items()]
    started += [(name, _foreign_observations(sweep, name, one)) for name, one in foreign.items()]
    mappings = {mapping.sweep: mapping for mapping in (sweep.search.mappings if sweep.search else ())}
    for name, seen in started:
        # Trials of a warm start have their configurations mapped to the space of the search.
        observations += (
            replace(trial, configuration=mappings[name].apply(trial.configuration))
            if name in mappings
            else trial
            for trial in seen
        )
    stop = stop_rules(sweep, program, results, chain.from_iterable(warm_start.values()))
    pending = tuple(trial for batch in waiting for trial in _pending_trials(batch, program))
    names = tuple(batch.name for batch in waiting)
    repeated = (
        tuple(_repeated_trials(sweep, program, counted, infrastructure.retries, losses))
        if infrastructure is not None and losses.last
        else ()
    )
    return RoundEvidence(
        sweep, program, counted, names, tuple(observations), pending, stop, foreign, repeated, losses
    )


def _started(
    repository: Repository, commit: str | None, sweep: Sweep
) -> Iterator[tuple[str, list[BatchRecords]]]:
    """Yield the recorded batches of each sweep of a warm start."""
    names = sweep.search.start if sweep.search else ()
    by_sweep = batches.by_sweep(batches.in_commit(repository, commit)) if names else {}
    for name in names:
        files = repository.read(commit, results_folder(name))
        stored = by_sweep.get(name, ())
        batches.prefetch(stored)
        recorded = (batch for batch in stored if not batch.is_active and batch.records_file() in files)
        yield name, [batch_records.batch_results(batch, files) for batch in recorded]


def _infrastructure(sweep: Sweep, stored: Iterable[StoredBatch]) -> Infrastructure | None:
    """Return the rule for failures of infrastructure and the number of repeats, as in the newest batch.

    A changed rule in the spec affects later batches; a smaller number applies at once.
    """
    written, newest = sweep.run.infrastructure, batches.newest(stored)
    locked = None if newest is None else newest.lock.run.infrastructure
    if written is None or locked is None:
        return None
    return structs.replace(locked, retries=min(written.retries, locked.retries))


def _repeated_trials(
    sweep: Sweep, program: str, stored: Sequence[StoredBatch], retries: int, losses: Losses
) -> Iterator[Trial]:
    """Yield the trials that infrastructure ended and that may be requested again.

    Not those that a later batch lists, whose batch was cancelled, that have another program, or that the spec does
    not contain any more.
    """
    newest = {trial.digest: batch.name for batch in stored for trial in batch.trials}
    members = membership(sweep)
    if isinstance(members, tuple):
        return  # the spec cannot be expanded: its author hears of it
    for batch in stored:
        if batch.lock.program.digest != program or batch.name in sweep.cancel:
            continue
        for trial in batch.trials:
            lost_in, _ = losses.last.get(trial.digest, ("", None))
            if (
                batch.name == lost_in == newest[trial.digest]
                and losses.counts[trial.digest] <= retries
                and members(trial.assignment, trial.replicate)
            ):
                yield trial


def foreign_evidence(
    repository: Repository, commit: str | None, sweep: Sweep
) -> Iterator[tuple[str, ForeignEvidence]]:
    """Yield the foreign evidence of a sweep's warm start at a commit. Raises UnreadableError for a broken file."""
    names = sweep.search.start if sweep.search else ()
    paths = {evidence_file(name): name for name in names}
    contents = repository.read(commit, *paths) if paths else {}
    for path, name in paths.items():
        if path in contents:
            try:
                yield name, evidence_jsonl.read(contents[path])
            except ValueError as error:
                hint = "write it again with `sweep import trials`, or remove it from `start`"
                problem = Problem(path, 0, 0, "", str(error), "evidence-unreadable", hint)
                raise UnreadableError(problem) from error


def foreign_labels(repository: Repository, commit: str | None, sweep: Sweep) -> tuple[str, ...]:
    """Return one line of text for people about each file of foreign evidence of a sweep."""
    try:
        return tuple(evidence.label(name) for name, evidence in foreign_evidence(repository, commit, sweep))
    except UnreadableError as error:
        return tuple(map(str, error.problems))


def _foreign_observations(sweep: Sweep, name: str, evidence: ForeignEvidence) -> Iterator[Observation]:
    """Yield the trials of foreign evidence, which belong to no round and have no checkpoint."""
    metrics = [metric.name for metric in sweep.metrics]
    for number, trial in enumerate(evidence.trials):
        values = _finite([trial.metrics.get(metric) for metric in metrics])
        yield Observation(
            configuration=trial.configuration,
            replicate=0,
            status=Status.MISSING if trial.status is Status.OK and values is None else trial.status,
            values=values,
            round=None,
            # Its own identity, so that no trial of this repository is taken for it.
            trial=digest(["foreign", name, number, dict(trial.configuration)]),
        )


def _observations(
    sweep: Sweep, results: Sequence[BatchRecords], program: str | None, lost: Container[str] = ()
) -> Iterator[Observation]:
    """Yield each trial once; trials of another program belong to no round.

    Trials in `lost`, by digest, are no observations: infrastructure ended them.
    """
    metrics = [metric.name for metric in sweep.metrics]
    # The batches of a static sweep before its spec had rounds are its own, too.
    before_rounds = 0 if sweep.search is None else None
    rounds: dict[tuple[str, str], int] = {}
    parents: dict[tuple[str, str], str] = {}
    for batch in results:
        for trial in batch.expected:
            key = (batch.lock.program.digest, trial.trial)
            if batch.lock.round is not None:
                rounds.setdefault(key, batch.lock.round)
            if trial.index in batch.lock.parents:
                parents.setdefault(key, batch.lock.parents[trial.index])
    for result in one_per_trial(outcome for batch in results for outcome in evaluate(batch).outcomes):
        key = (result.program, result.trial)
        values = _metric_values(result, metrics)
        identity = Trial(result.assignment, result.program, result.replicate).digest
        lacks_metrics = result.status is Status.OK and values is None
        shows_nothing = identity in lost or lacks_metrics or result.status is Status.CANCELLED
        yield Observation(
            configuration=result.assignment,
            replicate=result.replicate,
            status=Status.MISSING if shows_nothing else result.status.kind,
            values=values,
            round=rounds.get(key, before_rounds) if result.program == program else None,
            trial=identity,
            parent=parents.get(key),
        )


def _pending_trials(batch: StoredBatch, program: str) -> Iterator[Observation]:
    """Yield the trials of a batch without results; none if the batch has another program than the search."""
    if batch.lock.program.digest != program:
        return
    for row, trial in enumerate(batch.trials):
        yield Observation(
            configuration=trial.assignment,
            replicate=trial.replicate,
            status=Status.MISSING,
            values=None,
            # The trials of a retry have been in a round before.
            round=batch.lock.round or 1,
            trial=trial.digest,
            parent=batch.lock.parents.get(row),
        )


def _metric_values(outcome: TrialResult, metrics: Sequence[str]) -> tuple[float, ...] | None:
    """Return the metrics in the order of the spec; None if one was not reported as a finite number."""
    if outcome.record is None:
        return None
    reported = [outcome.record.metrics.get(name) for name in metrics]
    if reported[0] is None and outcome.status is not Status.OK:
        points = reversed(outcome.record.curve(metrics[0]))
        reported[0] = next((value for _, value in points if value is not None), None)
    return _finite(reported)


def _finite(reported: Sequence[float | None]) -> tuple[float, ...] | None:
    values = tuple(value for value in reported if value is not None)
    return values if len(values) == len(reported) else None
