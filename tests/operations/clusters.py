"""A namespace of a real API server, in which Jobs and pods are what a test says: no controller runs there."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.formats.launch_json import LAUNCHER_PATH
from sweepledger.operations.collection.collector import Collection, collect_from_cluster
from sweepledger.operations.collection.record_store import on_volume
from tests.cluster.apiserver import Server
from tests.operations.test_collect import column, leave
from tests.repository import Sandbox

MOMENT = "2026-01-01T00:00:00Z"
ENDED_AT = 1767225600.0
"""The same, in seconds since 1970."""
STATUS: dict[str, dict[str, Any]] = {
    "Complete": {"conditions": ["SuccessCriteriaMet", "Complete"], "completionTime": MOMENT},
    "Failed": {"conditions": ["FailureTarget", "Failed"]},
}
"""What the Job controller says of an end: the server takes a condition only behind its announcement."""
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IMAGE_ID = "registry.example/train@sha256:" + "a" * 64

Look = Callable[..., Collection]
"""Collects once, and gives what was found."""


@dataclass(frozen=True)
class Cluster:
    """The namespace."""

    server: Server
    namespace: str

    def apply(self, kind: str, name: str, batch: str, version: str = "v1", **fields: Any) -> None:
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "labels": {"sweepledger.dev/batch": batch},
            **fields.pop("metadata", {}),
        }
        self.server.apply({"apiVersion": version, "kind": kind, "metadata": metadata, **fields})

    def job(
        self, batch: str, name: str = "", ends: str | None = None, *, trials: int = 0, **metadata: Any
    ) -> None:
        name = name or batch
        pod = {"restartPolicy": "Never", "containers": [{"name": "trial", "image": "a.example/b"}]}
        counted: dict[str, Any] = {}
        if trials:
            counted = {"completionMode": "Indexed", "completions": trials, "backoffLimitPerIndex": 1}
        spec = {**counted, "template": {"spec": pod}}
        self.apply("Job", name, batch, "batch/v1", spec=spec, metadata=metadata)
        if ends:
            self.end(name, ends)

    def job_of_trial(self, batch: str, index: int, ends: str | None = None) -> None:
        labels = {"sweepledger.dev/batch": batch, "sweepledger.dev/index": str(index)}
        self.job(batch, f"{batch}-{index}", ends, labels=labels)

    def end(self, job: str, ends: str, **more: Any) -> None:
        true = {"status": "True", "lastTransitionTime": MOMENT, "reason": "Test", "message": ""}
        documents = [{"type": condition, **true} for condition in STATUS[ends]["conditions"]]
        self.say("jobs", job, {"startTime": MOMENT, **STATUS[ends], "conditions": documents, **more})

    def pod(self, batch: str, name: str = "left") -> None:
        self.apply("Pod", name, batch, spec={"containers": [{"name": "trial", "image": "a.example/b"}]})

    def attempt(
        self,
        batch: str,
        index: int,
        name: str,
        *,
        numbered: bool = True,
        failures: int = 0,
        variables: dict[str, str] | None = None,
        finalizers: Sequence[str] = (),
    ) -> str:
        """Make the pod of an attempt as a controller would; give its uid."""
        env = [{"name": key, "value": value} for key, value in (variables or {}).items()]
        command = ["python3", LAUNCHER_PATH]
        container = {"name": "trial", "image": "a.example/b", "command": command, "env": env}
        messages = {INDEX: str(index), FAILURES: str(failures)} if numbered else {}
        metadata: dict[str, Any] = {"annotations": messages, "labels": {"sweepledger.dev/batch": batch}}
        metadata |= {"finalizers": [*finalizers]} if finalizers else {}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": batch, "uid": "1", "controller": True}
        metadata |= {"name": name, "namespace": self.namespace, "ownerReferences": [owner]}
        spec = {"restartPolicy": "Never", "containers": [container]}
        self.apply("Pod", name, batch, metadata=metadata, spec=spec)
        completed = self.server.kubectl("get", "pod", name, *self.here, "--output=jsonpath={.metadata.uid}")
        return str(completed.stdout)

    def ended(self, pod: str, code: int, message: str = "", *, reason: str = "Error", **status: Any) -> None:
        times = {"startedAt": MOMENT, "finishedAt": MOMENT}
        state = {"exitCode": code, "reason": reason, "message": message, **times}
        self.stands(pod, "Failed" if code else "Succeeded", {"terminated": state}, **status)

    def stands(self, pod: str, phase: str, state: dict[str, Any] | None = None, **status: Any) -> None:
        container = {"name": "trial", "image": "a.example/b", "imageID": IMAGE_ID, "restartCount": 0}
        running = {"running": {"startedAt": MOMENT}}
        containers = [{**container, "ready": phase == "Running", "state": state or running}]
        reported = {"phase": phase, "startTime": MOMENT, "containerStatuses": containers}
        self.say("pods", pod, {**reported, **status})

    def say(self, kind: str, name: str, status: dict[str, Any]) -> None:
        """Write a status as a controller or a kubelet would."""
        patch = ("--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
        self.server.kubectl("patch", kind, name, *self.here, *patch)

    def event(self, kind: str, name: str, reason: str, message: str, *, uid: str = "") -> None:
        """Write an event as a controller or a kubelet would."""
        about = {"kind": kind, "name": name, "namespace": self.namespace, **({"uid": uid} if uid else {})}
        event = {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": MOMENT}
        metadata = {"name": f"{name}.{reason.lower()}", "namespace": self.namespace}
        self.server.apply({"apiVersion": "v1", "kind": "Event", "metadata": metadata, **event})

    def delete(self, kind: str, name: str) -> None:
        """Delete an object by hand."""
        now = ("--now", "--cascade=background", "--timeout=20s")
        self.server.kubectl("delete", kind, name, *self.here, *now)

    @property
    def here(self) -> tuple[str, str]:
        return ("--namespace", self.namespace)


@dataclass(frozen=True)
class Scene(Cluster):
    """The namespace with the Job of a merged batch, its volume, and what a collector makes of it."""

    sandbox: Sandbox
    results: Path
    batch: str

    def leave(self, *indexes: int, **changes: Any) -> None:
        """Leave records on the volume."""
        for index in indexes:
            leave(self.results, self.sandbox.batch(), index, **changes)

    def message(self, index: int, uid: str, **changes: Any) -> str:
        """Return the record of an attempt as its launcher leaves it with the node."""
        elsewhere = self.results.with_name("elsewhere")
        return leave(elsewhere, self.sandbox.batch(), index, uid=uid, **changes).read_text()

    def starts(self, index: int, name: str = "", **options: Any) -> str:
        """Make the pod of an attempt; return its uid."""
        return self.attempt(self.batch, index, name or f"pod-{index}", **options)

    def over(self, completed: str = "", failed: str = "") -> None:
        """Let the Job say that it has ended, and with which indexes."""
        self.end(
            self.batch, "Failed" if failed else "Complete", completedIndexes=completed, failedIndexes=failed
        )

    def look(self, after: float) -> Collection:
        """Collect so long after the end of every Job and pod."""
        target, clock = self.sandbox.target(), lambda: ENDED_AT + after
        return collect_from_cluster(target, on_volume(self.results), Kubectl(), self.namespace, clock=clock)

    def recorded(self, after: float) -> list[str]:
        """Collect, and return the status of each trial as main has it then."""
        assert self.look(after).collected
        return column(self.sandbox, "status")
