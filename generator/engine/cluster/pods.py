"""Pods of trials as the API shows them: whose they are, and how far they are.

Whose a pod is stands in its template and in what controllers write on it, which no trial can change: never in
what a trial says.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from generator.engine.cluster import parts
from generator.engine.cluster.kubectl import Kubectl, Manifest
from generator.formats.launch import LAUNCHER_PATH
from generator.structs.labels import BATCH_LABEL, INDEX_VARIABLE

PODS = "/api/v1/namespaces/{}/pods"

RANK_VARIABLE = "SWEEP_RANK"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

NOT_SUCCEEDED = "status.phase!=Succeeded"
SUCCEEDED = "status.phase=Succeeded"

SILENCE_SECONDS = 60
"""How long a node may say nothing of a pod before it is called lost: several times what a busy one takes."""


class Phase(Enum):
    """How far a pod is."""

    WAITING = "waiting"
    """For a node, an image, a volume."""
    RUNNING = "running"
    LOST = "lost"
    """Its node does not answer: nobody knows whether it runs."""
    FAILED = "failed"
    SUCCEEDED = "succeeded"

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more comes of it."""
        return self in {Phase.FAILED, Phase.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class TrialPod:
    """A pod whose launcher writes the record of a trial."""

    uid: str
    index: int
    failures: int | None
    """Of its index before it, where its Job counts them."""
    container: str
    """The name of the launcher's."""
    manifest: Manifest

    @property
    def node(self) -> str:
        """Where it was put, or nothing."""
        return parts.text(self.manifest, "spec", "nodeName")

    @property
    def created(self) -> float:
        """When it was made."""
        return parts.moment(self.manifest, "metadata", "creationTimestamp") or 0.0

    @property
    def status(self) -> Manifest:
        """What is said of its launcher's container."""
        return parts.named(self.manifest, self.container, "status", "containerStatuses")

    def phase(self, now: float) -> Phase:
        """Say how far it is."""
        match parts.text(self.manifest, "status", "phase"):
            case "Succeeded":
                return Phase.SUCCEEDED
            case "Failed":
                return Phase.FAILED
            case "Unknown":
                return Phase.LOST
            case said:
                if _is_lost(self.manifest, now):
                    return Phase.LOST
                return Phase.RUNNING if said == "Running" else Phase.WAITING

    @property
    def waits_for(self) -> str:
        """Give the API's word for what keeps it from running."""
        scheduled = parts.condition(self.manifest, "PodScheduled")
        if scheduled.get("status") == "False":
            return parts.text(scheduled, "reason")
        statuses = [
            *parts.objects(self.manifest, "status", "initContainerStatuses"),
            *parts.objects(self.manifest, "status", "containerStatuses"),
        ]
        said = (parts.text(one, "state", "waiting", "reason") for one in statuses)
        return next((one for one in said if one not in USUAL), "")


USUAL = frozenset({"", "PodInitializing", "ContainerCreating"})
"""What every pod waits for in its first seconds."""


def of_batch(kubectl: Kubectl, namespace: str, batch: str, fields: str) -> Iterator[TrialPod]:
    """Yield the pods of a batch that write records, as they come: hold none of them. Raises ClusterError."""
    path, selector = PODS.format(namespace), f"{BATCH_LABEL}={batch}"
    for portion in kubectl.portions(path, selector, fields=fields):
        for manifest in portion:
            found = read(manifest)
            if found is not None:
                yield found


def any_of(kubectl: Kubectl, namespace: str, batch: str) -> bool:
    """Tell whether any pod of a batch is there, whatever its phase. Raises ClusterError."""
    portions = kubectl.portions(PODS.format(namespace), f"{BATCH_LABEL}={batch}", size=1)
    return any(next(portions, ()))


def read(manifest: Manifest) -> TrialPod | None:
    """Read a pod; None where no launcher writes a record in it: a worker of several, or no trial's."""
    container = next(filter(_is_launchers, parts.objects(manifest, "spec", "containers")), None)
    uid = parts.text(manifest, "metadata", "uid")
    if container is None or not uid or _told(manifest, container, RANK_VARIABLE) not in {"", "0"}:
        return None
    index = _told(manifest, container, INDEX_VARIABLE) or _annotation(manifest, COMPLETION_INDEX)
    failures = _annotation(manifest, FAILURES)
    if not NUMBER.fullmatch(index):
        return None
    return TrialPod(
        uid,
        int(index),
        int(failures) if NUMBER.fullmatch(failures) else None,
        parts.text(container, "name"),
        manifest,
    )


def _is_launchers(container: Manifest) -> bool:
    command = parts.at(container, "command")
    return isinstance(command, list) and LAUNCHER_PATH in command


def _told(manifest: Manifest, container: Manifest, name: str) -> str:
    """Give a variable that the launcher is given: what the template says, or the pod's own metadata."""
    variable: Any = parts.named(container, name, "env")
    if field := FIELD.fullmatch(parts.text(variable, "valueFrom", "fieldRef", "fieldPath")):
        return parts.text(manifest, "metadata", field[1], field[2])
    return parts.text(variable, "value")


def _annotation(manifest: Manifest, name: str) -> str:
    return parts.text(manifest, "metadata", "annotations", name)


def _is_lost(manifest: Manifest, now: float) -> bool:
    """Tell by the pod alone whether its node has fallen silent: few people may read Nodes.

    Of a node that does not answer the control plane says that its pods are not ready, though the node's own
    last word on their containers was that they are. A deletion is confirmed by nobody, and a pod that was
    only just put there is never taken up.
    """
    ready, containers = (
        parts.condition(manifest, name).get("status") for name in ("Ready", "ContainersReady")
    )
    if (ready, containers) == ("False", "True"):
        return True
    due = parts.moment(manifest, "metadata", "deletionTimestamp")
    if due is not None and now > due + SILENCE_SECONDS:
        return True
    scheduled = parts.condition(manifest, "PodScheduled")
    placed = parts.moment(scheduled, "lastTransitionTime")
    is_taken = scheduled.get("status") != "True" or parts.text(manifest, "status", "startTime")
    return not is_taken and placed is not None and now > placed + SILENCE_SECONDS
