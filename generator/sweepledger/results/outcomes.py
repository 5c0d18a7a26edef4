"""Outcomes: which attempt of a trial counts, independent of the order in which records are read.

For trials whose files are all unusable, the collector writes substitute records, so that the summary follows
from git alone. Infrastructure ended a trial if the cluster reports this for its pod, or by exit codes in the spec.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from sweepledger.formats.record_json import to_line
from sweepledger.results.display import one_line
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import RAN_NOTHING, ExpectedTrial, Record, Status, TrialResult
from sweepledger.structs.run_config import Infrastructure
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import canonical_json

METRIC_NOT_FINITE = "metric-not-finite"
METRIC_MISSING = "metric-missing"
BATCH_CANCELLED = "batch-cancelled"
TERMINATED = "signal-15"
"""Reason of an attempt that was terminated, as the pods of a cancelled batch are."""

LONGEST_REASON = 200
LONGEST_ERROR = 200
MOST_NUMBERS = 10
"""Names of numbers that a trial reported instead of a metric, as in the launcher's message."""
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*(?::[a-z0-9_]+)?", re.ASCII)

PASSED_OVER = "passed_over"
"""Key in the details of the collector's records: the number of unusable files by reason."""

ENDINGS = {
    "timeout": Status.TIMEOUT,
    "oom": Status.OOM,
    "disrupted": Status.EVICTED,
    "evicted": Status.EVICTED,
    "preempted": Status.EVICTED,
    "node-lost": Status.EVICTED,
    "corrupt": Status.CORRUPT,
    "foreign": Status.FOREIGN,
}
"""Status of a failed attempt by its reason; other reasons are `failed`."""

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
"""Rank of each status: of several attempts, the one with the lowest rank counts."""

InSpec = Callable[[Mapping[str, Any], int], bool]
"""Returns whether the current spec contains a configuration with a replicate number."""


@dataclass(frozen=True, slots=True)
class BatchRecords:
    """A batch at a commit, and all records that exist for it, valid or not."""

    lock: BatchLock
    expected: tuple[ExpectedTrial, ...]
    records: tuple[Record, ...]
    is_cancelled: bool = False
    """Whether the batch was cancelled, so that unfinished trials are `cancelled`."""
    lock_digest: str = ""
    """SHA-256 of the lock's file at the commit."""
    is_marked: bool = False
    """Whether the batch is marked as made on a laptop."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt: a valid record of the batch, and its status."""

    record: Record
    line: str
    """Canonical form of the record: attempts with equal lines are the same."""
    status: Status
    """By the sweep's metrics: a record with `ok` but without one of them has failed."""
    reason: str | None
    error: str = ""
    """What was said of its failure."""

    @property
    def rank(self) -> tuple[int, str, int, str]:
        """Sort key: `ok` first, then pruned, diverged, the earliest to finish, and the digest of the line.

        Attempts that finished within the same second are ordered by their number.
        """
        # Without the Z, a time without fractions sorts before the fractions of the same second.
        finished = self.record.finished.removesuffix("Z")
        digest = hashlib.sha256(self.line.encode()).hexdigest()
        return (RANKS[self.status], finished, self.record.attempt, digest)


@dataclass(frozen=True, slots=True)
class EvaluatedBatch:
    """The results of all trials of a batch."""

    lock: BatchLock
    expected: tuple[ExpectedTrial, ...]
    outcomes: tuple[TrialResult, ...]
    """One per row of the table, in its order."""
    attempts: tuple[tuple[Attempt, ...], ...]
    """Attempts of each row, in the order of time."""
    foreign: int
    """Number of distinct records that match no row of this batch; they are never used."""
    lock_digest: str = ""
    """SHA-256 of the lock's file at the commit."""
    is_marked: bool = False
    """Whether the batch is marked as made on a laptop."""


def evaluate(batch: BatchRecords, in_spec: InSpec | None = None) -> EvaluatedBatch:
    """Return the result of each row of a batch; trials without a valid record are `missing`."""
    lock, program = batch.lock, batch.lock.program.digest
    rows = {trial.index: trial for trial in batch.expected}
    valid: dict[int, dict[str, Attempt]] = {index: {} for index in rows}
    foreign: set[str] = set()
    for record in batch.records:
        attempt = valid_attempt(record, lock, rows.get(record.index))
        if attempt is None:
            foreign.add(to_line(record))
        else:
            valid[record.index][attempt.line] = attempt
    attempts = tuple(
        tuple(sorted(valid[trial.index].values(), key=lambda a: (a.record.attempt, a.record.started, a.line)))
        for trial in batch.expected
    )
    outcomes = tuple(
        _outcome(lock, program, trial, tried) for trial, tried in zip(batch.expected, attempts, strict=True)
    )
    if in_spec is not None:
        outcomes = tuple(replace(one, in_spec=in_spec(one.assignment, one.replicate)) for one in outcomes)
    if batch.is_cancelled:
        outcomes = tuple(map(_cancelled, outcomes, attempts))
    return EvaluatedBatch(
        lock, batch.expected, outcomes, attempts, len(foreign), batch.lock_digest, batch.is_marked
    )


