"""Events of the engine's steps, from which commands show progress."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from sweepledger.structs.record import Status


class JobCondition(StrEnum):
    """The condition of an ended Job."""

    COMPLETE = "Complete"
    FAILED = "Failed"


class PodAttempt(Struct, frozen=True):
    """The attempt that an event belongs to."""

    batch: str
    index: int
    trial: str
    uid: str
    number: int
    """Number of the attempt, from 1."""


class JobCreated(Struct, frozen=True):
    """A Job was created."""

    batch: str


class EditRefused(Struct, frozen=True):
    """A running batch has changed; the change is ignored because Jobs are immutable."""

    batch: str


class PodStarted(Struct, frozen=True):
    """An attempt started."""

    attempt: PodAttempt


class PodEnded(Struct, frozen=True):
    """An attempt ended."""

    attempt: PodAttempt
    status: Status
    reason: str | None
    metrics: Mapping[str, float | None]
    seconds: float
    output: str
    """The end of the launcher's stderr if it failed."""
    attempts: int | None = None
    """Number of attempts that its trial may have, if another attempt follows; None if this is the last."""
    error: str = ""
    """Why it failed: the last line of a traceback, the last of stderr, or what the launcher says."""


class JobFinished(Struct, frozen=True):
    """A Job has ended with a condition."""

    batch: str
    condition: JobCondition
    reason: str


class JobPruned(Struct, frozen=True):
    """A Job that is not desired any more was deleted; its records remain."""

    batch: str


class BatchPaused(Struct, frozen=True):
    """The first trials of a batch failed and none is ok, so no further trial starts."""

    batch: str
    errors: tuple[str, ...]
    """Why each of them failed."""
    open: int
    """Number of trials that do not start."""


EngineEvent = JobCreated | EditRefused | PodStarted | PodEnded | JobFinished | JobPruned | BatchPaused


class BatchProgress(Struct, frozen=True):
    """Number of trials of a batch in each state."""

    total: int
    ok: int
    diverged: int
    failed: int
    """Trials without further attempts, or whose Job has ended."""
    running: int
    pruned: int = 0

    @property
    def ended(self) -> int:
        """Trials that have ended, however they did."""
        return self.ok + self.pruned + self.diverged + self.failed

    @property
    def open(self) -> int:
        """Trials that wait for a pod."""
        return self.total - self.ended - self.running
