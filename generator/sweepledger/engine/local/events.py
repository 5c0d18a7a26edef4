"""What happened in a step of the engine, for whoever shows progress."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator.engine.local.observed import Condition
from generator.structs.record import Status


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt at which trial an event is about."""

    batch: str
    job: str
    index: int
    trial: str
    uid: str
    number: int
    """From 1."""


@dataclass(frozen=True, slots=True)
class JobCreated:
    """A Job was taken on."""

    batch: str
    job: str


@dataclass(frozen=True, slots=True)
class EditRefused:
    """A Job's manifest or ConfigMaps changed under its name: such fields are immutable, nothing was done."""

    batch: str
    job: str


@dataclass(frozen=True, slots=True)
class PodStarted:
    """An attempt began."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class PodEnded:
    """An attempt ended."""

    attempt: Attempt
    status: Status
    reason: str | None
    metrics: Mapping[str, float | None]
    seconds: float
    said: str
    """The end of its stderr, where it failed."""
    tries: int | None = None
    """How many attempts its trial may have, where another follows; None where this end is final."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A failed trial will be tried again, but not before this time of the epoch."""

    batch: str
    job: str
    index: int
    until: float


@dataclass(frozen=True, slots=True)
class JobFinished:
    """A Job has its condition."""

    batch: str
    job: str
    condition: Condition
    reason: str


@dataclass(frozen=True, slots=True)
class JobPruned:
    """A Job that git asks for no more was forgotten; its records stay."""

    batch: str
    job: str


Event = JobCreated | EditRefused | PodStarted | PodEnded | Waiting | JobFinished | JobPruned


@dataclass(frozen=True, slots=True)
class Progress:
    """How the trials of a batch stand."""

    total: int
    ok: int
    diverged: int
    failed: int
    """No attempt is left, or its Job has ended without them."""
    running: int
    pruned: int = 0

    @property
    def open(self) -> int:
        """Trials that still wait for a pod."""
        return self.total - self.ok - self.pruned - self.diverged - self.failed - self.running
