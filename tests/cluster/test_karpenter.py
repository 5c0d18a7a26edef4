"""The example's pools grow for a sweep and shrink to nothing: Kueue, scheduler, Karpenter are real, nodes are fake."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cluster import controller_files, karpenter, kwok
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet, cluster
from tests.e2e.team import NAMESPACE

pytestmark = pytest.mark.usefixtures("needs_kustomize")

SHORTEST, LONGEST = 10.0, 90.0
"""Seconds of a pod: nodes of several are half empty for longer than `consolidateAfter`."""
BOOT_SECONDS = 5
PATIENCE = 420
ASKS = {
    "cpu": Ask("features", 8, 8, pool="cpu", resources="{cpu: 7, memory: 16Gi}"),
    "gpu-light": Ask("probe", 2, 2, pool="gpu-light", resources="{cpu: 4, memory: 16Gi, gpu: 1}"),
    "gpu-heavy": Ask("finetune", 4, 4, pool="gpu-heavy", resources="{cpu: 40, memory: 400Gi, gpu: 4}"),
}
NODES = {"cpu": 4, "gpu-light": 2, "gpu-heavy": 2}
STEADY = {"cpu", "gpu-light"}
METADATA = {"name": "bare", "namespace": "default"}
SUSPENDED_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": METADATA,
    "spec": {
        "suspend": True,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "bare", "image": "localhost/never-pulled"}],
            }
        },
    },
}
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": METADATA,
    "spec": {
        "scaleTargetRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "bare"},
        "maxReplicas": 100,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}
"""As the article has it for services."""

Pod = dict[str, Any]


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A team with the pools of the example, whom no controller follows; skip by name where there can be none."""
    try:
        with cluster(nodes=0) as machine:
            kwok.restart(machine, seconds=SHORTEST, most=LONGEST)
            yield karpenter.start_fleet(machine, None, boot_seconds=BOOT_SECONDS)
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


def node_counts(fleet: Fleet) -> dict[str, int]:
    pools = [claim["metadata"]["labels"][karpenter.POOL_LABEL] for claim in karpenter.claims(fleet.machine)]
    return {name: pools.count(name) for name in NODES}


def seen_until_complete(fleet: Fleet, names: dict[str, str]) -> Iterator[tuple[dict[str, int], list[Pod]]]:
    """Look at nodes and pods until all Jobs are complete."""
    deadline = time.monotonic() + PATIENCE
    jobs = [("job", NAMESPACE, name) for name in names.values()]
    while not all("completionTime" in controller_files.got(fleet.machine, job)["status"] for job in jobs):
        assert time.monotonic() < deadline, fleet.machine.children.tail(karpenter.NAME)
        yield node_counts(fleet), controller_files.objects(fleet.machine, "pods", NAMESPACE)
        time.sleep(1)


def is_unable(condition: Mapping[str, str]) -> bool:
    return condition["type"] == "AbleToScale" and condition["status"] == "False"


def test_pools_grow_from_nothing_and_shrink_to_nothing_and_no_running_trial_is_moved(fleet: Fleet) -> None:
    assert node_counts(fleet) == dict.fromkeys(NODES, 0)
    names = dict(zip(ASKS, fleet.ask(*ASKS.values()), strict=True))
    for name in names.values():
        overlay = fleet.team.root / "overlays/active" / name
        fleet.machine.server.kubectl("apply", "--server-side", "-k", str(overlay), f"--namespace={NAMESPACE}")

    looks = list(seen_until_complete(fleet, names))

    assert {name: max(counts[name] for counts, _ in looks) for name in NODES} == NODES
    pods = {pod["metadata"]["uid"]: pod for _, look in looks for pod in look}
    for name, ask in ASKS.items():
        own = [
            pod
            for pod in pods.values()
            if pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == names[name]
        ]
        assert len(own) == ask.trials, "a trial began again"
        marks = {pod["metadata"]["annotations"].get(karpenter.DO_NOT_DISRUPT) for pod in own}
        assert marks == ({"true"} if name in STEADY else {None})
    until("no node is left", lambda: not any(node_counts(fleet).values()), seconds=PATIENCE)
    assert controller_files.objects(fleet.machine, "nodes") == []


def test_a_horizontal_pod_autoscaler_finds_nothing_to_scale_in_a_job(fleet: Fleet) -> None:
    server = fleet.machine.server
    kinds = (server.ask("/apis/batch/v1") or {})["resources"]
    assert "jobs/scale" not in {kind["name"] for kind in kinds}

    server.apply(SUSPENDED_JOB, AUTOSCALER)

    def reason() -> str | None:
        item = ("horizontalpodautoscalers.autoscaling", "default", "bare")
        status = controller_files.got(fleet.machine, item).get("status", {})
        return next((one["reason"] for one in controller_files.conditions(status) if is_unable(one)), None)

    until("the autoscaler gives up", lambda: reason() == "FailedGetScale", seconds=PATIENCE)
