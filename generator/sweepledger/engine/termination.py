"""How an attempt without a record ended: exit codes and their reasons, and the record written in its place.

No I/O. The local engine and the collector use it: they observe terminations differently, and treat them
alike.
"""

import re
from dataclasses import dataclass, replace
from typing import Self

from msgspec import Struct

from sweepledger.formats import record_json as record_format
from sweepledger.structs import kubernetes
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.record import Record, Status

EXIT_CODES = {
    "bad-hyperparameters": kubernetes.BAD_HYPERPARAMETERS,
    "metric-not-finite": kubernetes.BAD_HYPERPARAMETERS,
    "bad-sweep": kubernetes.BAD_SWEEP,
    "bad-command": kubernetes.BAD_SWEEP,
    "disrupted": kubernetes.DISRUPTED,
    "disk-full": kubernetes.STORAGE_FAILED,
    "timeout": kubernetes.TIMED_OUT,
    "start-failed": 127,
    "killed": 137,
    "oom": 137,
}
"""The launcher's exit code for each reason in records; 1 for all others."""

DISRUPTED = "disrupted"
"""The reason of a trial whose pods the cluster ended more often than `run.max_disruptions` allows."""
NO_RECORD = "no-record"
"""The reason of an attempt that exited with 0 and left no record."""

LAUNCHER_REASONS = {
    "oom": "signal-9",
    "evicted": "signal-15",
    "node-lost": "signal-15",
    "preempted": "signal-15",
    "timeout": "signal-15",
}
"""Cause known to the cluster → the reason that the launcher records, because it only sees the signal."""

OBSERVED_REASONS = frozenset(
    {*LAUNCHER_REASONS, NO_RECORD, "corrupt", "foreign", "image-not-pulled", "killed", "refused-by-node"}
) - {"timeout"}
"""Reasons that no launcher writes: the engine or the collector observes them. A trial that claims one forges it."""

NUMBERED_REASON = re.compile(r"(exit|signal)-([0-9]{1,3})")
REASONS_BY_CODE = {
    EXIT_CODES[reason]: reason
    for reason in EXIT_CODES
    if reason not in {"metric-not-finite", "bad-command", "oom"}
}
"""The reason of an attempt without a record, by the launcher's exit code."""


class ExpectedRecord(Struct, frozen=True):
    """The values that the record of an attempt must have."""

    batch: str
    index: int
    trial: str
    row: str
    code: str
    data: str | None
    seed: int

    @classmethod
    def of(cls, lock: BatchLock, index: int, trial: str, row: str, replicate: int) -> Self:
        """Return the expected values for the records of a row of a batch, given its trial and digest."""
        program = lock.program
        data = None if program.data is None else program.data.digest
        return cls(lock.name, index, trial, row, program.code.tree, data, lock.run.seed_base + replicate)

    def owns(self, record: Record, uid: str) -> bool:
        """Return whether a record belongs to this row and pod."""
        return self._has(record, "batch", "index", "row") and record.uid == uid

    def expects(self, record: Record) -> bool:
        """Return whether a record belongs to this row, and to its program and data."""
        return self._has(record, "batch", "index", "row", "trial", "code", "data")

    def _has(self, record: Record, *names: str) -> bool:
        return all(getattr(record, name) == getattr(self, name) for name in names)

    def parse(self, content: bytes, uid: str) -> Record | None:
        """Return the record that a pod left; None if it is not a valid record of this row and pod."""
        record = record_format.read(content)
        return record if isinstance(record, Record) and self.owns(record, uid) else None


@dataclass(frozen=True, slots=True)
class Termination:
    """How a pod without a record ended."""

    uid: str
    attempt: int
    """Number of the attempt, from 1; 0 if it is unknown."""
    code: int
    reason: str | None
    """Cause, if more is known than the exit code; else None."""
    started: float
    finished: float
    """Seconds since 1970."""
    node: str | None
    message: str = ""
    """The last message of the pod, the kubelet or the scheduler."""
    ran: str = "process"
    disruptions: int = 0
    """How many earlier pods of the trial the cluster ended."""


def substitute_record(expected: ExpectedRecord, ending: Termination) -> Record:
    """Return the record that a pod could not write."""
    diverged = ending.reason is None and ending.code == kubernetes.BAD_HYPERPARAMETERS
    message = ending.message
    if ending.reason == "oom":
        message = f"{ending.message or 'used more memory than its limit'}: raise run.resources.memory"
    return Record(
        trial=expected.trial,
        row=expected.row,
        batch=expected.batch,
        index=expected.index,
        uid=ending.uid,
        attempt=ending.attempt,
        disruptions=ending.disruptions,
        status=Status.DIVERGED if diverged else Status.FAILED,
        reason=ending.reason or reason_for_exit_code(ending.code),
        metrics={},
        seconds=round(max(0.0, ending.finished - ending.started), 3),
        started=record_format.format_time(ending.started),
        finished=record_format.format_time(ending.finished),
        ran=ending.ran,
        code=expected.code,
        data=expected.data,
        seed=expected.seed,
        node=ending.node,
        environment=None,
        details={"said": message} if message else {},
    )


def with_cause(record: Record, cause: str | None) -> Record:
    """Return a record with the cause of its end, which its launcher could not know from a signal."""
    is_caused = record.status is Status.FAILED and LAUNCHER_REASONS.get(cause or "") == record.reason
    return replace(record, reason=cause) if is_caused and cause else record


def without_cause(record: Record) -> Record:
    """Return a record with its launcher's original reason."""
    return replace(record, reason=LAUNCHER_REASONS.get(record.reason or "", record.reason))


def reason_for_exit_code(code: int) -> str:
    """Return the reason for an exit code of the launcher."""
    if code == 0:
        return NO_RECORD
    if code > 128 and code not in REASONS_BY_CODE:  # noqa: PLR2004 - the shell's code for signals
        return f"signal-{code - 128}"
    return REASONS_BY_CODE.get(code, f"exit-{code}")


def exit_code_for_reason(reason: str | None) -> int:
    """Return the exit code of a launcher that records a reason."""
    if match := NUMBERED_REASON.fullmatch(reason or ""):
        return int(match[2]) + (128 if match[1] == "signal" else 0)
    return EXIT_CODES.get(reason or "", 1)
