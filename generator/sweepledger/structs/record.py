"""What one attempt at a trial leaves behind, and what becomes of a trial in the end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from generator.structs.values import Value


class Status(StrEnum):
    """How a trial stands. Only `ok` has an objective that may win."""

    OK = "ok"
    DIVERGED = "diverged"
    """These hyperparameters are bad: exit code 42, or a metric that is not finite. Never retried."""
    PRUNED = "pruned"
    """A rule of the spec ended it early, behind what others had reached by that step. Never retried."""
    FAILED = "failed"
    TIMEOUT = "timeout"
    """It failed: it was not done within its time."""
    OOM = "oom"
    """It failed: it wanted more memory than it may have."""
    EVICTED = "evicted"
    """It failed: the cluster took its pod away, or lost the node."""
    MISSING = "missing"
    """No attempt left a record."""
    CANCELLED = "cancelled"
    """Its batch was cancelled before an attempt at it came to an end of its own."""
    CORRUPT = "corrupt"
    """No attempt left a record that can be believed: what it left cannot be read."""
    FOREIGN = "foreign"
    """No attempt left a record of this trial: what lies in its place is of another, or of none."""

    @property
    def is_final(self) -> bool:
        """Tell whether no further attempt could change it."""
        return self in {Status.OK, Status.DIVERGED, Status.PRUNED}

    @property
    def is_success(self) -> bool:
        """Tell whether an attempt has done all that was asked of it: its launcher ends with 0."""
        return self in {Status.OK, Status.PRUNED}

    @property
    def kind(self) -> "Status":
        """Give the coarser status that specs and commands ask by: failed, or missing where nothing counts."""
        return _KINDS.get(self, self)


_KINDS = {
    Status.TIMEOUT: Status.FAILED,
    Status.OOM: Status.FAILED,
    Status.EVICTED: Status.FAILED,
    Status.CORRUPT: Status.MISSING,
    Status.FOREIGN: Status.MISSING,
}

UNFINISHED = frozenset(status.kind for status in Status if not status.is_final)
"""The kinds of end that `sweep retry` asks for again."""

PROCESS = "process"
"""What a record says that it ran where `sweep local` or `sweep try` did."""
NOTHING = "nothing"
"""What ran in a pod whose container never began."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that an attempt left on the results volume, by content."""

    path: str
    """Below the attempt's own folder of artifacts."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Record:
    """One attempt, as its launcher wrote it and the collector validated it."""

    trial: str
    row: str
    """Digest of the table row it ran, 64 hex digits."""
    batch: str
    index: int
    uid: str
    """Of the pod; the record's file name."""
    attempt: int
    status: Status
    reason: str | None
    metrics: Mapping[str, float | None]
    """None: reported, but not a finite number."""
    seconds: float
    started: str
    finished: str
    """UTC, ISO 8601 with a final Z."""
    ran: str
    """An image with its digest, `PROCESS` or `NOTHING`."""
    code: str
    """The git tree that it says it ran; what counts is the lock's."""
    data: str | None
    seed: int
    node: str | None
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What the trial reported beside its metrics: device, versions, data digest."""
    artifacts: tuple[Artifact, ...] = ()
    curve: tuple[tuple[int, float | None], ...] = ()
    """The objective by step, thinned; None where it was not a finite number."""

    @property
    def ran_image(self) -> bool:
        """Tell whether an image ran, as far as the record says."""
        return self.ran not in {PROCESS, NOTHING}


@dataclass(frozen=True, slots=True)
class ExpectedTrial:
    """A row of a batch's table: what a record must match to count."""

    trial: str
    row: str
    """Digest of the row, 64 hex digits."""
    index: int
    assignment: Mapping[str, Value]
    replicate: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trial of a batch with what became of it: one row of the summary."""

    trial: str
    batch: str
    index: int
    assignment: Mapping[str, Any]
    status: Status
    reason: str | None
    attempts: int
    record: Record | None
    """The attempt that counts; None where none can be believed."""
    program: str
    """Digest of the program, 64 hex digits."""
    code: str
    data: str | None
    replicate: int = 0
    """Which repetition of the assignment; each has a seed of its own."""
    in_spec: bool | None = None
    """Whether today's spec still asks for it; None where nobody can say."""
    node_class: str | None = None
    """The pool whose nodes the batch was placed on; None where it ran elsewhere, or was placed on none."""
    parent: str | None = None
    """Id of the trial whose checkpoint it went on from, by the batch's lock."""

    def metric(self, name: str) -> float | None:
        """The value that may be ranked: None unless the trial is ok and reported it."""
        if self.status is not Status.OK or self.record is None:
            return None
        return self.record.metrics.get(name)
