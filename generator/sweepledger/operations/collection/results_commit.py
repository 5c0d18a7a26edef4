"""The results commit of a sweep: records, summary and report; ended batches move to the archive."""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sweepledger.errors import ContentionError, RepositoryError, SeveralError, StorageError, UnreadableError
from sweepledger.operations.collection.attempts import (
    FOREIGN,
    BatchAttempts,
    late_attempts,
    with_late_records,
)
from sweepledger.operations.collection.cluster_evidence import PodStore
from sweepledger.operations.collection.record_store import RecordStore, RecordStores
from sweepledger.operations.repository import at_commit, batch_records
from sweepledger.operations.repository.workspace import Target
from sweepledger.operations.rounds import round_commit
from sweepledger.operations.rounds.next_round import RoundBlocked, RoundDue, Step
from sweepledger.problems import Problem, Severity
from sweepledger.render.platform.batch_objects import batch_paths
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Change, delete_branches, proposals, superseded_proposals
from sweepledger.results.summary import Summary, commit_message
from sweepledger.results.tree import changed_files
from sweepledger.structs.names import RESULTS, SETTINGS_FILE, results_folder
from sweepledger.structs.settings.results import PullRequestResults


def recorded_by(target: Target, tip: str | None) -> Callable[[StoredBatch], bool]:
    """Return whether the collector of the target's cluster records a batch; without a cluster, it records every batch.

    It records those of its cluster. Batches cancelled in a cluster that was given up are recorded by the first of the
    remaining clusters, without evidence. Raises RepositoryError if the commit marks its own cluster as given up.
    """
    cluster = target.cluster
    if cluster is None:
        return lambda _: True
    settings = at_commit.settings_or_defaults(target.repository, tip)
    live = settings.fleet.live_clusters
    if cluster in settings.fleet.lost_clusters:
        raise RepositoryError(
            f"cluster {cluster} was given up: nothing of it is recorded",
            hint=f"if it is back, remove `lost` from clusters.{cluster}",
        )
    if cluster not in live:
        raise RepositoryError(
            f"must be a cluster of {SETTINGS_FILE}, got {cluster!r}: nothing of it is recorded",
            hint=f"it has {', '.join(live) or 'none'}",
        )

    def is_recorded(batch: StoredBatch) -> bool:
        try:
            where = batch.lock.cluster
        except UnreadableError:
            return True  # which is reported
        return where == cluster or (not batch.is_active and where not in live and cluster == live[0])

    return is_recorded


@dataclass(frozen=True)
class ResultsCommit:
    """What one results commit recorded."""

    batches: tuple[str, ...]
    """The batches that it records and archives."""
    summary: Summary
    """The summary of the whole sweep, these batches included."""
    corrupt: tuple[str, ...] = ()
    """Why record files were ignored, one word each: unreadable, or not of a trial of their batch."""
    commit: str = ""
    step: Step | RoundBlocked | None = None
    """The next step of a search that the collector continues; the same commit adds a round that is due."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        summary = self.summary
        return {
            "sweep": summary.sweep,
            "batches": self.batches,
            "commit": self.commit,
            "corrupt": self.corrupt,
            "counts": summary.counts,
            "best": summary.winner and {"trial": summary.winner.trial, "value": summary.best},
            # None for sweeps without a search, and if rounds are not requested automatically.
            "next": self.step and self.step.as_data(),
        }

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return a warning if files of trials were ignored, and a warning for each doubt about the new records."""
        folder = results_folder(self.summary.sweep)
        listed = [
            ("results-doubtful", doubt.text, f"`sweep results {self.summary.sweep}` shows the numbers")
            for doubt in self.summary.doubts
            if doubt.batches.intersection(self.batches)
        ]
        if self.corrupt:
            counts = sorted(Counter(self.corrupt).items())
            reasons = ", ".join(f"{reason} {count}" for reason, count in counts)
            message = (
                f"{len(self.corrupt)} record file(s) of {', '.join(self.batches)} are not used: {reasons}"
            )
            hint = "`sweep results` shows what became of the trials; the bounds of records are in docs/results.md"
            listed.append(("records-ignored", message, hint))
        return tuple(
            Problem(folder, 0, 0, "", message, code, hint, Severity.WARNING) for code, message, hint in listed
        )


class UnrecordedError(SeveralError):
    """Some batches could not be recorded and stay unchanged; all others were recorded."""

    def __init__(self, done: Iterable[ResultsCommit], failures: Iterable[RepositoryError]) -> None:
        super().__init__(failures)
        self.done = tuple(done)


CompleteAttempts = Callable[[BatchAttempts], BatchAttempts | None]
"""Adds other evidence of the attempts of a batch; returns None if the batch must not be recorded yet."""


