"""Durations of recorded trials at a commit, and GPU hours and prices of a month."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import UTC, datetime
from json import loads

from sweepledger.commands.repository import batch_records
from sweepledger.errors import RepositoryError, UnreadableError, UsageError
from sweepledger.formats import excerpts, record_json
from sweepledger.formats.batch_yaml import LOCK_FILE
from sweepledger.formats.excerpts import read_lock_excerpt
from sweepledger.formats.launch_json import LAUNCH_FILE
from sweepledger.plan import (
    Balance,
    Charge,
    PlannedTrials,
    TimingHistory,
    balances,
    charge,
    counts_towards,
    reservation,
    timing_history,
)
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, commit_time
from sweepledger.results.outcomes import BatchRecords, evaluate
from sweepledger.results.paths import RESULTS
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import Program
from sweepledger.structs.record import Record
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings import Settings, TeamBudget
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

MOST_RECORDS = 5000
"""Maximum number of records per program: more take time to read and do not improve a forecast."""
MOST_BATCHES = 200
MANIFESTS = "job.yaml"


@dataclass(frozen=True)
class Timing:
    """Durations of the trials at a commit."""

    repository: Repository
    commit: str | None
    merged: tuple[StoredBatch, ...]
    _pasts: dict[str, TimingHistory] = field(default_factory=dict)
    """By program digest; each is computed once."""

    def past(self, program: Program, sweep: str) -> TimingHistory:
        """Return the recorded durations of a program, the newest batches of the sweep first."""
        digest = program.digest
        if digest not in self._pasts:
            self._pasts[digest] = self._past(program, sweep)
        return self._pasts[digest]

    def ahead(self, pool: Pool) -> tuple[PlannedTrials, ...]:
        """Return the active workloads of a pool."""
        named = f'\npool: "{pool.name}"\n'.encode()
        active = [batch for batch in self.merged if batch.is_active and _lock_contains(batch, named)]
        batches.prefetch(active)
        timed = ((batch, run_of(batch)) for batch in batches.readable(active))
        return tuple(
            PlannedTrials(
                run, [row.values for row in batch.rows], pool, self.past(batch.lock.program, batch.sweep)
            )
            for batch, run in timed
            if run is not None
        )

    def _past(self, program: Program, sweep: str) -> TimingHistory:
        tree = program.code.tree.encode()
        archived = [batch for batch in self.merged if not batch.is_active and _lock_contains(batch, tree)]
        same = [batch for batch in archived if _runs_program(batch, program.digest)]
        same.sort(key=lambda one: (one.sweep == sweep, *(split_batch_name(one.name) or ())[1:]), reverse=True)
        newest: list[StoredBatch] = []
        for candidate in batches.readable(same[:MOST_BATCHES]):
            if sum(other.lock.trials for other in newest) < MOST_RECORDS:
                newest.append(candidate)
        files = self.repository.read(self.commit, *map(batch_records.records_file, newest)) if newest else {}
        batches.prefetch(newest)
        return timing_history([(batch.name, tuple(_timed_records(batch, files))) for batch in newest])


def run_of(batch: StoredBatch) -> RunConfig | None:
    """Return how a batch's trials run, from its own files; None if these do not contain it."""
    try:
        manifests, launch = batch.contents.read(MANIFESTS), batch.contents.read(LAUNCH_FILE)
    except KeyError:
        return None
    lock = batch.lock
    run = excerpts.read_run_config(manifests, launch, lock.shape, trials=lock.trials)
    return None if run is None else changed(run, retries=lock.retries, pool=lock.pool)


def _lock_contains(batch: StoredBatch, text: bytes) -> bool:
    """Return whether a lock contains some words; parsing thousands of locks would take seconds."""
    try:
        return text in batch.contents.read(LOCK_FILE)
    except KeyError:
        return False


def _runs_program(batch: StoredBatch, program: str) -> bool:
    """Return whether a batch's program is the one with this digest."""
    try:
        return read_lock_excerpt(batch.contents.read(LOCK_FILE)).program == program
    except ValueError:
        return False


def _timed_records(
    batch: StoredBatch, files: Mapping[str, bytes]
) -> Iterable[tuple[Record, Mapping[str, Value]]]:
    """Yield the readable records with the configurations that they ran."""
    text = files.get(batch_records.records_file(batch), b"").decode(errors="replace")
    try:
        rows = batch.rows
    except RepositoryError:
        return
    for record in record_json.read_lines(text):
        if isinstance(record, Record) and record.index < len(rows):
            yield record, rows[record.index].values


MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])", re.ASCII)
FILES_AT_ONCE = 200
"""Number of record files in memory at a time."""


