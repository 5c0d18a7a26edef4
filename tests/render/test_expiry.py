"""What deletes old results in the cluster: one CronJob, and a policy by which nothing else runs in its name."""

import operator
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.structs.node_pool import NodeCapacity, Pool, Toleration
from sweepledger.structs.settings import BucketSettings, Egress, ResultsSettings, ResultsStore, Settings
from sweepledger.structs.settings.platform import AddedContainer
from tests.cluster.templates import pods
from tests.render import judging
from tests.render.judging import refusals
from tests.render.platforms import (
    PLATFORM_SETTINGS,
    THREE_POOLS,
    a_platform,
    a_source,
    manifests,
    network_policies,
    secrets_of,
    the,
)
from tests.sweeps import with_keys

Manifest = dict[str, Any]
VOLUMES = replace(PLATFORM_SETTINGS.results, keep_days=30, checkpoints="fast", artifacts="large")
GIT = Egress("git", ("198.51.100.7/32",), (8443,))
KEEPING = replace(PLATFORM_SETTINGS, results=VOLUMES)


def the_job(settings: Settings = KEEPING, **source: Any) -> Manifest:
    """The Job, as the CronJob's controller makes it."""
    cron = the("CronJob", "sweep-expiry", a_platform(settings, a_source(**source)))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "sweep-expiry", "controller": True}
    template = deepcopy(cron["spec"]["jobTemplate"])
    metadata = {"name": "sweep-expiry-1", "namespace": "research", "ownerReferences": [owner]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        **template,
        "metadata": {**template["metadata"], **metadata},
    }


