"""Pods of trials as the API reports them: which trial each one runs, its phase, and why it does not start.

Everything is read from the pod's template and from fields that controllers write, which no trial can change.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.workloads import is_named
from sweepledger.formats.launch_json import LAUNCHER_PATHS
from sweepledger.formats.manifest_fields import (
    condition,
    named_object,
    objects_at,
    text_at,
    time_at,
    value_at,
)
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    INDEX_VARIABLE,
    RANK_VARIABLE,
    RECORD_FINALIZER,
    STORE_CONTAINER,
    Manifest,
)

COMPLETION_INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURE_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"
"""How often the pods of an index have failed."""
INDEX_DISRUPTION_ANNOTATION = "batch.kubernetes.io/job-index-ignored-failure-count"
"""How often the pods of an index were evicted, preempted or lost with their node."""

PODS = "/api/v1/namespaces/{}/pods"

NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

NOT_SUCCEEDED = "status.phase!=Succeeded"
SUCCEEDED = "status.phase=Succeeded"

SILENCE_SECONDS = 60
"""Time without news from a node after which its pods are lost: several times what a busy node needs."""


class PodPhase(Enum):
    """The phase of a pod in terms of its trial."""

    WAITING = "waiting"
    """For a node, an image, a volume."""
    RUNNING = "running"
    LOST = "lost"
    """Its node does not respond, so it is unknown whether the pod runs."""
    FAILED = "failed"
    SUCCEEDED = "succeeded"

    @property
    def is_over(self) -> bool:
        """Whether the pod has ended."""
        return self in {PodPhase.FAILED, PodPhase.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class TrialPod:
    """A pod whose launcher writes the record of a trial, and of the other trials that share the pod."""

    uid: str
    """Id of its attempt at the trial."""
    index: int
    failures: int | None
    """Failed attempts at its index before it; None if its Job does not count them."""
    container: str
    """Name of the launcher's container."""
    manifest: Manifest
    disruptions: int = 0
    """Pods of its index that the cluster ended before it."""
    rows: range = range(0)
    """Its trials, if there are several."""

    @property
    def is_shared(self) -> bool:
        """Whether it runs several trials: its end then shows little about one of them."""
        return bool(self.rows)

    @property
    def pod_uid(self) -> str:
        """Id of the pod."""
        return text_at(self.manifest, "metadata", "uid")

    @property
    def node(self) -> str:
        """Name of its node; empty if it has none."""
        return text_at(self.manifest, "spec", "nodeName")

    @property
    def created(self) -> float:
        """Creation time in seconds since 1970."""
        return time_at(self.manifest, "metadata", "creationTimestamp") or 0.0

    @property
    def status(self) -> Manifest:
        """The status of the launcher's container."""
        return named_object(self.manifest, self.container, "status", "containerStatuses")

    @property
    def state(self) -> Any:
        """The state of the launcher's container."""
        return value_at(self.status, "state")

    def phase(self, now: float) -> PodPhase:
        """Return the phase of the pod at a time."""
        match text_at(self.manifest, "status", "phase"):
            case "Succeeded":
                return PodPhase.SUCCEEDED
            case "Failed":
                return PodPhase.FAILED
            case "Unknown":
                return PodPhase.LOST
            case phase:
                if _is_lost(self.manifest, now):
                    return PodPhase.LOST
                return PodPhase.RUNNING if phase == "Running" else PodPhase.WAITING


def batch_manifests(kubectl: Kubectl, namespace: str, batch: str, fields: str = "") -> Iterator[Manifest]:
    """Yield the pods of a batch with some fields, page by page. Raises ClusterError."""
    for page in kubectl.pages(PODS.format(namespace), f"{BATCH_LABEL}={batch}", fields=fields):
        yield from page


def has_ended(manifest: Manifest) -> bool:
    """Return whether the containers of a pod have ended, and its status will not change."""
    return text_at(manifest, "status", "phase") in {"Succeeded", "Failed"}


def ended_at(manifest: Manifest) -> float:
    """Return the time of the last known change of an ended pod, in seconds since 1970."""
    finished = (
        time_at(status, "state", "terminated", "finishedAt")
        for status in objects_at(manifest, "status", "containerStatuses")
    )
    known = [moment for moment in finished if moment is not None]
    return max(known, default=time_at(manifest, "metadata", "creationTimestamp") or 0.0)


def is_held(manifest: Manifest) -> bool:
    """Return whether a pod stays until its record is read."""
    return RECORD_FINALIZER in (value_at(manifest, "metadata", "finalizers") or ())


def held_pods(kubectl: Kubectl, namespace: str, *, apart_from: Iterable[str] = ()) -> Iterator[Manifest]:
    """Yield the pods of other batches that stay until their records are read. Raises ClusterError."""
    others = ",".join(sorted(apart_from))
    selector = f"{BATCH_LABEL},{BATCH_LABEL} notin ({others})" if others else BATCH_LABEL
    for page in kubectl.pages(PODS.format(namespace), selector):
        yield from filter(is_held, page)


def release(kubectl: Kubectl, namespace: str, names: Iterable[str]) -> None:
    """Release pods that were held for their records. Raises ClusterError."""
    kubectl.remove_finalizer("pods", names, namespace, RECORD_FINALIZER)


def batch_pods(kubectl: Kubectl, namespace: str, batch: BatchLock, fields: str) -> Iterator[TrialPod]:
    """Yield the pods of a batch that write records, page by page; a pod of several trials once for each trial.

    Raises ClusterError.
    """
    for manifest in batch_manifests(kubectl, namespace, batch.name, fields):
        yield from trial_pods(manifest, batch)


