"""Durations of recorded trials at a commit, and GPU hours and prices of a month."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from json import loads
from typing import Any

from sweepledger.errors import RepositoryError, UnreadableError, UsageError
from sweepledger.formats import records_jsonl
from sweepledger.operations.repository import at_commit, batch_records
from sweepledger.plan.budgets import (
    Balance,
    BudgetUnit,
    Charge,
    balances,
    charge,
    counts_towards,
    reservation,
)
from sweepledger.plan.durations import TimingHistory, timing_history
from sweepledger.plan.forecast import PlannedTrials
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, addition_times, commit_time
from sweepledger.structs.names import LOCK_FILE, RESULTS, SPECS, SUFFIX, batch_of_records, split_batch_name
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import Program
from sweepledger.structs.record import Record, Status
from sweepledger.structs.run_config import RunConfig, RunningState
from sweepledger.structs.settings import FleetSettings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

MOST_RECORDS = 5000
"""Maximum number of records per program: more take time to read and do not improve a forecast."""
MOST_BATCHES = 200


@dataclass(frozen=True)
class Timing:
    """Durations of the trials at a commit."""

    repository: Repository
    commit: str | None
    merged: tuple[StoredBatch, ...]
    fleet: FleetSettings
    _pasts: dict[str, TimingHistory] = field(default_factory=dict)
    """By program digest; each is computed once."""

    def past(self, program: Program, sweep: str) -> TimingHistory:
        """Return the recorded durations of a program, newest batches of the sweep first."""
        digest = program.digest
        if digest not in self._pasts:
            self._pasts[digest] = self._past(program, sweep)
        return self._pasts[digest]

    def next_cluster(self, sweep: Sweep) -> str | None:
        """Return the cluster of a sweep's next batch; None if there is only one, or if none could run the batch."""
        if not self.fleet.clusters:
            return None
        newest = batches.newest(batches.readable(batches.of_sweep(self.merged, sweep.name)))
        former = newest.lock.cluster if newest else None
        return self.fleet.choose_cluster(sweep.name, sweep.run, last=former)

    def ahead(self, sweep: Sweep) -> tuple[PlannedTrials, ...]:
        """Return the active workloads of the pool and cluster in which a sweep's next batch would run."""
        pool, cluster = sweep.pool, self.next_cluster(sweep)
        if pool is None:
            return ()
        active = batches.readable(batch for batch in self.merged if batch.is_active)
        same = [
            batch for batch in active if (batch.lock.run.pool, batch.lock.cluster) == (pool.name, cluster)
        ]
        batches.prefetch(same)
        return tuple(
            PlannedTrials(
                batch.lock.run,
                [row.values for row in batch.rows],
                pool,
                self.past(batch.lock.program, batch.sweep),
            )
            for batch in same
        )

    def _past(self, program: Program, sweep: str) -> TimingHistory:
        archived = batches.readable(batch for batch in self.merged if not batch.is_active)
        # Most are of another program by their code alone.
        of_code = (batch for batch in archived if batch.lock.program.code.tree == program.code.tree)
        same = [batch for batch in of_code if batch.lock.program.digest == program.digest]
        same.sort(key=lambda one: (one.sweep == sweep, *(split_batch_name(one.name) or ())[1:]), reverse=True)
        newest: list[StoredBatch] = []
        for candidate in same[:MOST_BATCHES]:
            if sum(other.lock.trials for other in newest) < MOST_RECORDS:
                newest.append(candidate)
        paths = [batch.records_file() for batch in newest]
        files = self.repository.read(self.commit, *paths) if paths else {}
        batches.prefetch(newest)
        return timing_history([(batch.name, tuple(_timed_records(batch, files))) for batch in newest])


def _timed_records(
    batch: StoredBatch, files: Mapping[str, bytes]
) -> Iterable[tuple[Record, Mapping[str, Value]]]:
    """Yield the readable records with the configurations that they ran."""
    content = files.get(batch.records_file(), b"")  # the first file has enough
    try:
        rows = batch.rows
    except RepositoryError:
        return
    for record in records_jsonl.records(content):
        if isinstance(record, Record) and record.index < len(rows):
            yield record, rows[record.index].values


MONTH = re.compile(r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])", re.ASCII)
LAST_SECOND = 253_402_300_799
"""Of the year 9999."""
FILES_AT_ONCE = 200
"""Number of record files in memory at a time."""
ENDING_SECONDS = 120
"""An attempt may take longer than its timeout by this: the command is asked to end, then made to."""


@dataclass(frozen=True)
class Usage:
    """The total time of a trial's attempts. Trials are untrusted: a charge is at most the allowed time."""

    seconds: float = 0.0
    """As the cluster observed it, else as the trial reported it."""
    is_free: bool = False
    """Whether an attempt reported a result in no time, and was not observed."""
    is_reported: bool = False
    """Whether the time of an attempt is what the trial reported, because it was not observed."""


