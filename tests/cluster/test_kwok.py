"""Fake nodes carry trials as real ones would, as far as the control plane can tell."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import controller_files, kwok
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet, cluster, start_fleet
from tests.e2e.team import NAMESPACE

pytestmark = pytest.mark.usefixtures("needs_kustomize")

SECONDS = 5.0
PATIENCE = 300
BARE = {"name": "bare", "image": "localhost/never-pulled"}


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A team whom no controller follows; skip by name where there can be no cluster."""
    try:
        with cluster(nodes=3, seconds=SECONDS) as machine:
            yield start_fleet(machine, None)
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


def pods(fleet: Fleet, namespace: str) -> list[dict[str, Any]]:
    return controller_files.objects(fleet.machine, "pods", namespace)


def test_trials_run_on_the_fake_nodes_and_end_well_after_their_time(fleet: Fleet) -> None:
    (name,) = fleet.ask(Ask("trials", 6, 3))
    overlay = fleet.team.root / "overlays/active" / name
    began = time.monotonic()

    fleet.machine.server.kubectl("apply", "--server-side", "-k", str(overlay), f"--namespace={NAMESPACE}")

    item = ("job", NAMESPACE, name)
    is_over = lambda: "completionTime" in controller_files.got(fleet.machine, item)["status"]  # noqa: E731
    until("the batch is complete", is_over, seconds=PATIENCE)
    ran = pods(fleet, NAMESPACE)
    assert time.monotonic() - began >= 2 * SECONDS
    assert {pod["spec"]["nodeName"] for pod in ran} <= {"fake-000", "fake-001", "fake-002"}
    assert {pod["status"]["phase"] for pod in ran} == {"Succeeded"}
    index = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["labels"][index] for pod in ran) == [str(at) for at in range(6)]


def test_a_pod_that_does_not_ask_for_them_stays_away(fleet: Fleet) -> None:
    bare = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare", "namespace": "default"},
        "spec": {"containers": [BARE]},
    }

    fleet.machine.server.apply(bare)

    def is_refused() -> bool:
        conditions = controller_files.conditions(
            controller_files.got(fleet.machine, ("pod", "default", "bare"))["status"]
        )
        return any("untolerated taint" in condition.get("message", "") for condition in conditions)

    until("no node will have it", is_refused, seconds=PATIENCE)
    fleet.machine.server.kubectl("delete", "pod", "bare")


def test_nodes_stay_ready_and_another_time_can_be_set(fleet: Fleet) -> None:
    kwok.restart(fleet.machine, seconds=0)
    (name,) = fleet.ask(Ask("quick", 3, 3))
    overlay = fleet.team.root / "overlays/active" / name
    time.sleep(kwok.LEASE_SECONDS)

    fleet.machine.server.kubectl("apply", "--server-side", "-k", str(overlay), f"--namespace={NAMESPACE}")

    item = ("job", NAMESPACE, name)
    until(
        "the first has ended",
        lambda: controller_files.got(fleet.machine, item)["status"].get("succeeded"),
        seconds=PATIENCE,
    )
    nodes = controller_files.objects(fleet.machine, "nodes")
    assert all(taint["key"] == kwok.MARK for node in nodes for taint in node["spec"]["taints"])
