"""What the controller sees: Jobs with their conditions, what records say of their indexes, pods, room."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from generator.engine.local.quantities import Resources
from generator.structs.record import Status


class Condition(StrEnum):
    """How a Job ended."""

    COMPLETE = "Complete"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that failed, with its exit code and the time of its record."""

    code: int
    at: float


@dataclass(frozen=True, slots=True)
class IndexState:
    """What the records say of one index."""

    result: Status | None = None
    """`ok`, `pruned` or `diverged` once that is known."""
    failures: tuple[Failure, ...] = ()
    """In the order of time."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A Job that was created."""

    digest: str
    created: float
    condition: Condition | None = None
    indexes: Mapping[int, IndexState] = field(default_factory=lambda: MappingProxyType({}))
    """Those that any record speaks of."""


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod that has not ended."""

    uid: str
    job: str
    index: int
    started: float
    requests: Resources
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of the machine."""

    jobs: Mapping[str, JobState]
    pods: tuple[PodState, ...]
    capacity: Resources
    slots: int | None = None
    """The most pods at a time; None for as many as fit."""