def commit_results(
    target: Target,
    stores: RecordStores,
    ended: Collection[str],
    *,
    alive: Container[str] | None = None,
    complete: CompleteAttempts | None = None,
    pods: PodStore | None = None,
    running: Container[str] = (),
) -> tuple[ResultsCommit, ...]:
    """Record every active batch whose trials have ended; `ended` names those whose Jobs have ended.

    `running` batches are not read before every trial has written something: they end only once all have records.

    A batch without a known Job ends by its records, unless `complete` overrides this. A cancelled batch is
    recorded once it is not in `alive`, the batches with a Job or pod; None if this is unknown. `pods` reads
    batches whose store needs their pods; without it, their records are on the volume, too. Late records
    correct earlier commits. Nothing is committed if nothing is new. Raises UnrecordedError at the end, after
    everything else was recorded, also for a bucket that does not answer; RepositoryError, and StorageError for a
    volume, before anything was.
    """
    repository, tip = target.repository, target.tip()
    stored, is_own = batches.in_commit(repository, tip), recorded_by(target, tip)
    active = [batch for batch in stored if batch.is_active and is_own(batch)]
    cancelled = [*filter(is_own, batch_records.unrecorded_batches(repository, tip, stored))]
    batches.prefetch(batch for batch in active if batch.name in ended)
    reader = _AttemptsReader(stores, ended, alive or (), complete, pods, running)
    now = reader.gather((*active, *(() if alive is None else cancelled)))
    attempts = late_attempts(repository, tip, stores.of_new, stored, by_engine=pods is None)
    now |= reader.late(late for late in attempts if is_own(late.batch))
    if pods is not None and at_commit.settings_or_defaults(repository, tip).results.store.facts.holds_pods:
        unknown = {batch.name for batch in cancelled}
        archived = {batch.name for batch in stored if not batch.is_active} - unknown
        now |= reader.late(pods.late(stored, archived))
    failures: list[RepositoryError] = [*reader.failures]
    done: list[ResultsCommit] = []
    for sweep in sorted({late_or_new.batch.sweep for late_or_new in now.values()}):
        try:
            of_sweep = {name: read for name, read in now.items() if read.batch.sweep == sweep}
            recording = Recording(target, sweep, of_sweep)
            commit, made = _commit_accepted(recording)
            if commit is not None and made is not None:
                done.append(replace(made, commit=commit))
        except UnreadableError as error:
            failures.append(error)
        except RepositoryError as error:
            kind = ContentionError if isinstance(error, ContentionError) else RepositoryError
            failures.append(kind(f"{sweep} is not recorded: {error}", hint=error.hint))
            failures[-1].__cause__ = error
            if isinstance(error, ContentionError):
                break  # the commits of all other sweeps would lose to the same writers
    try:
        _withdraw_proposals(
            target, tip, (*active, *cancelled, *(late_or_new.batch for late_or_new in now.values()))
        )
    except RepositoryError as error:
        failures.append(error)
    if failures:
        raise UnrecordedError(done, failures)
    return tuple(done)


@dataclass(frozen=True)
class _AttemptsReader:
    stores: RecordStores
    ended: Collection[str]
    alive: Container[str]
    complete: CompleteAttempts | None
    pods: PodStore | None
    """None if the local engine wrote records for pods that left none."""
    running: Container[str]
    failures: list[RepositoryError] = field(default_factory=list)

    def gather(self, stored: Iterable[StoredBatch]) -> dict[str, BatchAttempts]:
        """Return the attempts to record, by batch; add batches that cannot be read to the failures.

        Raises StorageError for a volume, which all batches have in common.
        """
        attempts: dict[str, BatchAttempts] = {}
        for batch in stored:
            try:
                read = self._at(batch)
            except UnreadableError as error:
                self.failures.append(error)
            except StorageError as error:
                self._fail(self.stores.of(batch), f"{batch.name} is not recorded", error)
            else:
                attempts |= {} if read is None else {batch.name: read}
        return attempts

    def late(self, attempts: Iterable[BatchAttempts]) -> dict[str, BatchAttempts]:
        """Return late attempts by batch; raise, and add to the failures, as `gather` does."""
        found: dict[str, BatchAttempts] = {}
        try:
            found.update((late.batch.name, late) for late in attempts)
        except StorageError as error:
            self._fail(self.stores.of_new, "late records are not looked for", error)
        return found

    def _fail(self, store: RecordStore, what: str, error: StorageError) -> None:
        if store.is_common:
            raise error
        failure = RepositoryError(f"{what}: {error}", hint=error.hint)
        failure.__cause__ = error
        self.failures.append(failure)

    def _at(self, batch: StoredBatch) -> BatchAttempts | None:
        """Return the attempts of a batch; None if the batch must not be recorded. Raises UnreadableError."""
        name = batch.vetted().name
        pods = self.pods if self.pods is not None and batch.lock.store.facts.holds_pods else None
        if not batch.is_active and name in self.alive:
            return None
        if batch.is_active and name not in self.ended:
            # Pods that are held say how a batch ended, so it is read once.
            if pods is not None or not self.stores.of(batch).has_begun(name):
                return None
            if name in self.running and not self.stores.of(batch).has_every_trial(batch.lock):
                return None
        if pods is None:
            read = BatchAttempts.read(self.stores.of(batch), batch, by_engine=self.pods is None)
        else:
            read = pods.read(batch)
        if batch.is_active and self.complete is not None:
            return self.complete(read)
        return read if not batch.is_active or name in self.ended or read.is_settled() else None


