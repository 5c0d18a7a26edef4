"""The attempts at a batch's trials on the results volume: late records, and records that no commit has yet."""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from sweepledger.engine.termination import DISRUPTED, NO_RECORD, OBSERVED_REASONS
from sweepledger.errors import UnreadableError
from sweepledger.formats import record_json, records_jsonl, summary_csv
from sweepledger.operations.collection.record_store import RecordStore
from sweepledger.operations.repository.batch_records import expected_trials, lock_digest
from sweepledger.operations.repository.catalog import summary_path
from sweepledger.repo import batches
from sweepledger.repo.git import Repository
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.results import bounds, outcomes
from sweepledger.structs.record import ExpectedTrial, Record, Status, SummaryRow, TrialResult

FOREIGN = "foreign"
"""The reason for ignoring a record that does not belong to the trial."""
TOO_MANY = "too-many"
"""The reason for a record file that was not read: the trial has left more than any needs."""
TOO_LARGE = "too-large"
"""The reason for a record that would exceed the bound of its trial."""
GROWTH = 4
"""A record in git has at most so many times the bytes of its file: `1e15` grows most."""


TrialFiles = Callable[[int], Iterable[bytes | None]]
"""Returns the record files of a trial, as `volume.attempt_records` does."""


@dataclass(frozen=True)
class TrialReader:
    """Reads the records of a batch from its trials' files, up to the limit for git."""

    batch: batches.StoredBatch
    files: TrialFiles
    by_engine: bool = True
    """Whether the local engine writes records here for pods that left none; in a cluster nobody does."""

    @cached_property
    def _expected(self) -> tuple[ExpectedTrial, ...]:
        return expected_trials(self.batch)

    def read(self, indexes: Iterable[int]) -> tuple[list[Record], dict[int, tuple[str, ...]]]:
        """Return the records of trials, and a one-word reason for each ignored file, by trial.

        A trial can read the whole table and could write records of other trials into its own folder: these
        are ignored.
        """
        share, space = bounds.trial_share(len(self.batch.rows)), bounds.BATCH_BYTES
        is_counted = share < bounds.MOST_TRIAL_BYTES
        records, passed_over = list[Record](), dict[int, tuple[str, ...]]()
        large, listed = dict[int, int](), set[str]()

        def take(index: int, read: list[Record], ignored: list[str]) -> None:
            records.extend(read)
            if ignored:
                passed_over[index] = tuple(ignored)

        for index in indexes:
            read, ignored = self._trial(index, bounds.MOST_TRIAL_BYTES)
            # Bytes in git, with the values of first lines that are not listed yet.
            others = records_jsonl.OTHERS_BYTES * bool(ignored or len(read) > 1)
            size = others + sum(map(len, _listed_values(read) - listed)) if is_counted else 0
            size += sum(map(records_jsonl.line_size, read)) if is_counted else 0
            if size > share:
                large[index] = size  # read once more below: all of them may be too much for the memory
                continue
            space -= size
            listed |= _listed_values(read) if is_counted else frozenset()
            take(index, read, ignored)
        # Those with more than their share of the batch's bytes come last, within what the others left.
        bound = max(share, bounds.common_bound(large.values(), space))
        for index in large:
            take(index, *self._trial(index, bound, listed))
        return records, passed_over

    def _trial(
        self, index: int, bound: int, listed: AbstractSet[str] = frozenset()
    ) -> tuple[list[Record], list[str]]:
        """Return the records of a trial up to a maximum size, and why its other files are ignored.

        `listed` are the values of first lines that others need as well.
        """
        records, ignored, size = list[Record](), list[str](), 0
        for content in self.files(index):
            read = record_json.read(content)
            is_forged = not self.by_engine and read.reason in OBSERVED_REASONS
            if isinstance(read, Record) and read.index == index and not is_forged:
                records.append(read)
                size += len(content or b"")
            elif content == record_json.UNREAD:
                ignored.append(TOO_MANY)
            else:
                ignored.append(FOREIGN if isinstance(read, Record) else read.reason)
        if size * GROWTH <= bound:
            return records, ignored
        bound -= sum(map(len, _listed_values(records) - listed)) + records_jsonl.OTHERS_BYTES
        attempts = []
        for record in records:
            attempt = self._valid(record)
            if attempt is not None and records_jsonl.line_size(record) > bound:
                short = bounds.shortened(record, bound, self.batch.lock.metric.of_curve)
                attempt = None if short is None else self._valid(short)
                ignored += [] if short else [TOO_LARGE]
            elif attempt is None:
                ignored.append(FOREIGN)
            attempts += [] if attempt is None else [attempt]
        kept = bounds.within_bound(attempts, bound)
        return [attempt.record for attempt in kept], ignored + [TOO_LARGE] * (len(attempts) - len(kept))

    def _valid(self, record: Record) -> outcomes.Attempt | None:
        return outcomes.valid_attempt(record, self.batch.lock, self._expected[record.index])


