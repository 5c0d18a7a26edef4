"""How an attempt that left no record ended: exit codes in words, and the record made in its place. No I/O.

Both engines share it: where they learn of an end differs, what is made of it does not.
"""

import re
from dataclasses import dataclass, replace

from generator.formats import record as record_format
from generator.structs.record import Record, Status

CODES = {
    "bad-hyperparameters": 42,
    "metric-not-finite": 42,
    "bad-sweep": 43,
    "bad-command": 43,
    "disk-full": 74,
    "timeout": 124,
    "start-failed": 127,
    "killed": 137,
    "oom": 137,
}
"""Exit codes behind the reasons that records give; what is not here ended with 1."""

BAD_HYPERPARAMETERS = CODES["bad-hyperparameters"]
NO_RECORD = "no-record"
"""Of an attempt that ended well and left nothing."""

SAID_BY_LAUNCHERS = {
    "oom": "signal-9",
    "evicted": "signal-15",
    "node-lost": "signal-15",
    "preempted": "signal-15",
    "timeout": "signal-15",
}
"""What a launcher that could still write says of an end which the cluster knows the cause of."""

NUMBERED = re.compile(r"(exit|signal)-([0-9]{1,3})")
REASONS = {
    CODES[reason]: reason
    for reason in ("bad-hyperparameters", "bad-sweep", "disk-full", "timeout", "start-failed", "killed")
}
"""What is said of a launcher that ended with one of these codes and left no record."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an attempt was asked for."""

    batch: str
    index: int
    trial: str
    row: str
    code: str
    data: str | None
    seed: int

    def owns(self, record: Record, uid: str) -> bool:
        """Tell whether a record is of this row, and of this pod."""
        return (record.batch, record.index, record.row, record.uid) == (
            self.batch,
            self.index,
            self.row,
            uid,
        )

    def expects(self, record: Record) -> bool:
        """Tell whether a record is of this row, and of the program and data that it was to be run with."""
        return (record.batch, record.index, record.row, record.trial, record.code, record.data) == (
            self.batch,
            self.index,
            self.row,
            self.trial,
            self.code,
            self.data,
        )

    def believed(self, content: bytes, uid: str) -> Record | None:
        """Read what one pod left; None if that is no record of its own."""
        found = record_format.read(content)
        return found if isinstance(found, Record) and self.owns(found, uid) else None


@dataclass(frozen=True, slots=True)
class Ending:
    """A pod that ended without a record of its own."""

    uid: str
    attempt: int
    """Which it was of its trial's; 0 where nobody counted."""
    code: int
    reason: str | None
    """Where more is known than the exit code says."""
    started: float
    finished: float
    """Seconds since 1970."""
    node: str | None
    said: str = ""
    """The last words of whoever had any."""
    ran: str = "process"


def record(asked: Asked, ending: Ending) -> Record:
    """Make the record that a pod could not write."""
    diverged = ending.reason is None and ending.code == BAD_HYPERPARAMETERS
    return Record(
        trial=asked.trial,
        row=asked.row,
        batch=asked.batch,
        index=asked.index,
        uid=ending.uid,
        attempt=ending.attempt,
        status=Status.DIVERGED if diverged else Status.FAILED,
        reason=ending.reason or reason(ending.code),
        metrics={},
        seconds=round(max(0.0, ending.finished - ending.started), 3),
        started=record_format.time_of(ending.started),
        finished=record_format.time_of(ending.finished),
        ran=ending.ran,
        code=asked.code,
        data=asked.data,
        seed=asked.seed,
        node=ending.node,
        details={"said": ending.said} if ending.said else {},
        artifacts=(),
    )


def explained(record: Record, cause: str | None) -> Record:
    """Give a record with the cause that its launcher, who was only sent a signal, could not know."""
    is_it = record.status is Status.FAILED and SAID_BY_LAUNCHERS.get(cause or "") == record.reason
    return replace(record, reason=cause) if is_it and cause else record


def as_left(record: Record) -> Record:
    """Give a record as its launcher left it, if it did."""
    return replace(record, reason=SAID_BY_LAUNCHERS.get(record.reason or "", record.reason))


def reason(code: int) -> str:
    """Say in a word what a launcher's exit code means."""
    if code == 0:
        return NO_RECORD
    if code > 128 and code not in REASONS:  # noqa: PLR2004 - the shell's way to tell of signals
        return f"signal-{code - 128}"
    return REASONS.get(code, f"exit-{code}")


def code(reason: str | None) -> int:
    """Say with which exit code a launcher ends that gives such a reason."""
    if found := NUMBERED.fullmatch(reason or ""):
        return int(found[2]) + (128 if found[1] == "signal" else 0)
    return CODES.get(reason or "", 1)
