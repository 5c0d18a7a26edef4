"""Whose a pod is, and how far it is, by what the API says of it."""

from typing import Any

import pytest

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.pods import PodPhase, TrialPod, waiting_reason
from sweepledger.formats.manifest_fields import time_at
from tests.engine.trial_pods import BEGAN, ENDED, FAILURES, INDEX, a_pod, conditions, ended, with_variables

NOW = time_at({"at": ENDED}, "at") or 0.0


def read(manifest: dict[str, Any]) -> TrialPod:
    pod = pods.parse_pod(manifest)
    assert pod is not None
    return pod


def test_a_pod_of_an_indexed_job_belongs_to_its_completion_index() -> None:
    pod = read(a_pod(annotations={INDEX: "7", FAILURES: "2"}))

    assert (pod.uid, pod.index, pod.failures, pod.container) == ("uid-1", 7, 2, "trial")


def test_the_template_names_the_index_of_a_pod_of_one_trial() -> None:
    rank = f"metadata.annotations['{INDEX}']"
    first = with_variables(a_pod(index=0), SWEEP_INDEX="5", SWEEP_RANK=rank)
    second = with_variables(a_pod(index=1), SWEEP_INDEX="5", SWEEP_RANK=rank)
    plain = with_variables(a_pod(index=None), SWEEP_INDEX="3")

    assert read(first).index == 5
    assert pods.parse_pod(second) is None, "rank 1 writes no record"
    assert (read(plain).index, read(plain).failures) == (3, None)


@pytest.mark.parametrize(
    "change",
    [{"command": ["/usr/sbin/sshd"]}, {"command": None}, {"command": "/sweep/launcher/launch.py"}],
    ids=["a-worker", "nothing", "a-text"],
)
def test_a_pod_without_a_launcher_belongs_to_no_trial(change: dict[str, Any]) -> None:
    pod = a_pod()
    pod["spec"]["containers"][0].update(change)

    assert pods.parse_pod(pod) is None


@pytest.mark.parametrize("index", ["", "-1", "1e3", "٣", "9" * 12])
def test_an_index_that_is_not_a_plain_number_is_refused(index: str) -> None:
    assert pods.parse_pod(a_pod(annotations={INDEX: index})) is None


def test_a_trial_cannot_change_the_index_of_its_pod() -> None:
    pod = a_pod(index=1, state=ended(0, message='{"index": 0, "uid": "uid-0"}'), phase="Succeeded")

    assert (read(pod).index, read(pod).uid) == (1, "uid-1")


READY = conditions(PodScheduled="True", Ready="True", ContainersReady="True")
SILENT = conditions(PodScheduled="True", Ready="False", ContainersReady="True")
OVER = conditions(PodScheduled="True", Ready="False", ContainersReady="False")
PUT = conditions(PodScheduled="True")


DELETED = {"deletionTimestamp": ENDED}
NOWHERE = conditions(PodScheduled="False")
PHASES = {
    "ready": ("Running", {"conditions": READY}, {}, 0, PodPhase.RUNNING),
    "silent": ("Running", {"conditions": SILENT}, {}, 0, PodPhase.LOST),
    "ending": ("Running", {"conditions": OVER}, {}, 0, PodPhase.RUNNING),
    "being deleted": ("Running", {"conditions": READY}, DELETED, 30, PodPhase.RUNNING),
    "deletion unconfirmed": ("Running", {"conditions": READY}, DELETED, 90, PodPhase.LOST),
    "just put": ("Pending", {"conditions": PUT, "startTime": None}, {}, 0, PodPhase.WAITING),
    "never taken up": ("Pending", {"conditions": PUT, "startTime": None}, {}, 90, PodPhase.LOST),
    "pulling": ("Pending", {"conditions": PUT, "startTime": BEGAN}, {}, 9000, PodPhase.WAITING),
    "nowhere": ("Pending", {"conditions": NOWHERE}, {}, 9000, PodPhase.WAITING),
    "unknown": ("Unknown", {}, {}, 0, PodPhase.LOST),
    "failed": ("Failed", {"conditions": SILENT}, DELETED, 90, PodPhase.FAILED),
    "succeeded": ("Succeeded", {}, {}, 0, PodPhase.SUCCEEDED),
    "nonsense": ("", {"conditions": 5}, {}, 0, PodPhase.WAITING),
}


@pytest.mark.parametrize(("phase", "status", "metadata", "later", "result"), PHASES.values(), ids=PHASES)
def test_a_pod_of_a_silent_node_is_lost(
    phase: str, status: dict[str, Any], metadata: dict[str, Any], later: float, result: PodPhase
) -> None:
    pod = read(a_pod(phase=phase, status=status, **metadata))

    assert pod.phase(NOW + later) is result


RESTORING = {"name": "store", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


@pytest.mark.parametrize(
    ("status", "state", "word"),
    [
        ({"conditions": UNSCHEDULABLE}, {}, "Unschedulable"),
        ({}, {"waiting": {"reason": "ImagePullBackOff"}}, "ImagePullBackOff"),
        ({}, {"waiting": {"reason": "ContainerCreating"}}, ""),
        (
            {"initContainerStatuses": [RESTORING]},
            {"waiting": {"reason": "PodInitializing"}},
            "PodInitializing",
        ),
        ({}, {}, ""),
    ],
    ids=["no-node", "no-image", "usual", "restoring", "nothing"],
)
def test_the_reason_is_that_of_the_api(status: dict[str, Any], state: dict[str, Any], word: str) -> None:
    reason = waiting_reason(a_pod(phase="Pending", status=status, state=state))

    assert (reason[1].partition(":")[0] if reason else "") == word