def valid_attempt(record: Record, lock: BatchLock, trial: ExpectedTrial | None) -> Attempt | None:
    """Return the attempt if a record matches a row, its batch, and the locked code and data; else None."""
    code, data = lock.program.code.tree, None if lock.program.data is None else lock.program.data.digest
    if (
        trial is None
        or (record.trial, record.row) != (trial.trial, trial.row)
        or (record.batch, record.code, record.data) != (lock.name, code, data)
    ):
        return None
    line = to_line(record)
    if record.status is Status.OK:
        return Attempt(record, line, *judge_metrics(record.reported, lock.metrics))
    status = (
        ENDINGS.get(record.reason or "", Status.FAILED) if record.status is Status.FAILED else record.status
    )
    return Attempt(record, line, status, record.reason, record.error_line)


def judge_metrics(
    reported: Mapping[str, float | None], metrics: Iterable[Metric]
) -> tuple[Status, str | None, str]:
    """Return status, reason and error of a trial that ended well: it is ok only with a finite number of each metric."""
    missing = [metric.name for metric in metrics if metric.name not in reported]
    if missing:
        finite = sorted(name for name, value in reported.items() if value is not None)
        numbers = ", ".join(finite[:MOST_NUMBERS]) or "none"
        return Status.FAILED, METRIC_MISSING, f"no number {', '.join(missing)}; its numbers: {numbers}"
    infinite = [metric.name for metric in metrics if reported[metric.name] is None]
    if infinite:
        return Status.DIVERGED, METRIC_NOT_FINITE, f"no finite number: {', '.join(infinite)}"
    return Status.OK, None, ""


def _outcome(lock: BatchLock, program: str, trial: ExpectedTrial, attempts: Sequence[Attempt]) -> TrialResult:
    best = min(attempts, key=lambda attempt: attempt.rank, default=None)
    data = lock.program.data
    unusable = best is not None and best.status.kind is Status.MISSING
    return TrialResult(
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
        error=None if best is None or unusable or best.status.is_success else _error(best.error),
        node_class=lock.run.pool if best is not None and not unusable and best.record.ran_image else None,
    )


def _passed_over(attempt: Attempt) -> str | None:
    """Return the reasons why files of a trial were ignored, restricted to known words."""
    reasons = attempt.record.details.get(PASSED_OVER)
    words = sorted(reasons) if isinstance(reasons, Mapping) else []
    return " ".join(word for word in words if _WORD.fullmatch(word))[:LONGEST_REASON] or attempt.reason


def _error(text: str) -> str | None:
    """Return the error text of a failure on one line, without characters that could hide or reorder it."""
    line = one_line(text[: 2 * LONGEST_ERROR])
    return (line if len(line) <= LONGEST_ERROR else f"{line[: LONGEST_ERROR - 1]}…") or None


def _counted(lock: BatchLock, attempts: Sequence[Attempt]) -> int:
    """Return the number of attempts: that of records, or the largest in a record, as deleted pods leave no record."""
    highest = max((one.record.attempt for one in attempts), default=0)
    left_out = [one.record.others for one in attempts if one.record.others is not None]
    known = len(attempts) + sum(others.failed + others.disrupted for others in left_out)
    return max(known, min(highest, lock.run.retries + 1))


def _cancelled(outcome: TrialResult, attempts: Sequence[Attempt]) -> TrialResult:
    """Return the result as cancelled, unless the trial failed on its own before."""
    interrupted = bool(attempts) and attempts[-1].reason == TERMINATED
    if outcome.status is Status.MISSING or (outcome.status.kind is Status.FAILED and interrupted):
        return replace(outcome, status=Status.CANCELLED, reason=BATCH_CANCELLED)
    return outcome


def one_per_trial(outcomes: Iterable[TrialResult]) -> tuple[TrialResult, ...]:
    """Return one result per trial, even if several batches list it: a retry can only improve a result.

    Among equal ranks, the first batch's result counts; the order is that of the trials' first batches.
    """
    kept: dict[tuple[str, str, str, int], TrialResult] = {}
    for outcome in outcomes:
        identity = (outcome.trial, outcome.program, canonical_json(outcome.assignment), outcome.replicate)
        known = kept.get(identity)
        if known is None or RANKS[outcome.status] < RANKS[known.status]:
            kept[identity] = outcome
    return tuple(kept.values())


