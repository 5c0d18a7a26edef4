"""What writes results to stores in the cluster: a CronJob apart from the collector, which reaches git and stores."""

from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.structs.node_pool import NodeCapacity, Pool, Toleration
from sweepledger.structs.settings import CollectorSettings, Egress, Image, Settings
from sweepledger.structs.settings.results import SyncTarget
from tests.render.platforms import (
    PLATFORM_SETTINGS,
    a_platform,
    a_source,
    manifests,
    network_policies,
    secrets_of,
    the,
)
from tests.sweeps import with_keys

GIT = Egress("git", ("198.51.100.7/32",), (8443,))
MLFLOW = Egress("mlflow", ("203.0.113.5/32",), (443,))
IMAGE = Image("sync", "registry.example.org/tools/sync", "sha256:" + "3" * 64)
STORES = {
    "mlflow": SyncTarget("https://mlflow.example.org", "mlflow", "mlflow-account"),
    "optuna": SyncTarget("postgresql://db.example.org/optuna", "mlflow", "optuna-account"),
}
SYNCING = with_keys(
    PLATFORM_SETTINGS,
    images={**PLATFORM_SETTINGS.trials.images, "sync": IMAGE},
    egress={**PLATFORM_SETTINGS.network.egress, "git": GIT, "mlflow": MLFLOW},
    results=replace(PLATFORM_SETTINGS.results, sync=STORES),
)


def spec_of(settings: Settings = SYNCING, **source: Any) -> dict[str, Any]:
    tree = a_platform(settings, a_source(**source))
    spec: dict[str, Any] = the("CronJob", "sweep-sync", tree, "research-collector")["spec"]
    return spec


def pod_of(settings: Settings = SYNCING, **source: Any) -> dict[str, Any]:
    pod: dict[str, Any] = spec_of(settings, **source)["jobTemplate"]["spec"]["template"]["spec"]
    return pod


def test_it_runs_where_the_collector_does() -> None:
    pools = {
        "system": Pool("system", NodeCapacity("4", "16Gi"), tolerations=(Toleration("example.org/system"),)),
        "queued": Pool("queued", NodeCapacity("4", "16Gi"), queue="tools"),
    }
    placed = with_keys(SYNCING, pools=pools, collector=CollectorSettings("system", "platform-services"))
    queued = with_keys(placed, collector=CollectorSettings("queued"))

    assert pod_of(placed)["tolerations"] == [
        {"key": "example.org/system", "operator": "Exists", "effect": "NoSchedule"}
    ]
    assert pod_of(placed)["priorityClassName"] == "platform-services"
    assert spec_of(queued)["jobTemplate"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "tools"
    assert {"tolerations", "priorityClassName"}.isdisjoint(pod_of())


def test_without_a_store_there_is_nothing_that_syncs() -> None:
    tree = a_platform()

    assert "clusters/platform/sync.yaml" not in tree.files
    assert not [path for path, content in tree if b"sweep-sync" in content]


def test_it_runs_as_often_as_the_collector_with_an_image_and_secrets_of_its_own() -> None:
    spec, pod = spec_of(), pod_of()
    (clone,), (sync,) = pod["initContainers"], pod["containers"]

    assert (spec["schedule"], spec["concurrencyPolicy"], spec["suspend"]) == ("*/5 * * * *", "Forbid", False)
    assert clone["image"] == sync["image"] == IMAGE.reference
    assert sync["command"] == ["sweep", "sync", "--credentials=/sweep/stores"]
    secrets = {one["name"]: one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    mounts = {one["mountPath"]: secrets.get(one["name"]) for one in sync["volumeMounts"]}
    assert mounts["/sweep/stores/mlflow"] == "mlflow-account"
    assert mounts["/sweep/stores/optuna"] == "optuna-account"
    assert [one["name"] for one in clone["volumeMounts"]] == ["work", "git"]
    assert {"--depth=1", "--filter=blob:none", "--sparse"} <= set(clone["command"])


def test_it_can_neither_write_to_git_nor_read_the_cluster_nor_the_results_volume() -> None:
    pod = pod_of()

    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes.keys() == {"work", "git", "store-mlflow", "store-optuna"}
    assert volumes["git"]["secret"]["secretName"] == "sweep-git-read"
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("sweep-sync", False)
    bound = [
        subject["name"]
        for made in manifests(a_platform(SYNCING))
        if made["kind"].endswith("RoleBinding")
        for subject in made["subjects"]
    ]
    assert "sweep-sync" not in bound
    public = pod_of(is_public=True)
    assert "git" not in [volume["name"] for volume in public["volumes"]]
    assert not [word for word in public["initContainers"][0]["command"] if "credential" in word]


@pytest.mark.parametrize(
    ("known", "names"),
    [
        ({"git": GIT, "mlflow": MLFLOW}, {"sync-egress-git", "sync-egress-mlflow"}),
        ({"mlflow": MLFLOW}, {"sync-allow-any-host-by-port", "sync-egress-mlflow"}),
    ],
)
def test_it_reaches_git_and_stores_and_the_collector_not(known: dict[str, Egress], names: set[str]) -> None:
    policies = network_policies(a_platform(with_keys(SYNCING, egress=known)), "research-collector")

    own = {
        name: spec["egress"]
        for name, spec in policies.items()
        if spec["podSelector"] == {"matchLabels": {"app.kubernetes.io/component": "sweep-sync"}}
    }
    assert own.keys() == names
    assert own["sync-egress-mlflow"] == [
        {"to": [{"ipBlock": {"cidr": "203.0.113.5/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}
    ]
    assert "203.0.113.5" not in str([spec for name, spec in policies.items() if name not in names])


def test_people_make_its_secrets() -> None:
    secrets = {one.name: one for one in secrets_of(SYNCING, a_source())}

    assert secrets["mlflow-account"].namespace == "research-collector"
    assert "MLFLOW_TRACKING_PASSWORD" in secrets["mlflow-account"].keys
    assert secrets["sweep-git-read"].keys == ("username", "password")
    assert "sync, read" not in [one.purpose for one in secrets_of(SYNCING, a_source(is_public=True))]
