"""How the pod of a trial ended: by the record in its termination message, or by the reason that the API reports.

The message is untrusted, so it is used only for the pod that it was read from.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.engine import termination
from sweepledger.engine.cluster.pods import IMAGE_REASONS, TrialPod
from sweepledger.engine.termination import ExpectedRecord, Termination
from sweepledger.formats import pack_digest
from sweepledger.formats import record_json as record_format
from sweepledger.formats.manifest_fields import (
    condition,
    int_at,
    named_object,
    objects_at,
    text_at,
    time_at,
    value_at,
)
from sweepledger.structs.kubernetes import STORE_CONTAINER
from sweepledger.structs.record import RAN_NOTHING, Record

MAX_MESSAGE_LENGTH = 300
"""Characters of a message, so that ten thousand records stay small."""

DISRUPTIONS: Mapping[str, str] = {
    "PreemptionByScheduler": "preempted",
    "DeletionByTaintManager": "node-lost",
    "DeletionByPodGC": "node-lost",
    "EvictionByEvictionAPI": "evicted",
    "TerminationByKubelet": "evicted",
}
"""Reasons of the condition DisruptionTarget, which others than the trial caused."""
POD_REASONS: Mapping[str, str] = {
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
"""Reasons of the kubelet for pods that it ended or refused; further ones begin with `OutOf`."""
CONTAINER_REASONS: Mapping[str, str] = {
    "OOMKilled": "oom",
    "StartError": "start-failed",
    "RunContainerError": "start-failed",
    "ContainerCannotRun": "start-failed",
    "CreateContainerError": "start-failed",
    "CreateContainerConfigError": "start-failed",
    **dict.fromkeys(IMAGE_REASONS, "image-not-pulled"),
}

NEVER_STARTED = frozenset({"image-not-pulled", "refused-by-node", "start-failed"})
"""Reasons of a kubelet for a container that it did not start."""

IMAGE_ID = re.compile(r"(?:[a-z-]+://)?([A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511})", re.ASCII)
NODE_NAME = re.compile(r"[A-Za-z0-9._-]{1,253}", re.ASCII)
LARGEST_CODE = 255
SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII)
NOT_STARTED = "its container never started before the pod's deadline: the image or a volume was missing"


def read_record(pod: TrialPod, expected: ExpectedRecord) -> Record | None:
    """Return the record in a pod's termination message, or its first part; None if it is not the expected record."""
    message = text_at(pod.state, "terminated", "message")
    record = record_format.read_message(message.encode(errors="replace")) if message else None
    if not isinstance(record, Record) or record.reason in termination.OBSERVED_REASONS:
        return None
    return record if expected.owns(record, pod.uid) and expected.expects(record) else None


def stored_records(pod: TrialPod) -> tuple[set[tuple[str, str]], bool]:
    """Return the records in a bucket that an ended pod confirms, and whether its sidecar reports that all is saved.

    Attempts with the SHA-256 of their records: its own, and earlier ones that its sidecar found. A pod without a
    sidecar has nothing to save.
    """
    own, digests = _message_data(pod.status), set[tuple[str, str]]()
    if "sha256" in own:
        # The digest that the launcher's message has, or that of the record that it is.
        digests |= {(pod.uid, match[1]) for match in [SHA256.fullmatch(str(own["sha256"]))] if match}
    elif own:
        text = text_at(pod.state, "terminated", "message").encode(errors="replace")
        # The record ends in a line end, which the API may have cut off.
        lines = (text, text.rstrip(b"\n") + b"\n")
        digests = {(pod.uid, hashlib.sha256(line).hexdigest()) for line in lines}
    sidecar = named_object(pod.manifest, STORE_CONTAINER, "status", "initContainerStatuses")
    if not sidecar:
        return digests, True
    said = _message_data(sidecar)
    records = said.get("records")
    for uid, sha256 in records.items() if isinstance(records, dict) else ():
        digests |= {(uid, match[1]) for match in [SHA256.fullmatch(str(sha256))] if match}
    return digests, said.get("complete") is True


def vouched_rows(pod: TrialPod, known: Mapping[str, Mapping[int, str]]) -> Iterator[tuple[str, int]]:
    """Yield pod and row of the known records that an ended pod of several trials confirms.

    `known` has the SHA-256 of records in a bucket, by pod and row. The launcher confirms its records, the sidecar also
    those of earlier pods.
    """
    own = _message_data(pod.status)
    of_pod = known.get(pod.pod_uid, {})
    yield from ((pod.pod_uid, row) for row in pack_digest.vouched_by_launcher(own, pod.rows, of_pod))
    sidecar = named_object(pod.manifest, STORE_CONTAINER, "status", "initContainerStatuses")
    packs = _message_data(sidecar).get("packs")
    for uid, text in packs.items() if isinstance(packs, dict) else ():
        for row in pack_digest.vouched(str(text), known.get(uid, {})):
            if row in pod.rows:
                yield uid, row


