"""What a pool says of the nodes behind its queue: their topology, and that an autoscaler provides them."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.render.scheduling import POD_SET_GROUP, REQUIRED_TOPOLOGY
from sweepledger.structs.node_pool import Provisioning, Topology
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings
from tests.render.building import built, codes, pod_templates
from tests.render.platforms import PLATFORM_SETTINGS, THREE_POOLS, kueue_objects
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, with_keys

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
BLOCK, RACK, HOST = (
    "cloud.provider.com/topology-block",
    "cloud.provider.com/topology-rack",
    "kubernetes.io/hostname",
)
REQUIRED = Topology((BLOCK, RACK, HOST), require=RACK)
PREFERRED = Topology((BLOCK, RACK, HOST), prefer=RACK)


def with_topology(topology: Topology | None) -> Settings:
    pools = {**FULL_SETTINGS.trials.pools}
    pools["queued"] = replace(pools["queued"], topology=topology)
    return with_keys(FULL_SETTINGS, pools=pools)


def manifests(shape: Shape, folder: Path, topology: Topology | None, nodes: int = 3) -> tuple[Any, ...]:
    nodes = nodes if shape.is_distributed else 1
    sweep = a_full_sweep(nodes=nodes)
    return built(a_batch(shape, sweep=sweep, image=IMAGE), folder, with_topology(topology))


def asked(objects: tuple[Any, ...]) -> list[dict[str, str]]:
    """Give what each pod template asks Kueue for."""
    return [
        {key: value for key, value in annotations.items() if key.startswith("kueue.x-k8s.io/")}
        for template in pod_templates(objects)
        for annotations in [template["metadata"].get("annotations", {})]
    ]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape.JOB_SET, {REQUIRED_TOPOLOGY: RACK}),
        (Shape.PYTORCH_JOB, {REQUIRED_TOPOLOGY: RACK, POD_SET_GROUP: "trial"}),
        (Shape.MPI_JOB, {REQUIRED_TOPOLOGY: RACK, POD_SET_GROUP: "trial"}),
        (Shape.INDEXED, {}),
    ],
    ids=str,
)
def test_pods_of_one_trial_are_together(shape: Shape, expected: dict[str, str], tmp_path: Path) -> None:
    objects = manifests(shape, tmp_path, REQUIRED)

    assert {*map(repr, asked(objects))} == {repr(dict(sorted(expected.items())))}
    assert codes(objects, with_topology(REQUIRED), IMAGE) == set()


@pytest.mark.parametrize(
    "topology", [None, PREFERRED, replace(REQUIRED, require=BLOCK)], ids=["none", "preferred", "block"]
)
def test_a_topology_that_the_pool_does_not_have_is_refused(topology: Topology | None, tmp_path: Path) -> None:
    assert codes(manifests(Shape.JOB_SET, tmp_path, REQUIRED), with_topology(topology), IMAGE) == {
        "placement-not-allowed"
    }


def test_a_batch_may_be_older_than_the_topology_of_its_pool(tmp_path: Path) -> None:
    assert codes(manifests(Shape.JOB_SET, tmp_path, None), with_topology(REQUIRED), IMAGE) == set()


def platform(**pools: Any) -> dict[tuple[str, str], Any]:
    made = kueue_objects(with_keys(PLATFORM_SETTINGS, pools={**THREE_POOLS, **pools}))
    return {(one["kind"], one["metadata"]["name"]): one.get("spec") for one in made}


def test_a_flavor_has_the_topology_of_its_pool() -> None:
    made = platform(**{"gpu-heavy": replace(THREE_POOLS["gpu-heavy"], topology=REQUIRED)})

    assert made["Topology", "research-gpu-heavy"] == {
        "levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}, {"nodeLabel": HOST}]
    }
    assert made["ResourceFlavor", "research-gpu-heavy"]["topologyName"] == "research-gpu-heavy"
    assert "topologyName" not in made["ResourceFlavor", "research-gpu-light"]
    assert [name for kind, name in made if kind == "Topology"] == ["research-gpu-heavy"]


def test_queues_of_a_cohort_share_a_flavor_only_if_their_levels_are_equal() -> None:
    heavy = replace(THREE_POOLS["gpu-heavy"], cohort="gpus", topology=REQUIRED)
    nightly = replace(heavy, name="nightly", queue="nightly")

    same = platform(**{"gpu-heavy": heavy, "nightly": replace(nightly, topology=PREFERRED)})
    other = platform(**{"gpu-heavy": heavy, "nightly": replace(nightly, topology=Topology((HOST,)))})

    assert [name for kind, name in same if kind == "Topology"] == ["research-gpu-heavy"]
    assert [name for kind, name in other if kind == "Topology"] == ["research-gpu-heavy", "research-nightly"]


def test_a_queue_asks_the_autoscaler_before_it_admits() -> None:
    provisioning = Provisioning(
        "queued-provisioning.gke.io",
        parameters={"maxRunDurationSeconds": "3600"},
        selector={"autoscaling.gke.io/provisioning-request": "ResizeRequestName"},
        retries=1,
    )
    name = "research-gpu-heavy"

    made = platform(**{"gpu-heavy": replace(THREE_POOLS["gpu-heavy"], provisioning=provisioning)})

    assert made["ProvisioningRequestConfig", name] == {
        "provisioningClassName": "queued-provisioning.gke.io",
        "parameters": {"maxRunDurationSeconds": "3600"},
        "podSetUpdates": {
            "nodeSelector": [
                {
                    "key": "autoscaling.gke.io/provisioning-request",
                    "valueFromProvisioningClassDetail": "ResizeRequestName",
                }
            ]
        },
        "retryStrategy": {"backoffLimitCount": 1},
    }
    assert made["AdmissionCheck", name] == {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": name},
    }
    assert made["ClusterQueue", name]["admissionChecksStrategy"] == {"admissionChecks": [{"name": name}]}
    assert "admissionChecksStrategy" not in made["ClusterQueue", "research-gpu-light"]
