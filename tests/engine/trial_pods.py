"""Pods as an API server gives them: what a kubelet says of each end was seen, and is cut to what is read."""

from typing import Any

from sweepledger.formats.launch_json import LAUNCHER_PATH
from sweepledger.structs.kubernetes import BATCH_LABEL

MADE, BEGAN, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:15Z"
IMAGE_ID = "registry.example/train@sha256:" + "a" * 64
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


def a_pod(
    uid: str = "uid-1",
    index: int | None = 0,
    phase: str = "Failed",
    *,
    state: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """Give a pod of an Indexed Job; `state` is of the launcher's container, `status` more of the pod's."""
    numbered = {} if index is None else {INDEX: str(index), FAILURES: "0"}
    labels = {BATCH_LABEL: "peak-b1-3f9a1c2e", **metadata.pop("labels", {})}
    owner = {"kind": "Job", "name": labels[BATCH_LABEL], "controller": True}
    container = {"name": "trial", "command": ["python3", LAUNCHER_PATH], "image": "train"}
    of_container = {"name": "trial", "state": state or {}, "imageID": IMAGE_ID}
    return {
        "metadata": {
            "name": f"pod-{uid}",
            "uid": uid,
            "creationTimestamp": MADE,
            "annotations": numbered,
            "labels": labels,
            "ownerReferences": [owner],
            **metadata,
        },
        "spec": {"containers": [container], "nodeName": "node-1"},
        "status": {"phase": phase, "startTime": MADE, "containerStatuses": [of_container], **(status or {})},
    }


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    """Give the state of a container that ran to its end."""
    messages = {"message": message} if message else {}
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": BEGAN,
            "finishedAt": ENDED,
            **messages,
        }
    }


def disrupted(reason: str) -> dict[str, Any]:
    """Give the condition by which a pod says that somebody took it away."""
    results = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "taken"}
    return {"conditions": [{**results, "lastTransitionTime": ENDED}]}


def conditions(**messages: str) -> list[dict[str, Any]]:
    return [{"type": name, "status": value, "lastTransitionTime": BEGAN} for name, value in messages.items()]


def with_variables(pod: dict[str, Any], **variables: Any) -> dict[str, Any]:
    """Give the launcher variables: a text, or the path of a field of the pod."""
    pod["spec"]["containers"][0]["env"] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": value}}}
        if value.startswith("metadata.")
        else {"name": name, "value": value}
        for name, value in variables.items()
    ]
    return pod
