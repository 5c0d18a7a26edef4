"""A real Job controller counts no failure for pods that it ends for a pause, or because they are too many.

The test does what a kubelet does, so neither containers nor images are needed.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import batch_json
from sweepledger.structs.run_config import RunningState
from tests.cluster import machine
from tests.cluster.apiserver import Server
from tests.cluster.children import until
from tests.cluster.overlays import CASES
from tests.cluster.test_golden_overlays import APPLY, built, in_state
from tests.manifests import manifest

pytestmark = pytest.mark.usefixtures("needs_kustomize")

SECONDS = 300
NODE = "by-hand"
SPACE = "research"
"""As the golden overlays have it; here without a platform."""
OVERLAY = pytest.mark.parametrize(
    "overlay",
    [path for path in CASES if path.parents[1].name in {"indexed", "jobs"}],
    ids=lambda path: path.parents[1].name,
)
SIGTERM = 143


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A control plane with a node on which the tests run pods; skip by name where there can be none."""
    with machine.without_node() as made:
        node = manifest("Node", NODE, spec={"unschedulable": True})
        account = manifest("ServiceAccount", "sweep-trial", SPACE)
        made.server.apply(node, manifest("Namespace", SPACE), account)
        yield made.server


@dataclass(frozen=True)
class Kubelet:
    """What a kubelet tells the API of the pods of one batch."""

    server: Server
    batch: str

    def pods(self) -> list[dict[str, Any]]:
        return self._listed("/api/v1", "pods")

    def jobs(self) -> list[dict[str, Any]]:
        return self._listed("/apis/batch/v1", "jobs")

    def _listed(self, group: str, kind: str) -> list[dict[str, Any]]:
        path = f"{group}/namespaces/{SPACE}/{kind}?labelSelector=sweepledger.dev/batch={self.batch}"
        items: list[dict[str, Any]] = (self.server.ask(path) or {})["items"]
        return items

    def running(self) -> list[dict[str, Any]]:
        self.work()
        return [pod for pod in self.pods() if _phase(pod) == "Running" and not _is_doomed(pod)]

    def work(self) -> None:
        for pod in self.pods():
            name = pod["metadata"]["name"]
            if _is_doomed(pod):
                if _phase(pod) == "Running":
                    self.end(pod, SIGTERM)
                self._kubectl("delete", "pod", name, "--force", "--ignore-not-found")
            elif "nodeName" not in pod["spec"]:
                target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
                bound = manifest("Binding", name, target=target)
                path = f"/api/v1/namespaces/{SPACE}/pods/{name}/binding"
                self.server.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(bound))
            elif _phase(pod) == "Pending":
                self._say(pod, {"phase": "Running"})

    def end(self, pod: dict[str, Any], code: int) -> None:
        state = {"restartCount": 0, "state": {"terminated": {"exitCode": code}}}
        container = {"name": "trial", "image": "trainer", "imageID": "", "ready": False, **state}
        self._say(pod, {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]})

    def _say(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        name = pod["metadata"]["name"]
        self._kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "--patch", patch)

    def _kubectl(self, *words: str) -> None:
        self.server.kubectl(*words, f"--namespace={SPACE}")


def _phase(pod: dict[str, Any]) -> str:
    return str(pod["status"].get("phase", "Pending"))


def _is_doomed(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def without_retries(made: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest; that of a Job with no second attempt."""
    if made["kind"] != "Job":
        return made
    limit = "backoffLimitPerIndex" if "backoffLimitPerIndex" in made["spec"] else "backoffLimit"
    return {**made, "spec": {**made["spec"], limit: 0}}


@OVERLAY
def test_pauses_cost_no_attempt_and_a_deleted_pod_one(overlay: Path, server: Server, tmp_path: Path) -> None:
    lock = batch_json.read((overlay / "batch.json").read_bytes())
    kubelet = Kubelet(server, lock.name)
    many = 3 if lock.shape == "indexed" else lock.trials

    def apply(name: str, state: RunningState | None) -> None:
        changed = in_state(tmp_path / f"{name}-overlay", overlay, state)
        made = [
            json.loads(json.dumps(each).replace('"namespace": "golden-plain"', f'"namespace": "{SPACE}"'))
            for each in built(tmp_path / name, changed)
        ]
        server.kubectl(*APPLY, given=list(map(without_retries, made)))

    def until_running(count: int) -> None:
        until(f"{count} trials run", lambda: len(kubelet.running()) == count, seconds=SECONDS, pause=0.2)

    def until_none() -> None:
        gone: Callable[[], bool] = lambda: kubelet.running() == [] and kubelet.pods() == []  # noqa: E731
        until("no pod is left", gone, seconds=SECONDS, pause=0.2)

    apply("first", RunningState(paused=False, parallelism=3))
    until_running(many)
    if lock.shape == "indexed":
        apply("fewer", RunningState(paused=False, parallelism=1))
        until_running(1)
    for number in range(2):
        apply(f"paused-{number}", RunningState(paused=True))
        until_none()
        apply(f"resumed-{number}", RunningState(paused=False, parallelism=3))
        until_running(many)
    assert all(job["status"].get("failed", 0) == 0 for job in kubelet.jobs())
    assert all(not job["status"].get("failedIndexes") for job in kubelet.jobs())

    *others, last = kubelet.running()
    for pod in others:
        kubelet.end(pod, 0)
    server.kubectl("delete", "pod", last["metadata"]["name"], f"--namespace={SPACE}", "--wait=false")

    def have_ended() -> bool:
        kubelet.work()
        return all(_is_over(job) for job in kubelet.jobs())

    until("the Jobs have ended", have_ended, seconds=SECONDS, pause=0.2)
    assert sum(job["status"].get("failed", 0) for job in kubelet.jobs()) == 1
    assert sum(job["status"].get("succeeded", 0) for job in kubelet.jobs()) == many - 1


def _is_over(job: dict[str, Any]) -> bool:
    return any(each["type"] in {"Complete", "Failed"} for each in job["status"].get("conditions", ()))