def _message_data(container: object) -> dict[str, Any]:
    """Return the JSON object in a container's termination message; empty if the message is not an object."""
    try:
        data = json.loads(text_at(container, "state", "terminated", "message"))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def observed_times(pod: TrialPod) -> tuple[str, str] | None:
    """Return when the container of an ended pod started and ended, as its kubelet reported it; None if unknown.

    A container that the kubelet never started took no time.
    """
    started, finished = (time_at(pod.state, "terminated", key) for key in ("startedAt", "finishedAt"))
    if started is None and not _has_started(pod) and _reason(pod)[0] in NEVER_STARTED:
        started = finished = read_termination(pod).finished
    if started is None or finished is None or finished < started:
        return None
    return record_format.format_time(started), record_format.format_time(finished)


def external_cause(pod: TrialPod) -> str | None:
    """Return the cause of a pod's end if its launcher could not know it."""
    reason = text_at(pod.state, "terminated", "reason")
    cause = _external_reason(pod)[0] or CONTAINER_REASONS.get(reason)
    return cause if cause in termination.LAUNCHER_REASONS else None


def read_termination(pod: TrialPod) -> Termination:
    """Return how a pod without a record ended."""
    reason, message = _reason(pod)
    started = (
        time_at(pod.state, "terminated", "startedAt")
        or time_at(pod.manifest, "status", "startTime")
        or pod.created
    )
    finished = (
        time_at(pod.state, "terminated", "finishedAt")
        or time_at(condition(pod.manifest, "DisruptionTarget"), "lastTransitionTime")
        or time_at(condition(pod.manifest, "Ready"), "lastTransitionTime")
        or started
    )
    code = int_at(pod.state, "terminated", "exitCode")
    if code is None or not 0 <= code <= LARGEST_CODE:
        code = 0 if text_at(pod.manifest, "status", "phase") == "Succeeded" else 1
    ran = IMAGE_ID.fullmatch(text_at(pod.status, "imageID"))
    return Termination(
        uid=pod.uid,
        attempt=0 if pod.failures is None else pod.failures + 1,
        code=code,
        reason=reason,
        started=started,
        finished=max(started, finished),
        node=pod.node if NODE_NAME.fullmatch(pod.node) else None,
        message=message.strip()[:MAX_MESSAGE_LENGTH].encode(errors="replace").decode(),
        ran=ran[1] if ran else RAN_NOTHING,
        disruptions=pod.disruptions,
    )


def substitute_record(expected: ExpectedRecord, ending: Termination) -> Record | None:
    """Return the substitute for a pod's missing record; None if the API's values make no valid record."""
    line = record_format.to_line(termination.substitute_record(expected, ending))
    record = record_format.read(line.encode())
    return record if isinstance(record, Record) else None


def _reason(pod: TrialPod) -> tuple[str | None, str]:
    """Return the reason if it is not the exit code, and the message.

    External causes come first: a pod that is killed for lack of memory on its node did not exceed its own limit.
    """
    if text_at(pod.manifest, "status", "phase") == "Succeeded":
        return None, ""
    reason, message = _external_reason(pod)
    if reason == "timeout" and not _has_started(pod):
        return "start-failed", NOT_STARTED
    return (reason, message) if reason else _container_reason(pod)


def _external_reason(pod: TrialPod) -> tuple[str | None, str]:
    """Return why a node or controller ended or refused a pod, and the message."""
    message = text_at(pod.manifest, "status", "message")
    disruption = condition(pod.manifest, "DisruptionTarget")
    if disruption.get("status") == "True":
        cause = DISRUPTIONS.get(text_at(disruption, "reason"), "evicted")
        return cause, message or text_at(disruption, "message")
    reason = text_at(pod.manifest, "status", "reason")
    return ("refused-by-node" if reason.startswith("OutOf") else POD_REASONS.get(reason)), message


def _container_reason(pod: TrialPod) -> tuple[str | None, str]:
    for container in objects_at(pod.manifest, "status", "initContainerStatuses"):
        code = int_at(container, "state", "terminated", "exitCode")
        # A sidecar ends after the trial, however that has ended, and may be killed.
        if code and text_at(container, "name") != STORE_CONTAINER:
            return "start-failed", f"{text_at(container, 'name')} ended with exit code {code}"
    waiting = text_at(pod.state, "waiting", "reason")
    reason = waiting or text_at(pod.state, "terminated", "reason")
    message = text_at(pod.state, "waiting" if waiting else "terminated", "message")
    if waiting or not value_at(pod.state, "terminated"):
        return CONTAINER_REASONS.get(reason, "start-failed"), message
    return CONTAINER_REASONS.get(reason), message


def _has_started(pod: TrialPod) -> bool:
    started = time_at(pod.state, "terminated", "startedAt") or time_at(pod.state, "running", "startedAt")
    return started is not None or bool(text_at(pod.status, "imageID"))