@dataclass(frozen=True)
class MonthLedger:
    """The charges of one month."""

    month: str
    used: tuple[Charge, ...]
    """A charge for each batch that was recorded in the month."""
    reserved: tuple[Charge, ...]
    """A charge for each batch that is active, or cancelled and not recorded yet."""
    unread: tuple[str, ...]
    """Batches that cannot be read: they are not charged."""
    doubtful: tuple[str, ...]
    """Batches with a trial that took more time than its attempts had, or reported a result in no time."""
    reported: tuple[str, ...]
    """Charged batches of which some trials were not observed, so that their own reports count."""


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
    return _month(commit_time(repository, commit))


def month_ledger(
    specs: at_commit.SpecReader,
    commit: str | None,
    month: str,
    *,
    merged: Iterable[StoredBatch],
    leaving: Iterable[tuple[str, Iterable[bytes]]] = (),
) -> MonthLedger:
    """Return the charges of a month at a commit, by the budgets and pools of some settings.

    Batches in `leaving`, with their files of records, reserve nothing, but the time that their trials used is charged.
    What trials may have repeated after pauses is charged as well: whether they did, nothing observes.
    """
    budgets, pools = specs.settings.teams.budgets, specs.settings.trials.pools
    ending = {name: usage_in(b"".join(contents)) for name, contents in leaving}
    counted = [
        batch for batch in merged if any(counts_towards(team, batch.sweep) for team in budgets.values())
    ]
    cancelled = {batch.name for batch in batch_records.unrecorded_batches(specs.repository, commit, counted)}
    unfinished = {
        batch.name
        for batch in counted
        if (batch.is_active or batch.name in cancelled) and batch.name not in ending
    }
    usage: dict[str, Mapping[int, Usage]] = {}
    for name, part in _recorded_usage(specs.repository, commit, counted, month):
        usage[name] = {**usage.get(name, {}), **part}  # no trial is in two files
    usage |= ending
    charged = [batch for batch in counted if batch.name in unfinished or usage.get(batch.name)]
    batches.prefetch(charged, LOCK_FILE)
    resumes = _resumes(specs, commit, charged)
    used, reserved, unread, doubtful, reported = [], [], [], [], []
    for batch in counted:
        trials_usage = usage.get(batch.name)
        if batch.name not in unfinished and not trials_usage:
            continue
        requested = _requested_run(batch, pools)
        if requested is None:
            unread.append(batch.name)
            continue
        run, pool, trials = requested
        resumed = resumes.get(batch.name, 0)
        if trials_usage:
            own = [one for index, one in trials_usage.items() if index in range(trials)]
            seconds = sum(min(one.seconds, run.max_trial_seconds) for one in own)
            seconds += len(own) * resumed * run.timeout_seconds
            used.append(charge(batch.sweep, run, pool, seconds))
            allowed = run.max_trial_seconds + run.max_starts * ENDING_SECONDS
            allowed += resumed * (run.timeout_seconds + ENDING_SECONDS)
            if any(one.is_free or one.seconds > allowed for one in own):
                doubtful.append(batch.name)
            if any(one.is_reported for one in own):
                reported.append(batch.name)
        if batch.name in unfinished:
            reserved.append(reservation(batch.sweep, run, pool, trials, resumed))
    return MonthLedger(month, tuple(used), tuple(reserved), tuple(unread), tuple(doubtful), tuple(reported))


def exceeded_budgets(
    specs: at_commit.SpecReader,
    commit: str | None,
    month: str | None,
    requested: Iterable[Charge],
    *,
    merged: Iterable[StoredBatch] | None = None,
    leaving: Iterable[tuple[str, Iterable[bytes]]] = (),
) -> Iterator[tuple[str, Balance]]:
    """Yield month and balance of each budget of some settings that has less remaining than is requested.

    Nothing is read unless something is requested of a budget. Other arguments as for `month_of` and `month_ledger`.
    """
    charges = tuple(requested)
    budgets = {
        team: budget
        for team, budget in specs.settings.teams.budgets.items()
        if any(counts_towards(budget, each.sweep) for each in charges)
    }
    if not budgets:
        return
    month = month_of(specs.repository, commit, month)
    stored = batches.in_commit(specs.repository, commit) if merged is None else merged
    ledger = month_ledger(specs, commit, month, merged=stored, leaving=leaving)
    for balance in balances(budgets, used=ledger.used, reserved=ledger.reserved, requested=charges):
        if balance.is_exceeded:
            yield month, balance


def resume_charges(
    specs: at_commit.SpecReader,
    commit: str | None,
    sweep: Sweep,
    merged: Iterable[StoredBatch],
) -> Iterator[Charge]:
    """Yield the upper bound for trials that active batches of a sweep repeat after resumes that a commit lacks."""
    if not any(state.resumes for state in sweep.running.values()):
        return
    former = specs.sweep(commit, sweep.path)
    states = former.running if former else {}
    for batch in merged:
        if not batch.is_active or batch.name not in sweep.running:
            continue
        more = sweep.running[batch.name].resumes - states.get(batch.name, RunningState()).resumes
        requested = _requested_run(batch, specs.settings.trials.pools) if more > 0 else None
        if requested is not None:
            run, pool, trials = requested
            yield charge(sweep.name, run, pool, trials * more * run.timeout_seconds)


