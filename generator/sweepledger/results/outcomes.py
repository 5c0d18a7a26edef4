"""Which attempt of a trial counts. The order in which records are read never matters."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from generator.formats.record import to_line
from generator.structs.batch import Lock
from generator.structs.record import ExpectedTrial, Outcome, Record, Status
from generator.structs.sweep import Metric
from generator.structs.values import canonical_json

METRIC_NOT_FINITE = "metric-not-finite"
METRIC_MISSING = "metric-missing"
BATCH_CANCELLED = "batch-cancelled"
ENDED_FROM_OUTSIDE = "signal-15"
"""How the launcher records a command that was told to end: what a cancelled batch does to its pods."""

LONGEST_REASON = 200
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*(?::[a-z0-9_]+)?", re.ASCII)

PASSED_OVER = "passed_over"
"""In the details of a record that the collector made: what it could not use, by reason and number."""

ENDINGS = {
    "timeout": Status.TIMEOUT,
    "oom": Status.OOM,
    "evicted": Status.EVICTED,
    "preempted": Status.EVICTED,
    "node-lost": Status.EVICTED,
    "corrupt": Status.CORRUPT,
    "foreign": Status.FOREIGN,
}
"""What a failure is called by its reason; by any other it is a failure."""

RANKS = {
    Status.OK: 0,
    Status.PRUNED: 1,
    Status.DIVERGED: 2,
    Status.FAILED: 3,
    Status.TIMEOUT: 3,
    Status.OOM: 3,
    Status.EVICTED: 3,
    Status.CORRUPT: 4,
    Status.FOREIGN: 5,
    Status.MISSING: 6,
    Status.CANCELLED: 7,
}
"""Of several attempts the lowest counts."""

Asked = Callable[[Mapping[str, Any], int], bool]
"""Tells whether today's spec asks for an assignment and a replicate."""


@dataclass(frozen=True, slots=True)
class BatchResults:
    """A batch as git holds it and all records that were found for it, believed or not."""

    lock: Lock
    expected: tuple[ExpectedTrial, ...]
    records: tuple[Record, ...]
    is_cancelled: bool = False
    """Whether what did not come to an end was not to."""
    lock_digest: str = ""
    """SHA-256 of the lock's file, as git holds it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A record that belongs to its batch."""

    record: Record
    line: str
    """Its canonical form: two attempts with one line are one attempt."""
    status: Status
    """Under the sweep's metric: a record that says `ok` without the metric is none."""
    reason: str | None

    @property
    def rank(self) -> tuple[int, str, int, str]:
        """Sort key: `ok` first, then pruned, diverged, the earliest to finish, and the digest of the line.

        What finished within one second goes by the number of the attempt.
        """
        # Without the Z a second sorts before its own fractions.
        finished = self.record.finished.removesuffix("Z")
        digest = hashlib.sha256(self.line.encode()).hexdigest()
        return (RANKS[self.status], finished, self.record.attempt, digest)


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """What became of every trial of a batch."""

    lock: Lock
    expected: tuple[ExpectedTrial, ...]
    outcomes: tuple[Outcome, ...]
    """One for every row of the table, in its order."""
    attempts: tuple[tuple[Attempt, ...], ...]
    """Of every row, in the order of time."""
    foreign: int
    """Distinct records that match no row of this batch: counted, never used."""
    lock_digest: str = ""
    """SHA-256 of the lock's file, as git holds it."""


def judge(batch: BatchResults, asked: Asked | None = None) -> JudgedBatch:
    """Sort a batch's records into one outcome a row, missing ones included."""
    lock, program = batch.lock, batch.lock.program.digest
    rows = {trial.index: trial for trial in batch.expected}
    found: dict[int, dict[str, Attempt]] = {index: {} for index in rows}
    foreign: set[str] = set()
    for record in batch.records:
        line = to_line(record)
        if _belongs(record, lock, rows.get(record.index)):
            found[record.index][line] = _attempt(record, line, lock.metric)
        else:
            foreign.add(line)
    attempts = tuple(
        tuple(sorted(found[trial.index].values(), key=lambda a: (a.record.attempt, a.record.started, a.line)))
        for trial in batch.expected
    )
    outcomes = tuple(
        _outcome(lock, program, trial, tried) for trial, tried in zip(batch.expected, attempts, strict=True)
    )
    if asked is not None:
        outcomes = tuple(replace(one, in_spec=asked(one.assignment, one.replicate)) for one in outcomes)
    if batch.is_cancelled:
        outcomes = tuple(map(_cancelled, outcomes, attempts))
    return JudgedBatch(lock, batch.expected, outcomes, attempts, len(foreign), batch.lock_digest)