def _listed_values(records: Iterable[Record]) -> frozenset[str]:
    return frozenset(value for record in records for value in records_jsonl.listed_values(record))


def _files(store: RecordStore, batch: batches.StoredBatch, index: int) -> Iterator[bytes | None]:
    return store.records(batch.name, index, batch.lock.place(index))


@dataclass(frozen=True)
class BatchAttempts:
    """The records of a batch; the volume is read once, even if the branch changes meanwhile."""

    batch: batches.StoredBatch
    records: tuple[Record, ...]
    passed_over: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Why files were ignored, one word each, by the trial in whose folder they are."""
    silent_seconds: Mapping[int, float] = field(default_factory=dict)
    """How long pods ran that left no record because their trial had a final one, by trial."""
    unconfirmed: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """SHA-256 of the records that count only if the cluster confirms it, by trial and attempt."""

    @classmethod
    def read(
        cls,
        store: RecordStore,
        batch: batches.StoredBatch,
        *,
        only: Iterable[int] | None = None,
        by_engine: bool = True,
    ) -> "BatchAttempts":
        """Return the attempts of all trials, or of some, in a store; `by_engine`: see `TrialReader`.

        Raises StorageError, UnreadableError for a broken batch.
        """
        trials = range(len(batch.vetted().rows))
        reader = TrialReader(batch, partial(_files, store, batch), by_engine)
        records, passed_over = reader.read(trials if only is None else only)
        # A trial that followed others in this store gets the thresholds that ended it.
        for place, record in enumerate(records):
            seen = None if record.stopped is None else record.stopped.seen
            if seen is not None:
                thresholds = store.thresholds(batch.name, batch.lock.place(record.index), seen)
                records[place] = record if thresholds is None else replace(record, thresholds=thresholds)
        return cls(batch, tuple(records), passed_over, unconfirmed=store.unconfirmed(batch.name))

    @property
    def confirmed_records(self) -> tuple[Record, ...]:
        """The records that count without confirmation by the cluster."""
        return tuple(record for record in self.records if (record.index, record.uid) not in self.unconfirmed)

    @property
    def unconfirmed_records(self) -> Mapping[tuple[int, str, str], Record]:
        """The records that count only if the cluster confirms them, by trial, attempt and SHA-256."""
        return {
            (record.index, record.uid, sha256): record
            for record in self.records
            if (sha256 := self.unconfirmed.get((record.index, record.uid))) is not None
        }

    @property
    def corrupt(self) -> tuple[str, ...]:
        """Return a one-word reason for each ignored file."""
        return tuple(why for _, reasons in sorted(self.passed_over.items()) for why in reasons)

    @property
    def results(self) -> outcomes.BatchRecords:
        """Return the records as input of `evaluate`."""
        return outcomes.BatchRecords(self.batch.lock, expected_trials(self.batch), self.records)

    @property
    def concluded(self) -> outcomes.BatchRecords:
        """Return the records to commit, with a substitute for each trial without a usable record."""
        results = self.results
        records = (*results.records, *outcomes.substitute_records(results, self.passed_over))
        concluded = replace(results, records=records, lock_digest=lock_digest(self.batch))
        ignored = {index: len(reasons) for index, reasons in self.passed_over.items()}
        return bounds.kept(concluded, ignored=ignored, silent_seconds=self.silent_seconds)

    def is_settled(self, over: Container[int] = ()) -> bool:
        """Return whether every trial is finished, in `over`, or has used all its attempts, by valid records.

        An attempt that a pause ended does not count.
        """
        if self.batch.running.paused:
            return self.is_final
        return all(
            outcome.status.is_final
            or outcome.index in over
            or outcome.reason == DISRUPTED
            or outcome.attempts > self.batch.lock.run.retries
            for outcome in outcomes.evaluate(self.results).outcomes
        )

    @property
    def is_final(self) -> bool:
        """Return whether no further attempt at any trial could change anything."""
        return all(outcome.status.is_final for outcome in outcomes.evaluate(self.results).outcomes)


LOOK_BACK_SECONDS = 30 * 86400
"""Seconds after the start of a batch's last trial during which late records are looked for.

