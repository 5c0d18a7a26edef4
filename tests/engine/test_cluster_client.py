"""The door to kubectl, what goes out through it, and what strangers send back."""

import pytest

from sweepledger.engine.cluster import kubectl, workloads
from sweepledger.engine.cluster.health import HealthStatus, check_claim, check_object
from sweepledger.errors import ToolError
from sweepledger.structs.kubernetes import OWNER_ANNOTATION, QUEUE_LABEL


def test_a_wrong_choice_of_kubectl_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL", "/nowhere/kubectl")

    with pytest.raises(ToolError, match=r"\$KUBECTL names '/nowhere/kubectl'"):
        kubectl.command()


def test_a_claim_for_one_node_is_wrong_for_a_pool_of_several() -> None:
    results = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "results"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }

    assert check_claim(results, nodes=2).state is HealthStatus.WRONG
    assert check_claim(results, nodes=1).state is HealthStatus.OK


def test_the_queue_of_the_pool_comes_before_that_of_the_cluster() -> None:
    labels = {QUEUE_LABEL: "fast"}
    job = {"kind": "Job", "metadata": {"name": "a", "labels": labels}, "spec": {}}

    assert workloads.prepare_manifest(job, ttl=60, queue="usual")["metadata"]["labels"] == labels


def test_all_containers_and_init_containers_get_requests_and_limits() -> None:
    pod = {"initContainers": [{"name": "clone"}], "containers": [{"name": "trial"}]}
    job = {"kind": "Job", "metadata": {"name": "a"}, "spec": {"template": {"spec": pod}}}

    made = workloads.prepare_manifest(job, ttl=60, queue="usual")["spec"]["template"]["spec"]

    for container in (*made["initContainers"], *made["containers"]):
        asked = container["resources"]
        assert asked["requests"] == asked["limits"] == workloads.DEFAULT_LIMITS


@pytest.mark.parametrize(
    ("server", "is_old"), [("v1.28.9", True), ("v1.29.0", False), ("v1.30.2+k3s1", False)]
)
def test_a_server_without_limits_per_index_is_too_old(server: str, *, is_old: bool) -> None:
    job = {"kind": "Job", "metadata": {"name": "a"}, "spec": {"backoffLimitPerIndex": 1}}

    assert workloads.is_too_old(server, [job]) is is_old


RUN_AT_FIVE = {"lastScheduleTime": "2026-01-02T10:05:00Z"}


@pytest.mark.parametrize(
    ("scheduled", "succeeded", "active", "state"),
    [
        ({}, {}, {}, HealthStatus.OK),
        (RUN_AT_FIVE, {}, {"active": [{"name": "a"}]}, HealthStatus.OK),
        (RUN_AT_FIVE, {"lastSuccessfulTime": "2026-01-02T10:06:00Z"}, {}, HealthStatus.OK),
        (RUN_AT_FIVE, {"lastSuccessfulTime": "2026-01-02T10:01:00Z"}, {}, HealthStatus.WRONG),
        (RUN_AT_FIVE, {}, {}, HealthStatus.WRONG),
    ],
    ids=["no run yet", "running", "succeeded", "failed since", "never succeeded"],
)
def test_a_failed_cron_job_names_its_logs(
    scheduled: dict[str, str], succeeded: dict[str, str], active: dict[str, object], state: HealthStatus
) -> None:
    status = scheduled | succeeded | active
    desired = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "sweep-sync", "namespace": "sweeps-collector"},
        "spec": {},
    }

    found = check_object(desired, desired | {"status": status}, nodes=1, apply="")

    assert found.state is state
    if found.is_fault:
        assert "logs --selector=app.kubernetes.io/component=sweep-sync" in (found.hint or "")


def owned(owner: str | None, **metadata: object) -> dict[str, object]:
    annotations = {} if owner is None else {"annotations": {OWNER_ANNOTATION: owner}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sweep", "namespace": "sweeps", **annotations, **metadata},
        "data": {},
    }


@pytest.mark.parametrize(
    "other",
    [
        "https://git.example.org/Ours.git",
        "https://git.example.org/ours",
        "ssh://git@git.example.org/ours.git",
    ],
)
def test_an_object_of_another_repository_is_wrong_and_not_to_be_applied(other: str) -> None:
    ours = "https://git.example.org/ours.git"

    found = check_object(owned(ours), owned(other), nodes=1, apply="kubectl apply")

    assert found.state is HealthStatus.WRONG
    assert found.message == f"it belongs to the repository {other}"
    assert "set another `namespace`" in (found.hint or "")
    assert check_object(owned(ours), owned(ours), nodes=1, apply="").state is HealthStatus.OK