def _belongs(record: Record, lock: Lock, trial: ExpectedTrial | None) -> bool:
    """Tell whether a record is of this very row, and of what the batch locked."""
    code, data = lock.program.code.tree, None if lock.program.data is None else lock.program.data.digest
    return (
        trial is not None
        and (record.trial, record.row) == (trial.trial, trial.row)
        and (record.batch, record.code, record.data) == (lock.name, code, data)
    )


def _attempt(record: Record, line: str, metric: Metric) -> Attempt:
    status, reason = record.status, record.reason
    if status is Status.OK and record.metrics.get(metric.name) is None:
        if metric.name in record.metrics:
            status, reason = Status.DIVERGED, METRIC_NOT_FINITE
        else:
            status, reason = Status.FAILED, METRIC_MISSING
    elif status is Status.FAILED:
        status = ENDINGS.get(reason or "", status)
    return Attempt(record, line, status, reason)


def _outcome(lock: Lock, program: str, trial: ExpectedTrial, attempts: Sequence[Attempt]) -> Outcome:
    best = min(attempts, key=lambda attempt: attempt.rank, default=None)
    data = lock.program.data
    unusable = best is not None and best.status.kind is Status.MISSING
    return Outcome(
        trial=trial.trial,
        batch=lock.name,
        index=trial.index,
        assignment=trial.assignment,
        status=Status.MISSING if best is None else best.status,
        reason=None if best is None else _passed_over(best) if unusable else best.reason,
        attempts=_counted(lock, attempts),
        record=None if best is None or unusable else best.record,
        program=program,
        code=lock.program.code.tree,
        data=None if data is None else data.digest,
        replicate=trial.replicate,
        parent=lock.parents.get(trial.index),
        node_class=lock.pool if best is not None and not unusable and best.record.ran_image else None,
    )


def _passed_over(attempt: Attempt) -> str | None:
    """Say what was wrong with the files of a trial, in the words of a closed set."""
    found = attempt.record.details.get(PASSED_OVER)
    words = sorted(found) if isinstance(found, Mapping) else []
    return " ".join(word for word in words if _WORD.fullmatch(word))[:LONGEST_REASON] or attempt.reason


def _counted(lock: Lock, attempts: Sequence[Attempt]) -> int:
    """Count attempts by their records, and by what these say of others: a deleted pod may leave none."""
    said = max((one.record.attempt for one in attempts), default=0)
    return max(len(attempts), min(said, lock.retries + 1))


def _cancelled(outcome: Outcome, attempts: Sequence[Attempt]) -> Outcome:
    """Tell a trial that was cancelled from one that failed by itself before."""
    interrupted = bool(attempts) and attempts[-1].reason == ENDED_FROM_OUTSIDE
    if outcome.status is Status.MISSING or (outcome.status.kind is Status.FAILED and interrupted):
        return replace(outcome, status=Status.CANCELLED, reason=BATCH_CANCELLED)
    return outcome


def one_a_trial(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Keep one outcome of a trial that several batches list: a retry may only improve on what was.

    Of equals the first batch's counts; it stands where the trial first stood.
    """
    kept: dict[tuple[str, str, str, int], Outcome] = {}
    for outcome in outcomes:
        identity = (outcome.trial, outcome.program, canonical_json(outcome.assignment), outcome.replicate)
        known = kept.get(identity)
        if known is None or RANKS[outcome.status] < RANKS[known.status]:
            kept[identity] = outcome
    return tuple(kept.values())
