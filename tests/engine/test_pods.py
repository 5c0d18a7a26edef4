"""Whose a pod is, and how far it is, by what the API says of it."""

from typing import Any

import pytest

from generator.engine.cluster import pods
from generator.engine.cluster.parts import moment
from generator.engine.cluster.pods import Phase, TrialPod
from tests.engine.trial_pods import BEGAN, ENDED, FAILURES, INDEX, a_pod, conditions, ended, with_variables

NOW = moment({"at": ENDED}, "at") or 0.0


def read(manifest: dict[str, Any]) -> TrialPod:
    found = pods.read(manifest)
    assert found is not None
    return found


def test_a_pod_of_an_indexed_job_is_of_its_completion_index() -> None:
    found = read(a_pod(annotations={INDEX: "7", FAILURES: "2"}))

    assert (found.uid, found.index, found.failures, found.container) == ("uid-1", 7, 2, "trial")


def test_where_each_trial_has_its_object_the_template_says_whose_a_pod_is() -> None:
    rank = f"metadata.annotations['{INDEX}']"
    first = with_variables(a_pod(index=0), SWEEP_INDEX="5", SWEEP_RANK=rank)
    second = with_variables(a_pod(index=1), SWEEP_INDEX="5", SWEEP_RANK=rank)
    plain = with_variables(a_pod(index=None), SWEEP_INDEX="3")

    assert read(first).index == 5
    assert pods.read(second) is None, "rank 1 writes no record"
    assert (read(plain).index, read(plain).failures) == (3, None)


@pytest.mark.parametrize(
    "change",
    [
        {"command": ["/usr/sbin/sshd"]},
        {"command": None},
        {"command": "/sweep/launcher/launch.py"},
    ],
    ids=["a-worker", "nothing", "a-text"],
)
def test_a_pod_without_a_launcher_is_no_trials(change: dict[str, Any]) -> None:
    pod = a_pod()
    pod["spec"]["containers"][0].update(change)

    assert pods.read(pod) is None


@pytest.mark.parametrize("index", ["", "-1", "1e3", "٣", "9" * 12, "0x1"])
def test_an_index_that_is_no_plain_number_is_none(index: str) -> None:
    assert pods.read(a_pod(annotations={INDEX: index})) is None


def test_what_a_trial_says_does_not_make_its_pod_anothers() -> None:
    pod = a_pod(index=1, state=ended(0, message='{"index": 0, "uid": "uid-0"}'), phase="Succeeded")

    assert (read(pod).index, read(pod).uid) == (1, "uid-1")


READY = conditions(PodScheduled="True", Ready="True", ContainersReady="True")
SILENT = conditions(PodScheduled="True", Ready="False", ContainersReady="True")
OVER = conditions(PodScheduled="True", Ready="False", ContainersReady="False")
PUT = conditions(PodScheduled="True")


@pytest.mark.parametrize(
    ("phase", "status", "metadata", "later", "found"),
    [
        ("Running", {"conditions": READY}, {}, 0, Phase.RUNNING),
        ("Running", {"conditions": SILENT}, {}, 0, Phase.LOST),
        ("Running", {"conditions": OVER}, {}, 0, Phase.RUNNING),
        ("Running", {"conditions": READY}, {"deletionTimestamp": ENDED}, 30, Phase.RUNNING),
        ("Running", {"conditions": READY}, {"deletionTimestamp": ENDED}, 90, Phase.LOST),
        ("Pending", {"conditions": PUT, "startTime": None}, {}, 0, Phase.WAITING),
        ("Pending", {"conditions": PUT, "startTime": None}, {}, 90, Phase.LOST),
        ("Pending", {"conditions": PUT, "startTime": BEGAN}, {}, 9000, Phase.WAITING),
        ("Pending", {"conditions": conditions(PodScheduled="False")}, {}, 9000, Phase.WAITING),
        ("Unknown", {}, {}, 0, Phase.LOST),
        ("Failed", {"conditions": SILENT}, {"deletionTimestamp": ENDED}, 90, Phase.FAILED),
        ("Succeeded", {}, {}, 0, Phase.SUCCEEDED),
        ("", {"conditions": 5}, {}, 0, Phase.WAITING),
    ],
    ids=[
        *("ready", "silent", "ending", "being-deleted", "deletion-unconfirmed", "just-put", "never-taken-up"),
        *("pulling", "nowhere", "unknown", "failed", "succeeded", "nonsense"),
    ],
)
def test_a_pod_whose_node_has_fallen_silent_is_lost(
    phase: str, status: dict[str, Any], metadata: dict[str, Any], later: float, found: Phase
) -> None:
    pod = read(a_pod(phase=phase, status=status, **metadata))

    assert pod.phase(NOW + later) is found


UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


@pytest.mark.parametrize(
    ("status", "state", "word"),
    [
        ({"conditions": UNSCHEDULABLE}, {}, "Unschedulable"),
        ({}, {"waiting": {"reason": "ImagePullBackOff"}}, "ImagePullBackOff"),
        ({}, {"waiting": {"reason": "ContainerCreating"}}, ""),
        ({}, {}, ""),
    ],
    ids=["no-node", "no-image", "usual", "nothing"],
)
def test_what_a_pod_waits_for_is_told_by_the_apis_word(
    status: dict[str, Any], state: dict[str, Any], word: str
) -> None:
    assert read(a_pod(phase="Pending", status=status, state=state)).waits_for == word
