"""What the controller can decide to do."""

from dataclasses import dataclass

from generator.engine.local.observed import Condition


@dataclass(frozen=True, slots=True)
class CreateJob:
    """Take a Job on."""

    job: str


@dataclass(frozen=True, slots=True)
class RefuseEdit:
    """A Job's manifest changed, and Jobs are immutable: leave it alone and say so."""

    job: str


@dataclass(frozen=True, slots=True)
class StartPod:
    """Start an attempt; `failures` came before it."""

    job: str
    index: int
    failures: int


@dataclass(frozen=True, slots=True)
class KillPod:
    """Stop a pod."""

    uid: str
    reason: str


@dataclass(frozen=True, slots=True)
class FinishJob:
    """Give a Job its condition."""

    job: str
    condition: Condition
    reason: str


@dataclass(frozen=True, slots=True)
class PruneJob:
    """Forget a Job that git asks for no more; its records stay."""

    job: str


Action = CreateJob | RefuseEdit | StartPod | KillPod | FinishJob | PruneJob