def the_pod(job: Manifest) -> Manifest:
    """Its pod, as the Job's controller makes it, with what the API server adds."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep-expiry-1", "controller": True}
    (pod,) = pods(deepcopy(job))
    pod["metadata"] |= {"name": "sweep-expiry-1-a", "namespace": "research", "ownerReferences": [owner]}
    pod["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    return pod


def refused(manifest: Manifest, settings: Settings = KEEPING, **source: Any) -> set[str]:
    """Return what refuses it: the policy for trials, or where that does not look at it, the policy for expiry."""
    tree = a_platform(settings, a_source(**source))
    policy = the("ValidatingAdmissionPolicy", "research-trials", tree)
    conditions = policy["spec"]["matchConditions"]
    policy["spec"]["matchConditions"] = [one for one in conditions if one["name"] == "is-no-expiry"]
    if not judging.is_judged(policy, manifest, {}):
        policy = the("ValidatingAdmissionPolicy", "research-expiry", tree)
    return refusals(policy, {**manifest, "metadata": {"labels": {}, **manifest.get("metadata", {})}})


def test_without_a_time_there_is_nothing_that_deletes() -> None:
    tree = a_platform()

    assert "clusters/platform/expiry.yaml" not in tree.files
    assert not [
        manifest for manifest in manifests(tree) if manifest["metadata"]["name"].startswith("sweep-expiry")
    ]
    assert refused(the_job(), PLATFORM_SETTINGS)
    assert refused(the_pod(the_job()), PLATFORM_SETTINGS)


def test_it_runs_daily_never_twice_with_the_image_and_the_time_limits_of_its_own() -> None:
    spec = the("CronJob", "sweep-expiry", a_platform(KEEPING), "research")["spec"]
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    (clone,), (expire,) = pod["initContainers"], pod["containers"]

    assert (spec["schedule"], spec["concurrencyPolicy"], spec["suspend"]) == ("23 3 * * *", "Forbid", False)
    assert clone["image"] == expire["image"] == KEEPING.trials.images["collector"].reference
    assert {"--depth=1", "--filter=blob:none", "--sparse"} <= set(clone["command"])
    assert expire["command"] == [
        *("sweep", "cluster", "expire", "--remote=origin", "--results=/sweep/results"),
        *("--checkpoints=/sweep/checkpoints", "--artifacts=/sweep/artifacts"),
    ]
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]
        for volume in pod["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert claims == {
        "results": {"claimName": "results"},
        "checkpoints": {"claimName": "fast"},
        "artifacts": {"claimName": "large"},
    }
    assert not [mount for mount in clone["volumeMounts"] if mount["name"] in claims]


def test_it_has_no_rights_no_token_and_reads_git_only() -> None:
    tree = a_platform(KEEPING)
    (pod,) = pods(the_job())

    account = the("ServiceAccount", "sweep-expiry", tree, "research")
    assert not account["automountServiceAccountToken"]
    assert not pod["spec"]["automountServiceAccountToken"]
    subjects = [manifest["subjects"] for manifest in manifests(tree) if manifest["kind"] == "RoleBinding"]
    assert "sweep-expiry" not in str(subjects)
    held = [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]
    assert held == ["sweep-git-read"]
    needed = [secret for secret in secrets_of(KEEPING, a_source()) if secret.purpose == "expiry, read"]
    assert [(secret.namespace, secret.name, secret.keys) for secret in needed] == [
        ("research", "sweep-git-read", ("username", "password"))
    ]


def test_a_public_repository_is_read_without_a_credential() -> None:
    job = the_job(is_public=True)

    assert "secret" not in str([volume.keys() for volume in job["spec"]["template"]["spec"]["volumes"]])
    assert "/sweep/git" not in str(job)
    assert not [
        secret for secret in secrets_of(KEEPING, a_source(is_public=True)) if secret.purpose == "expiry, read"
    ]
    assert not refused(job, is_public=True)


@pytest.mark.parametrize("known", [(GIT,), ()], ids=["named", "not named"])
def test_it_reaches_the_git_server_by_a_label_that_no_trial_bears(known: tuple[Egress, ...]) -> None:
    settings = with_keys(KEEPING, egress={egress.name: egress for egress in known})
    policies = network_policies(a_platform(settings), "research")
    labels = next(pods(the_job(settings)))["metadata"]["labels"]

    opened = policies["allow-egress-git" if known else "allow-any-host-by-port"]

    assert opened["podSelector"]["matchLabels"].items() <= labels.items()
    assert [port["port"] for port in opened["egress"][0]["ports"]] == ([8443] if known else [443])
    assert len([policy for policy in policies.values() if policy["podSelector"]]) == 1


def test_its_job_and_its_pod_are_no_trials() -> None:
    job = the_job()

    assert not refused(job)
    assert not refused(the_pod(job))


def test_where_every_pool_has_a_queue_it_needs_none() -> None:
    settings = with_keys(KEEPING, pools=THREE_POOLS)

    assert not refused(the_job(settings), settings)


NODES = Pool(
    "tools",
    NodeCapacity("4", "16Gi"),
    selector={"example.org/pool": "tools"},
    tolerations=(Toleration("tools", "NoSchedule"),),
)
PLACED = with_keys(
    KEEPING,
    pools={**KEEPING.trials.pools, "tools": NODES},
    collector=replace(KEEPING.platform.collector, pool="tools", priority_class="system-cluster-critical"),
)


def test_it_runs_on_the_nodes_of_the_collector_with_its_priority() -> None:
    job = the_job(PLACED)
    pod = job["spec"]["template"]["spec"]

    assert pod["nodeSelector"] == {"example.org/pool": "tools"}
    assert [one["key"] for one in pod["tolerations"]] == ["tools"]
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert not refused(job, PLACED)
    assert not refused(the_pod(job), PLACED)


@pytest.mark.parametrize("field", ["nodeSelector", "tolerations", "priorityClassName"])
def test_what_is_placed_otherwise_is_refused(field: str) -> None:
    job, moved = the_job(PLACED), the_job(PLACED)
    del job["spec"]["template"]["spec"][field]
    moved["spec"]["template"]["spec"][field] = {
        "nodeSelector": {"example.org/pool": "control-plane"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-node-critical",
    }[field]

    assert refused(job, PLACED)
    assert refused(moved, PLACED)


def pod_of(job: Manifest) -> Manifest:
    spec: Manifest = job["spec"]["template"]["spec"]
    return spec


def container(job: Manifest) -> Manifest:
    (only,) = pod_of(job)["containers"]
    document: Manifest = only
    return document


CHANGES: dict[str, Callable[[Manifest], object]] = {
    "owned by nobody": lambda job: job["metadata"].pop("ownerReferences"),
    "another command": lambda job: container(job).update(command=["sh", "-c", "rm -r /sweep/results"]),
    "another clone": lambda job: operator.setitem(
        pod_of(job)["initContainers"][0]["command"], -2, "https://example.org/other.git"
    ),
    "another image": lambda job: container(job).update(image=f"a/b@sha256:{'3' * 64}"),
    "arguments": lambda job: container(job).update(args=["--dry-run"]),
    "another variable": lambda job: container(job)["env"].append({"name": "GIT_SSH", "value": "/x"}),
    "another value": lambda job: container(job)["env"][0].update(value="/elsewhere"),
    "another mount": lambda job: container(job)["volumeMounts"][0].update(mountPath="/elsewhere"),
    "a part of a volume": lambda job: container(job)["volumeMounts"][0].update(subPath="hooks"),
    "another secret": lambda job: [
        volume["secret"].update(secretName="somebody-elses")
        for volume in pod_of(job)["volumes"]
        if "secret" in volume
    ],
    "another volume": lambda job: pod_of(job)["volumes"].append({"name": "x", "configMap": {"name": "x"}}),
    "another container": lambda job: pod_of(job)["containers"].append(deepcopy(container(job))),
    "a hook": lambda job: container(job).update(lifecycle={"preStop": {"exec": {"command": ["x"]}}}),
    "another account": lambda job: pod_of(job).update(serviceAccountName="default"),
    "another host": lambda job: pod_of(job).update(
        hostAliases=[{"ip": "192.0.2.1", "hostnames": ["git.example.org"]}]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_differs_in_one_thing_is_refused(change: Any) -> None:
    job = the_job()

    change(job)

    assert refused(job)


def test_what_a_cloud_adds_to_the_pod_of_an_account_with_an_identity_is_let_in() -> None:
    bucket = BucketSettings("s3://sweeps/vision", "hub", expiry_identity={"eks.amazonaws.com/role-arn": "a"})
    results = ResultsSettings(store=ResultsStore.BUCKET, bucket=bucket, keep_days=30)
    settings = replace(PLATFORM_SETTINGS, results=results)
    pod = the_pod(the_job(settings))
    token = {"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "token"}}
    pod["spec"]["volumes"].append({"name": "aws-iam-token", "projected": {"sources": [token]}})
    for each in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        each["env"].append({"name": "AWS_ROLE_ARN", "value": "a"})
        path = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
        each["volumeMounts"].append({"name": "aws-iam-token", "mountPath": path, "readOnly": True})

    assert not refused(pod, settings)
    token["serviceAccountToken"].pop("audience")
    assert refused(pod, settings), "a token for the API server"


PROXY = AddedContainer("istio-proxy", "docker.io/istio/proxyv2", ("istio-envoy", "istio-token"))
MESHED = with_keys(
    KEEPING, sidecars={PROXY.name: PROXY}, mirrors={"registry.example.org": "mirror.example.org/cache"}
)


def with_sidecar(manifest: Manifest) -> Manifest:
    """Return what a mesh makes of a pod."""
    made = deepcopy(manifest)
    mesh = {"serviceAccountToken": {"audience": "istio-ca", "path": "istio-token"}}
    made["spec"]["initContainers"].insert(
        0,
        {
            "name": PROXY.name,
            "image": f"{PROXY.image}:1.24.1",
            "restartPolicy": "Always",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": [{"name": name, "mountPath": f"/var/lib/{name}"} for name in PROXY.volumes],
        },
    )
    made["spec"]["volumes"] += [
        {"name": "istio-envoy", "emptyDir": {}},
        {"name": "istio-token", "projected": {"sources": [mesh]}},
    ]
    return made


def from_mirrors(manifest: Manifest, *containers: str) -> Manifest:
    made = deepcopy(manifest)
    for one in (*made["spec"]["initContainers"], *made["spec"]["containers"]):
        if one["name"] in containers:
            one["image"] = one["image"].replace("registry.example.org/", "mirror.example.org/cache/")
    return made


def test_its_pod_is_let_in_beside_a_sidecar_and_from_a_mirror_that_the_settings_list() -> None:
    job = the_job(MESHED)
    pod = the_pod(job)
    (clone,), (expire,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
    assert expire["image"].startswith("registry.example.org/")

    for names in ((), (clone["name"],), (expire["name"],), (clone["name"], expire["name"])):
        mirrored = from_mirrors(pod, *names)
        assert not refused(mirrored, MESHED)
        assert not refused(with_sidecar(mirrored), MESHED)
        assert not names or refused(mirrored)
    assert refused(with_sidecar(pod))
    template = job["spec"]["template"]
    for change in (with_sidecar, lambda each: from_mirrors(each, expire["name"])):
        assert refused({**job, "spec": {**job["spec"], "template": change(template)}}, MESHED), "from git"


SIDECAR_FAULTS: dict[str, Callable[[Manifest], object]] = {
    "another image": lambda pod: pod["initContainers"][0].update(image="docker.io/istio/proxyv2-of-mine:1"),
    "results": lambda pod: pod["initContainers"][0]["volumeMounts"].append(
        {"name": "results", "mountPath": "/all"}
    ),
    "a Secret in a variable": lambda pod: pod["initContainers"][0].update(
        env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "sweep-git-read", "key": "password"}}}]
    ),
    "a Secret as volume": lambda pod: next(
        one for one in pod["volumes"] if one["name"] == "istio-envoy"
    ).update(emptyDir=None, secret={"secretName": "sweep-git-read"}),
    "its volume in the container of expiry": lambda pod: pod["containers"][0]["volumeMounts"].append(
        {"name": "istio-envoy", "mountPath": "/usr/bin"}
    ),
}


@pytest.mark.parametrize("fault", SIDECAR_FAULTS)
def test_no_other_container_passes_for_a_sidecar_of_its_pod(fault: str) -> None:
    pod = with_sidecar(the_pod(the_job(MESHED)))
    SIDECAR_FAULTS[fault](pod["spec"])
    pod["spec"]["volumes"] = [
        {key: value for key, value in one.items() if value is not None} for one in pod["spec"]["volumes"]
    ]

    assert refused(pod, MESHED)