@dataclass(frozen=True)
class MonthLedger:
    """The charges of one month."""

    month: str
    used: tuple[Charge, ...] = ()
    """A charge for each batch with attempts that ended in the month."""
    promised: tuple[Charge, ...] = ()
    """A charge for each active batch."""
    unread: tuple[str, ...] = ()
    """Batches that cannot be read: they are not charged."""


def month_of(repository: Repository, commit: str | None, month: str | None) -> str:
    """Return the requested month, else the month of the commit, for reproducible output.

    Raises UsageError.
    """
    if month is not None:
        if not MONTH.fullmatch(month):
            raise UsageError(f"--month {month} is not a month", hint="write it like 2026-11")
        return month
    if commit is None:
        return ""
    return datetime.fromtimestamp(commit_time(repository, commit), UTC).strftime("%Y-%m")


def month_ledger(
    repository: Repository,
    commit: str | None,
    settings: Settings,
    month: str,
    *,
    merged: Iterable[StoredBatch],
    leaving: Mapping[str, float] | None = None,
) -> MonthLedger:
    """Return the charges of a month at a commit.

    Batches in `leaving` reserve nothing any more, but have used these seconds of the month.
    """
    ending = leaving or {}
    counted = [
        batch
        for batch in merged
        if any(counts_towards(team, batch.sweep) for team in settings.budgets.values())
    ]
    active = [batch for batch in counted if batch.is_active and batch.name not in ending]
    seconds = dict(_seconds_by_batch(repository, commit, counted, month))
    seconds |= {name: spent for name, spent in ending.items() if spent}
    batches.prefetch([batch for batch in counted if batch in active or batch.name in seconds], *FILES)
    used, promised, unread = [], [], []
    for batch in counted:
        if batch not in active and batch.name not in seconds:
            continue
        requested = _requested_run(batch, settings)
        if requested is None:
            unread.append(batch.name)
            continue
        run, pool, trials = requested
        if batch.name in seconds:
            used.append(charge(batch.sweep, run, pool, seconds[batch.name]))
        if batch in active:
            promised.append(reservation(batch.sweep, run, pool, trials))
    return MonthLedger(month, tuple(used), tuple(promised), tuple(unread))


def requested_balances(
    ledger: MonthLedger, budgets: Mapping[str, TeamBudget], requests: Iterable[tuple[Sweep, int]]
) -> tuple[Balance, ...]:
    """Return what each budget has left after requests for a number of trials each."""
    charges = [reservation(sweep.name, sweep.run, sweep.pool, trials) for sweep, trials in requests]
    return balances(budgets, used=ledger.used, reserved=ledger.promised, requested=charges)


FILES = (LOCK_FILE, MANIFESTS, LAUNCH_FILE)


def _requested_run(batch: StoredBatch, settings: Settings) -> tuple[RunConfig, Pool | None, int] | None:
    try:
        lock = batch.vetted().lock
    except UnreadableError:
        return None
    run = run_of(batch)
    return None if run is None else (run, settings.pools.get(lock.pool or ""), lock.trials)


def _seconds_by_batch(
    repository: Repository, commit: str | None, stored: Iterable[StoredBatch], month: str
) -> Iterator[tuple[str, float]]:
    """Sum the seconds of each batch's attempts that ended in a month."""
    names = {batch_records.records_file(batch): batch.name for batch in stored}
    files = repository.files(commit, RESULTS) if names else {}
    blobs = {path: entry.id for path, entry in files.items() if path in names}
    ordered = sorted(blobs)
    for start in range(0, len(ordered), FILES_AT_ONCE):
        paths = ordered[start : start + FILES_AT_ONCE]
        contents = repository.blobs(blobs[path] for path in paths)
        for path in paths:
            total = seconds_in(contents[blobs[path]], month)
            if total:
                yield names[path], total


def record_seconds(records: BatchRecords, month: str) -> float:
    """Sum the seconds of a batch's attempts that ended in a month."""
    attempts = (attempt.record for attempts in evaluate(records).attempts for attempt in attempts)
    return sum(record.seconds for record in attempts if record.finished.startswith(f"{month}-"))


def seconds_in(records: bytes, month: str) -> float:
    """Sum the seconds of the attempts in a file of records that ended in a month."""
    return sum(_attempt_seconds(records, month))


def _attempt_seconds(records: bytes, month: str) -> Iterator[float]:
    """Yield the seconds of attempts that ended in a month, parsing only lines that contain the month."""
    named = f'"{month}-'.encode()
    for line in records.split(b"\n"):
        if named not in line:
            continue
        try:
            record: Mapping[str, object] = loads(line)
            finished, seconds = str(record["finished"]), float(str(record["seconds"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if finished.startswith(f"{month}-") and seconds >= 0:
            yield seconds
