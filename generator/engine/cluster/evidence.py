"""What a pod that has ended tells of its attempt: the record in its termination message, or how it ended.

A message is a trial's own word, so it is believed of nothing but the pod it was read from.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from generator.engine import endings
from generator.engine.cluster import parts
from generator.engine.cluster.pods import TrialPod
from generator.engine.endings import Asked, Ending
from generator.formats import record as record_format
from generator.structs.record import NOTHING, Record

SAID = 300
"""Characters of last words: ten thousand attempts with theirs stay small."""

DISRUPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "PreemptionByScheduler": "preempted",
        "DeletionByTaintManager": "node-lost",
        "DeletionByPodGC": "node-lost",
        "EvictionByEvictionAPI": "evicted",
        "TerminationByKubelet": "evicted",
    }
)
"""The reasons of the condition DisruptionTarget: somebody took the pod away from its trial."""
POD_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "DeadlineExceeded": "timeout",
        "Evicted": "evicted",
        "NodeLost": "node-lost",
        "NodeShutdown": "evicted",
        "Preempting": "preempted",
        "Shutdown": "evicted",
        "Terminated": "evicted",
        "NodeAffinity": "refused-by-node",
        "NodePorts": "refused-by-node",
        "UnexpectedAdmissionError": "refused-by-node",
    }
)
"""What the kubelet says of a pod that it ended, or did not take; also `OutOf…` of whatever it lacked."""
NOT_PULLED = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
CONTAINER_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "OOMKilled": "oom",
        "StartError": "start-failed",
        "RunContainerError": "start-failed",
        "ContainerCannotRun": "start-failed",
        "CreateContainerError": "start-failed",
        "CreateContainerConfigError": "start-failed",
        **dict.fromkeys(NOT_PULLED, "image-not-pulled"),
    }
)

RAN = re.compile(r"(?:[a-z-]+://)?([A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511})", re.ASCII)
NODE = re.compile(r"[A-Za-z0-9._-]{1,253}", re.ASCII)
LARGEST_CODE = 255
NO_BEGINNING = "its container never began: no image within the pod's time, or nothing to make it from"


def testimony(pod: TrialPod, asked: Asked) -> Record | None:
    """Give the record that a pod's launcher left in its termination message; None if it is not its own."""
    message = parts.text(pod.status, "state", "terminated", "message")
    found = asked.believed(message.encode(errors="replace"), pod.uid) if message else None
    return found if found is not None and asked.expects(found) else None


def cause(pod: TrialPod) -> str | None:
    """Say by whom or what a pod was ended, where its launcher could not know."""
    told = parts.text(pod.status, "state", "terminated", "reason")
    found = _from_outside(pod)[0] or CONTAINER_REASONS.get(told)
    return found if found in endings.SAID_BY_LAUNCHERS else None


def ending(pod: TrialPod) -> Ending:
    """Say how a pod ended that left no record."""
    state = parts.at(pod.status, "state")
    reason, said = _reason(pod, state)
    started = (
        parts.moment(state, "terminated", "startedAt")
        or parts.moment(pod.manifest, "status", "startTime")
        or pod.created
    )
    finished = (
        parts.moment(state, "terminated", "finishedAt")
        or parts.moment(parts.condition(pod.manifest, "DisruptionTarget"), "lastTransitionTime")
        or parts.moment(parts.condition(pod.manifest, "Ready"), "lastTransitionTime")
        or started
    )
    ran = RAN.fullmatch(parts.text(pod.status, "imageID"))
    return Ending(
        uid=pod.uid,
        attempt=0 if pod.failures is None else pod.failures + 1,
        code=_code(pod, state),
        reason=reason,
        started=started,
        finished=max(started, finished),
        node=pod.node if NODE.fullmatch(pod.node) else None,
        said=_clean(said),
        ran=ran[1] if ran else NOTHING,
    )


def substitute(asked: Asked, ended: Ending) -> Record | None:
    """Make the record of a pod that left none; None where the API says what no record can hold."""
    made = record_format.from_line(record_format.to_line(endings.record(asked, ended)))
    return made if isinstance(made, Record) else None


def _code(pod: TrialPod, state: object) -> int:
    found = parts.number(state, "terminated", "exitCode")
    if found is None or not 0 <= found <= LARGEST_CODE:
        return 0 if parts.text(pod.manifest, "status", "phase") == "Succeeded" else 1
    return found


def _reason(pod: TrialPod, state: object) -> tuple[str | None, str]:
    """Say why a pod ended where its exit code does not tell, and what was said of it.

    Who ended it comes before how: what is killed for want of memory on the node was not the trial's fault.
    """
    if parts.text(pod.manifest, "status", "phase") == "Succeeded":
        return None, ""
    reason, says = _from_outside(pod)
    if reason == "timeout" and not _has_begun(pod):
        return "start-failed", NO_BEGINNING
    return (reason, says) if reason else _of_container(pod, state)


def _from_outside(pod: TrialPod) -> tuple[str | None, str]:
    """Say who took a pod away, or would not have it."""
    says = parts.text(pod.manifest, "status", "message")
    disruption = parts.condition(pod.manifest, "DisruptionTarget")
    if disruption.get("status") == "True":
        found = DISRUPTIONS.get(parts.text(disruption, "reason"), "evicted")
        return found, says or parts.text(disruption, "message")
    reason = parts.text(pod.manifest, "status", "reason")
    return ("refused-by-node" if reason.startswith("OutOf") else POD_REASONS.get(reason)), says


def _of_container(pod: TrialPod, state: object) -> tuple[str | None, str]:
    for first in parts.objects(pod.manifest, "status", "initContainerStatuses"):
        code = parts.number(first, "state", "terminated", "exitCode")
        if code:
            return "start-failed", f"{parts.text(first, 'name')} ended with exit code {code}"
    waiting = parts.text(state, "waiting", "reason")
    word = waiting or parts.text(state, "terminated", "reason")
    said = parts.text(state, "waiting" if waiting else "terminated", "message")
    if waiting or not parts.at(state, "terminated"):
        return CONTAINER_REASONS.get(word, "start-failed"), said
    return CONTAINER_REASONS.get(word), said


def _has_begun(pod: TrialPod) -> bool:
    state = parts.at(pod.status, "state")
    began = parts.moment(state, "terminated", "startedAt") or parts.moment(state, "running", "startedAt")
    return began is not None or bool(parts.text(pod.status, "imageID"))


def _clean(said: str) -> str:
    return said.strip()[:SAID].encode(errors="replace").decode()