COLLECTOR_UID = "collector"
"""Used instead of the UID of a pod."""
NO_TIME = "1970-01-01T00:00:00Z"


def substitute_records(batch: BatchRecords, passed_over: Mapping[int, Collection[str]]) -> Iterator[Record]:
    """Yield a record for every trial whose files cannot be used.

    `passed_over` has the reasons by row; records that match no row are counted from the batch.
    """
    judged = evaluate(batch)
    foreign = Counter(record.index for record in batch.records)
    for trial, attempts in zip(judged.expected, judged.attempts, strict=True):
        if attempts:
            continue
        reasons = Counter(passed_over.get(trial.index, ()))
        reasons[Status.FOREIGN] += foreign[trial.index]
        if reasons.total():
            yield _substitute(batch.lock, trial, +reasons)


def _substitute(lock: BatchLock, trial: ExpectedTrial, reasons: Counter[str]) -> Record:
    data = lock.program.data
    return Record(
        trial=trial.trial,
        row=trial.row,
        batch=lock.name,
        index=trial.index,
        uid=COLLECTOR_UID,
        attempt=min(reasons.total(), lock.run.retries + 1),
        disruptions=0,
        status=Status.FAILED,
        reason=str(Status.FOREIGN if set(reasons) == {Status.FOREIGN} else Status.CORRUPT),
        metrics=MappingProxyType({}),
        seconds=0.0,
        started=NO_TIME,
        finished=NO_TIME,
        ran=RAN_NOTHING,
        code=lock.program.code.tree,
        data=None if data is None else data.digest,
        seed=lock.run.seed_base + trial.replicate,
        node=None,
        environment=None,
        details=MappingProxyType({PASSED_OVER: {str(reason): count for reason, count in reasons.items()}}),
    )


REASONS = frozenset({"refused-by-node", "image-not-pulled", "disrupted", "node-lost", "preempted"})
"""Reasons that only infrastructure has. A pod may be `evicted` for exceeding its own scratch space."""
START_FAILED = "start-failed"
"""The reason of a command that does not exist, too: it counts if no container started."""


def is_of_infrastructure(record: Record, infrastructure: Infrastructure) -> bool:
    """Return whether infrastructure ended an attempt, according to its record."""
    if record.status is not Status.FAILED or record.reason is None:
        return False
    if record.reason == START_FAILED:
        return record.ran == RAN_NOTHING
    return record.reason in REASONS or record.reason in {f"exit-{code}" for code in infrastructure.exit_codes}


def has_lost_attempt(
    lock: BatchLock, outcome: TrialResult, attempts: Sequence[Attempt], infrastructure: Infrastructure
) -> bool:
    """Return whether infrastructure ended an attempt of a trial whose own failures have not used all other attempts.

    A late record may nevertheless have ended the trial.
    """
    if outcome.status is Status.CANCELLED:
        return False
    lost = [one for one in attempts if is_of_infrastructure(one.record, infrastructure)]
    # The Job does not count disruptions, so they are no failures of its own.
    own = sum(
        one not in lost and one.status is not Status.EVICTED and not one.status.is_final for one in attempts
    )
    own += sum(one.record.others.failed for one in attempts if one.record.others is not None)
    return bool(lost) and own <= lock.run.retries


@dataclass(frozen=True)
class Losses:
    """The trials of a sweep that infrastructure ended, from the recorded batches."""

    counts: Counter[str] = field(default_factory=Counter)
    """In how many batches infrastructure took an attempt, by digest of the trial."""
    last: dict[str, tuple[str, Record]] = field(default_factory=dict)
    """The last batch and record of such an attempt, by digest of the trial; only of unfinished trials."""

    @classmethod
    def of(
        cls, batches: Iterable[tuple[Sequence[Trial], BatchRecords]], infrastructure: Infrastructure
    ) -> "Losses":
        """Return the losses in recorded batches, by number: each with its trials, in the order of the table."""
        losses, final = cls(), set[str]()
        for trials, records in batches:
            judged = evaluate(records)
            for trial, outcome, attempts in zip(trials, judged.outcomes, judged.attempts, strict=True):
                if outcome.status.is_final:
                    final.add(trial.digest)
                if not has_lost_attempt(judged.lock, outcome, attempts, infrastructure):
                    losses.last.pop(trial.digest, None)  # what it failed of since counts
                    continue
                losses.counts[trial.digest] += 1
                lost = [one.record for one in attempts if is_of_infrastructure(one.record, infrastructure)]
                losses.last[trial.digest] = (judged.lock.name, lost[-1])
        for digest in final:
            losses.last.pop(digest, None)
        return losses
