"""Why a pod does not start, by its own status and the events about its volumes. Pure."""

import re
from dataclasses import dataclass
from enum import Enum

from sweepledger.engine.cluster import api_objects
from sweepledger.structs.kubernetes import STORE_CONTAINER, Manifest


class Obstacle(Enum):
    """What a pod waits for."""

    NODE = "node"
    IMAGE = "image"
    VOLUME = "volume"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class WaitingReason:
    """What a pod waits for, with the API's reason and message."""

    obstacle: Obstacle
    reason: str
    message: str

    @property
    def text(self) -> str:
        """Return reason and message."""
        return f"{self.reason}: {self.message}" if self.message else self.reason


IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
CONFIGURATION_REASONS = frozenset({"CreateContainerConfigError"})
"""Usually a Secret or ConfigMap that does not exist."""
STARTUP_REASONS = frozenset({"", "PodInitializing", "ContainerCreating"})
"""Reasons of every pod in its first seconds."""
RESTORES = (
    "the sidecar restores files, or waits for the bucket; `kubectl logs POD --container=store` says which"
)
CLAIM = re.compile(r"persistentvolumeclaim|PersistentVolumeClaim|volume node affinity")
"""In a scheduler's message: no node would help."""


def waiting_reason(pod: Manifest, mount_failure: str = "") -> WaitingReason | None:
    """Return why a pod does not start; None while it starts as every pod does."""
    scheduled = api_objects.condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        reason, message = (api_objects.text_at(scheduled, key) for key in ("reason", "message"))
        is_claim = CLAIM.search(message) is not None
        return WaitingReason(Obstacle.VOLUME if is_claim else Obstacle.NODE, reason, message)
    for name in ("initContainerStatuses", "containerStatuses"):
        for status in api_objects.objects_at(pod, "status", name):
            reason, message = (
                api_objects.text_at(status, "state", "waiting", key) for key in ("reason", "message")
            )
            if reason not in STARTUP_REASONS:
                return WaitingReason(_obstacle(reason), reason, message)
    sidecar = api_objects.named_object(pod, STORE_CONTAINER, "status", "initContainerStatuses")
    if api_objects.value_at(sidecar, "state", "running") is not None:
        return WaitingReason(Obstacle.OTHER, "PodInitializing", RESTORES)
    return WaitingReason(Obstacle.VOLUME, "FailedMount", mount_failure) if mount_failure else None


def _obstacle(reason: str) -> Obstacle:
    if reason in IMAGE_REASONS:
        return Obstacle.IMAGE
    return Obstacle.VOLUME if reason in CONFIGURATION_REASONS else Obstacle.OTHER