A record is late if a node or a network was down. After a month, it is not expected any more.
"""
MISSING_MARKS = (f",{Status.MISSING},".encode(), NO_RECORD.encode())
"""A summary without these words has all records and is not parsed."""


def late_attempts(
    repository: Repository,
    tip: str | None,
    store: RecordStore,
    stored: Iterable[batches.StoredBatch],
    *,
    by_engine: bool = True,
) -> Iterator[BatchAttempts]:
    """Yield the current attempts of trials that are recorded as missing. Raises StorageError.

    A summary or batch that cannot be read is skipped: the next results commit of the sweep reports it.
    """
    if not store.counts_alone:
        return
    oldest = time.time() - LOOK_BACK_SECONDS
    archived = (batch for batch in stored if not batch.is_active)
    recent = [batch for batch in archived if (store.last_change(batch.name) or 0.0) > oldest]
    for sweep in sorted({record.sweep for record in recent}):
        missing = _missing_trials(repository, tip, sweep)
        attempts = [record for record in recent if record.sweep == sweep and record.name in missing]
        for batch in batches.readable(attempts):
            indexes = sorted(index for index in missing[batch.name] if index < batch.lock.trials)
            if not any(True for index in indexes for _ in _files(store, batch, index)):
                continue
            read = BatchAttempts.read(store, batch, only=indexes, by_engine=by_engine)
            # The pods that could confirm them are gone.
            confirmed = replace(read, records=read.confirmed_records, unconfirmed={})
            if confirmed.records:
                yield confirmed


def with_late_records(
    recorded: outcomes.BatchRecords, late: Iterable[Record]
) -> outcomes.BatchRecords | None:
    """Add late records to those in git; None if they contain nothing new that is valid.

    A late record replaces the substitute for the same attempt.
    """
    lines = {record_json.to_line(record) for record in recorded.records}
    news = tuple(record for record in late if record_json.to_line(record) not in lines)
    new = {(record.index, record.uid) for record in news}
    kept = (
        record
        for record in recorded.records
        if record.reason != NO_RECORD or (record.index, record.uid) not in new
    )
    merged = replace(recorded, records=(*kept, *news))
    if _trial_ends(merged) == _trial_ends(recorded):
        return None
    return bounds.kept(merged)


def _trial_ends(attempts: outcomes.BatchRecords) -> list[tuple[Status, str | None]]:
    return [(result.status, result.reason) for result in outcomes.evaluate(attempts).outcomes]


def _missing_trials(repository: Repository, tip: str | None, sweep: str) -> Mapping[str, set[int]]:
    path = summary_path(sweep)
    content = repository.read(tip, path).get(path, b"")
    attempts: dict[str, set[int]] = {}
    if not any(hint in content for hint in MISSING_MARKS):
        return attempts
    try:
        rows = summary_csv.read(content.decode()).rows
    except ValueError:
        return attempts
    for row in rows:
        if row.status == Status.MISSING or row.reason == NO_RECORD:
            attempts.setdefault(row.batch, set()).add(row.index)
    return attempts


def evaluate_here(batch: batches.StoredBatch, results: Path) -> outcomes.EvaluatedBatch | None:
    """Return the results of an active batch on this machine's volume; None if the batch has left none here."""
    if not (results / batch.name).is_dir():
        return None
    return outcomes.evaluate(BatchAttempts.read(VolumeResults(results), batch).results)


def finished(evaluated: outcomes.EvaluatedBatch) -> Iterator[TrialResult]:
    """Yield the trials of an active batch that will have no further attempt."""
    for outcome, attempts in zip(evaluated.outcomes, evaluated.attempts, strict=True):
        # The launcher starts no attempt after a final record, even if the metric of that record is not usable.
        if len(attempts) > evaluated.lock.run.retries or any(one.record.status.is_final for one in attempts):
            yield outcome


def finished_here(stored: Iterable[batches.StoredBatch], results: Path) -> tuple[TrialResult, ...]:
    """Return the finished trials of those batches that are active and readable."""
    trials: list[TrialResult] = []
    for batch in stored:
        try:
            evaluated = evaluate_here(batch, results) if batch.is_active else None
        except UnreadableError:
            continue
        trials += () if evaluated is None else finished(evaluated)
    return tuple(trials)


def with_unrecorded(
    recorded: Iterable[SummaryRow], unrecorded: Iterable[TrialResult]
) -> tuple[tuple[SummaryRow, ...], frozenset[tuple[str, int]]]:
    """Return recorded rows, then rows of unrecorded results, and the batch and index of each unrecorded result.

    A repeated trial is omitted if its recorded result is as good.
    """
    rows = tuple(recorded)
    ranks = {(row.program, row.trial): outcomes.RANKS[row.status] for row in rows}
    new = tuple(
        SummaryRow.of(one)
        for one in unrecorded
        if outcomes.RANKS[one.status] < ranks.get((one.program, one.trial), len(outcomes.RANKS))
    )
    return (*rows, *new), frozenset((row.batch, row.index) for row in new)