def overdrawn(path: str, key: str, balance: Balance, month: str, currency: str) -> Problem:
    """Return the problem that a key of a spec requests more than a budget has remaining."""
    unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else currency or "of money"
    message = (
        f"budget {balance.team} has {balance.limit:g} {unit} a month: {month} has used {balance.used:.4g}, "
        f"{balance.reserved:.4g} are reserved by batches that are not recorded yet, "
        f"this requests {balance.requested:.4g} at most"
    )
    way = (
        "pause or cancel the batch"
        if key == "running"
        else "lower run.timeout or run.retries, try fewer values"
    )
    hint = f"{way}, or wait for results, of cancelled batches too; `sweep cluster budget` shows all"
    return Problem(path, 0, 0, key, message, "budget-overdrawn", hint)


def _resumes(
    specs: at_commit.SpecReader, commit: str | None, charged: Iterable[StoredBatch]
) -> dict[str, int]:
    """Return how often each batch was resumed, by the specs at a commit."""
    paths = sorted({f"{SPECS}/{batch.sweep}{SUFFIX}" for batch in charged})
    texts = specs.repository.read(commit, *paths) if paths else {}
    found: dict[str, int] = {}
    for path, text in texts.items():
        if b"resumes" in text or b"\\" in text:  # with an escape, YAML spells the key otherwise
            sweep = specs.sweep(commit, path)
            if sweep is not None:
                found |= {name: state.resumes for name, state in sweep.running.items()}
    return found


def _requested_run(
    batch: StoredBatch, pools: Mapping[str, Pool]
) -> tuple[RunConfig, Pool | None, int] | None:
    try:
        lock = batch.vetted().lock
    except UnreadableError:
        return None
    return lock.run, pools.get(lock.run.pool or ""), lock.trials


def _recorded_usage(
    repository: Repository, commit: str | None, stored: Iterable[StoredBatch], month: str
) -> Iterator[tuple[str, Mapping[int, Usage]]]:
    """Yield the usage of the trials of each batch that was recorded in a month.

    The month is that of the commit that recorded a batch: trials write the records. A shallow clone does not have
    that commit, so the times in the records are used there.
    """
    names = {batch.records_file() for batch in stored}
    if commit is None or not names:
        return
    dates_by_records = repository.is_shallow
    files = repository.files(commit, RESULTS)
    blobs = {
        path: entry.id
        for path, entry in files.items()
        if f"{path.rpartition('/')[0]}/{batch_of_records(path)}.jsonl" in names  # the first file of its batch
    }
    if not dates_by_records:
        begin = datetime.fromisoformat(f"{month}-01T00:00:00+00:00").timestamp()
        times = addition_times(repository, commit, RESULTS, since=begin) if blobs else {}
        blobs = {path: blob for path, blob in blobs.items() if path in times and _month(times[path]) == month}
    ordered = sorted(blobs)
    for start in range(0, len(ordered), FILES_AT_ONCE):
        paths = ordered[start : start + FILES_AT_ONCE]
        contents = repository.blobs(blobs[path] for path in paths)
        for path in paths:
            yield batch_of_records(path), usage_in(contents[blobs[path]], month if dates_by_records else None)


def _month(seconds: int) -> str:
    """Return the month of a commit; git accepts times outside any calendar."""
    return datetime.fromtimestamp(min(seconds, LAST_SECOND), UTC).strftime("%Y-%m")


def usage_in(records: bytes, month: str | None = None) -> Mapping[int, Usage]:
    """Return each trial's usage from a file of records; with a month, only for attempts that ended in it.

    Parses only lines that contain the month.
    """
    named = b"" if month is None else f'"{month}-'.encode()
    usage: dict[int, Usage] = {}
    for line in records.split(b"\n"):
        if not line or named not in line:
            continue
        try:
            record: Mapping[str, Any] = loads(line)
            index, seconds = int(str(record["index"])), float(str(record["seconds"]))
            finished, is_ok = str(record["finished"]), record["status"] == Status.OK
            if "observed" in record:
                start, end = map(datetime.fromisoformat, record["observed"])
                seconds = (end - start).total_seconds()
            seconds += float(record.get("others", {}).get("seconds", 0.0))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        if seconds >= 0 and (month is None or finished.startswith(f"{month}-")):
            before, is_observed = usage.get(index, Usage()), "observed" in record
            usage[index] = Usage(
                before.seconds + seconds,
                before.is_free or (is_ok and not is_observed and not seconds),
                before.is_reported or not is_observed,
            )
    return usage