def trial_pods(manifest: Manifest, batch: BatchLock) -> Iterator[TrialPod]:
    """Yield the pod of a batch if it writes records; a pod of several trials once for each trial."""
    pod = parse_pod(manifest)
    if pod is not None and batch.run.pack is None:
        yield pod
    elif pod is not None:
        rows = batch.rows(pod.index)
        yield from (replace(pod, uid=batch.attempt(pod.uid, row), index=row, rows=rows) for row in rows)


def output(kubectl: Kubectl, namespace: str, pod: TrialPod, *, lines: int, size: int) -> bytes:
    """Return the last lines of a pod's standard output and standard error. Raises ClusterError."""
    name = text_at(pod.manifest, "metadata", "name")
    bounds = (f"--tail={lines}", f"--limit-bytes={size}")
    return kubectl.run("logs", name, f"--namespace={namespace}", f"--container={pod.container}", *bounds)


def has_pods(kubectl: Kubectl, namespace: str, batch: str) -> bool:
    """Return whether a batch has any pod. Raises ClusterError."""
    pages = kubectl.pages(PODS.format(namespace), f"{BATCH_LABEL}={batch}", size=1)
    return any(next(pages, ()))


def parse_pod(manifest: Manifest) -> TrialPod | None:
    """Return the pod of a trial; None if no launcher in it writes a record, as in further workers of a trial.

    Also None if no controller made the pod for its batch: anybody could give a pod the label, but the platform
    lets only controllers set an owner.
    """
    batch = text_at(manifest, "metadata", "labels", BATCH_LABEL)
    owners = objects_at(manifest, "metadata", "ownerReferences")
    if not any(owner.get("controller") is True and is_named(owner, batch) for owner in owners):
        return None
    container = next(filter(_is_launchers, objects_at(manifest, "spec", "containers")), None)
    uid = text_at(manifest, "metadata", "uid")
    if container is None or not uid or _variable(manifest, container, RANK_VARIABLE) not in {"", "0"}:
        return None
    annotated, failures, disruptions = (
        text_at(manifest, "metadata", "annotations", name)
        for name in (COMPLETION_INDEX_ANNOTATION, INDEX_FAILURE_ANNOTATION, INDEX_DISRUPTION_ANNOTATION)
    )
    index = _variable(manifest, container, INDEX_VARIABLE) or annotated
    if not NUMBER.fullmatch(index):
        return None
    return TrialPod(
        uid,
        int(index),
        int(failures) if NUMBER.fullmatch(failures) else None,
        text_at(container, "name"),
        manifest,
        int(disruptions) if NUMBER.fullmatch(disruptions) else 0,
    )


def _is_launchers(container: Manifest) -> bool:
    command = value_at(container, "command")
    return isinstance(command, list) and any(path in command for path in LAUNCHER_PATHS)


def _variable(manifest: Manifest, container: Manifest, name: str) -> str:
    """Return the launcher's environment variable: a literal value, or a field of the pod's metadata."""
    variable: Any = named_object(container, name, "env")
    if field := FIELD.fullmatch(text_at(variable, "valueFrom", "fieldRef", "fieldPath")):
        return text_at(manifest, "metadata", field[1], field[2])
    return text_at(variable, "value")


def _is_lost(manifest: Manifest, now: float) -> bool:
    """Return whether the node of a pod does not respond, judged from the pod, because few users may read Nodes.

    If a node does not respond, the control plane sets its pods to not ready, while the node's last report on their
    containers was that they are. Its deletions are never confirmed, and new pods never started.
    """
    ready, containers = (condition(manifest, name).get("status") for name in ("Ready", "ContainersReady"))
    if (ready, containers) == ("False", "True"):
        return True
    due = time_at(manifest, "metadata", "deletionTimestamp")
    if due is not None and now > due + SILENCE_SECONDS:
        return True
    scheduled = condition(manifest, "PodScheduled")
    scheduled_at = time_at(scheduled, "lastTransitionTime")
    is_started = scheduled.get("status") != "True" or text_at(manifest, "status", "startTime")
    return not is_started and scheduled_at is not None and now > scheduled_at + SILENCE_SECONDS


IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
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


def waiting_reason(pod: Manifest, mount_failure: str = "") -> tuple[str, str] | None:
    """Return why a pod does not start, as a `causes.CauseKind` and as text; None while it starts normally.

    The text is the API's reason and message.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        reason, message = (text_at(scheduled, key) for key in ("reason", "message"))
        is_claim = CLAIM.search(message) is not None
        return "volume" if is_claim else "unschedulable", f"{reason}: {message}".removesuffix(": ")
    for name in ("initContainerStatuses", "containerStatuses"):
        for status in objects_at(pod, "status", name):
            reason, message = (text_at(status, "state", "waiting", key) for key in ("reason", "message"))
            if reason not in STARTUP_REASONS:
                kind = "volume" if reason in CONFIGURATION_REASONS else "starting"
                kind = "image" if reason in IMAGE_REASONS else kind
                return kind, f"{reason}: {message}".removesuffix(": ")
    sidecar = named_object(pod, STORE_CONTAINER, "status", "initContainerStatuses")
    if value_at(sidecar, "state", "running") is not None:
        return "starting", f"PodInitializing: {RESTORES}"
    return ("volume", f"FailedMount: {mount_failure}") if mount_failure else None