def _commit_accepted(recording: "Recording") -> tuple[str | None, ResultsCommit | None]:
    """Make the results commit, or a smaller one if the server refuses it. Raises RepositoryError.

    A server may refuse the round, or corrections of recorded batches, and accept the rest, which must not wait.
    """
    target = recording.target
    try:
        return target.commit(recording.change, proposals=results_folder(recording.sweep))
    except RepositoryError as error:
        tip = target.tip()
        fresh, made = recording.fresh(tip), recording.change(tip)[1] if tip else None
        adds_round = made is not None and isinstance(made.step, RoundDue)
        if isinstance(error, ContentionError) or not (adds_round or 0 < len(fresh) < len(recording.attempts)):
            raise
        smaller = replace(recording, refused=error, attempts=recording.attempts if adds_round else fresh)
    return _commit_accepted(smaller)


def _withdraw_proposals(target: Target, tip: str | None, waiting: Iterable[StoredBatch]) -> None:
    """Delete the proposal branches that were merged or replaced.

    Runs after the replacement was pushed: if it is interrupted, the next run deletes the older branch.
    """
    if not target.is_reviewed or target.remote is None or tip is None:
        return
    listed = proposals(target.repository, target.remote, RESULTS)
    folders = {results_folder(batch.sweep) for batch in waiting}
    delete_branches(target.repository, target.remote, superseded_proposals(listed, tip, pending=folders))


@dataclass(frozen=True)
class Recording:
    """The records to commit for ended batches of a sweep."""

    target: Target
    sweep: str
    attempts: Mapping[str, BatchAttempts]
    refused: RepositoryError | None = None
    """Why a commit that also added a round was refused; None: a round may be added."""

    def fresh(self, base: str | None) -> Mapping[str, BatchAttempts]:
        """Return the attempts of batches without records at a commit."""
        files = self.target.repository.files(base, results_folder(self.sweep))
        return {name: read for name, read in self.attempts.items() if read.batch.records_file() not in files}

    def change(self, base: str) -> tuple[Change | None, ResultsCommit | None]:
        """Return the changes and the records of the commit on top of `base`; None if nothing is left to record."""
        repository = self.target.repository
        stored = batches.of_sweep_in_commit(repository, base, self.sweep)
        batches.prefetch(stored)
        pending = batch_records.unrecorded_batches(repository, base, stored)
        files = repository.read(base, results_folder(self.sweep))
        again = (
            (batch.name, batch_records.batch_results(batch, files))
            for batch in stored
            if batch.name in self.attempts and batch.records_file() in files
        )
        completed = {name: with_late_records(one, self.attempts[name].records) for name, one in again}
        late = {name: one for name, one in completed.items() if one is not None}
        recorded = [
            batch
            for batch in stored
            if batch.name in self.attempts and (batch.is_active or batch in pending or batch.name in late)
        ]
        if not recorded:
            return None, None
        unfinished = [
            batch for batch in stored if batch not in recorded and (batch.is_active or batch in pending)
        ]
        settings = at_commit.settings_or_defaults(repository, base)
        is_marking = settings.results.from_pull_request is PullRequestResults.MARKED
        marks = self.target.is_laptop and is_marking
        records = [
            late.get(batch.name) or replace(self.attempts[batch.name].concluded, is_marked=marks)
            if batch in recorded
            else batch_records.batch_results(batch, files)
            for batch in stored
            if batch not in unfinished
        ]
        newest = batches.newest(recorded)
        assert newest is not None
        spec = at_commit.SpecAtCommit.at(repository, base, newest.lock.spec.path)
        cancelled = {*spec.cancelled, *(batch.name for batch in pending)}
        summary = spec.summarised(replace(each, is_cancelled=each.lock.name in cancelled) for each in records)
        names = tuple(batch.name for batch in recorded)
        corrupt = tuple(reason for name in names for reason in self.attempts[name].corrupt)
        foreign = sum(judged.foreign for judged in summary.batches if judged.lock.name in names)
        step = round_commit.step_after(
            repository, base, self.sweep, records, refused=self.refused, continued=self.target.continued
        )
        batch = step.batch if isinstance(step, RoundDue) else None
        due = round_commit.added_files(repository, base, batch) if batch else {}
        moves, written, left = batches.archiving(batch for batch in recorded if batch.is_active)
        writes, removes = changed_files(summary)
        change = Change(
            message=commit_message(summary, recorded=names) + round_commit.step_trailers(step),
            writes={**writes, **written, **due},
            moves=moves,
            removes=removes
            | left
            | {path for batch in recorded for path in batch_paths(batch.name, [batch.lock.cluster])},
        )
        return change, ResultsCommit(names, summary, corrupt + (FOREIGN,) * foreign, step=step)
