"""A real API server takes the platform, and its admission policies refuse there what they refuse on paper."""

import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.engine.cluster import helper_pods
from sweepledger.render.platform.tree import platform_tree
from sweepledger.structs.platform import GitSource
from sweepledger.structs.settings import Controller
from tests.attacks.test_changed_pods import CHANGED, UPDATES, a_pod
from tests.attacks.test_past_git import NAME, POD_ATTACKS
from tests.cluster import building
from tests.cluster.apiserver import Server
from tests.cluster.templates import CONTROLLER, owned_pods, pods
from tests.manifests import controlled_by, manifest
from tests.render.building import built
from tests.render.platforms import a_platform, manifests, the
from tests.render.pod_faults import LABEL_FAULTS, POD_FAULTS
from tests.render.test_expiry import MESHED, from_mirrors
from tests.render.test_expiry import with_sidecar as expiry_with_sidecar
from tests.render.test_sidecars import with_sidecar
from tests.render.test_sync import SYNCING
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, real_bases, with_keys

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
NAMESPACE = "platform-test"
"""Of these tests alone: others use the same server."""

SETTINGS = with_keys(
    SYNCING,
    namespace=NAMESPACE,
    controller=Controller.ARGOCD,
    results=replace(SYNCING.results, keep_days=30),
    sidecars=MESHED.admission.sidecars,
    mirrors=MESHED.admission.mirrors,
)
SECONDS = 180
FILLED_IN = {"no cpu request", "no memory limit", "no resources"}
"""Faults that a pod has no more when it is judged: the LimitRange filled it in."""
OLDER_MINOR = 36
"""Versions between 1.30 and this one were not tried."""
BEFORE = {
    "the variable BASH_FUNC_ls%%": "valid environment variable name",
    "a projected certificate": "ValidationError",
    "other devices": "ValidationError",
}
INSTEAD = {
    **dict.fromkeys(
        ["its results at /sweep", "its results at /sweep/../usr/bin", "its results at /usr/bin"],
        "starts the launcher",
    ),
    **dict.fromkeys(
        ["its results at /sweep/launcher", "a launcher of the data", "a ConfigMap at /code"],
        "duplicate entries for key",
    ),
    "the results of {}/$(JOB_COMPLETION_INDEX)/..": "must not contain '..'",
    "a container beside a running one": "ephemeral containers not allowed",
    **dict.fromkeys(["another batch", "a pattern as batch"], "starts the launcher"),
    **(BEFORE if building.MINOR < OLDER_MINOR else {}),
}
"""What servers say that refuse such values themselves, before a policy is asked, or name another rule first."""
REFUSED_BEFORE = {"another runtime"}
"""Faults that no policy is asked about: the cluster has no such RuntimeClass, and refuses the pod for that."""


@pytest.fixture(scope="module")
def platform(apiserver: Server) -> Iterator[Server]:
    """The platform, applied as its README says; what lies in no namespace is taken away again."""
    flux = with_keys(SETTINGS, controller=Controller.FLUX)
    made = manifests(a_platform(SETTINGS))
    made += manifests(a_platform(flux, active=("lr-b1-3f9a1c2e",)), "clusters/flux/")
    objects = [one for one in made if "kind" in one]
    spaces = [one for one in objects if one["kind"] == "Namespace"]
    apiserver.apply(manifest("Namespace", "argocd"), *spaces)
    apiserver.apply(*(one for one in objects if one not in spaces))
    yield apiserver
    shared = [one for one in objects if one["kind"].startswith("ValidatingAdmission")]
    apiserver.kubectl("delete", "--wait=false", "-f", "-", given=shared)


def a_job(folder: Path) -> dict[str, Any]:
    """An Indexed Job with every option, in the namespace of these tests."""
    settings = with_keys(FULL_SETTINGS, namespace=NAMESPACE)
    made = built(a_batch(sweep=a_full_sweep(), image=IMAGE), folder, settings)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


@pytest.fixture(scope="module")
def job(platform: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A Job that is admitted; given once the policies are at work, which takes the server a moment."""
    made = a_job(tmp_path_factory.mktemp("built"))
    faulty = deepcopy(made)
    faulty["spec"]["ttlSecondsAfterFinished"] = 60
    until = time.monotonic() + SECONDS
    while not platform.refuses(faulty) and time.monotonic() < until:
        time.sleep(0.2)
    return made


def test_a_batch_with_every_option_and_its_pods_pass(platform: Server, job: dict[str, Any]) -> None:
    assert platform.refuses(job) == ""
    (pod,) = pods(job)
    assert NAME in platform.refuses(pod), "nobody but a controller makes a pod"
    assert platform.refuses(*owned_pods(job), user=CONTROLLER) == ""


def is_said(says: str, refused: str) -> bool:
    """Tell whether a policy refuses, or, of what Pod Security forbids, what the server asks before."""
    before = "violates PodSecurity" in refused or "is invalid: " in refused
    return says in refused or (before and says in {"Pod Security", "hostPath", "with its node"})


@pytest.mark.parametrize("fault", POD_FAULTS)
def test_the_server_refuses_a_single_fault(fault: str, platform: Server, job: dict[str, Any]) -> None:
    says, change = POD_FAULTS[fault]
    says = INSTEAD.get(fault, says)
    faulty = deepcopy(job)

    change(faulty["spec"]["template"]["spec"])

    assert is_said(says, platform.refuses(faulty))


# Every third: the expressions are those for Jobs, which are tried with every fault.
@pytest.mark.parametrize(
    "fault", [fault for fault in POD_FAULTS if fault not in {*FILLED_IN, *REFUSED_BEFORE}][::3]
)
def test_the_server_refuses_a_pod_with_a_fault(fault: str, platform: Server, job: dict[str, Any]) -> None:
    says, change = POD_FAULTS[fault]
    says = INSTEAD.get(fault, says)
    (pod,) = pods(deepcopy(job))

    change(pod["spec"])

    assert is_said(says, platform.refuses(pod))


@pytest.mark.parametrize("fault", LABEL_FAULTS)
def test_the_server_refuses_a_single_label(fault: str, platform: Server, job: dict[str, Any]) -> None:
    says, labels = LABEL_FAULTS[fault]
    faulty = deepcopy(job)

    faulty["spec"]["template"]["metadata"]["labels"] |= labels

    says = INSTEAD.get(fault, says)
    assert says in platform.refuses(faulty)
    assert says in platform.refuses(*pods(faulty))


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_the_server_refuses_what_would_be_another_launcher(
    attack: str, platform: Server, job: dict[str, Any]
) -> None:
    says, change = POD_ATTACKS[attack]
    faulty = deepcopy(job)

    change(faulty["spec"]["template"]["spec"])

    assert INSTEAD.get(attack, says) in platform.refuses(faulty)


def test_the_server_lets_nobody_change_the_index_and_the_image_of_a_pod(
    platform: Server, job: dict[str, Any]
) -> None:
    pod = a_pod(job)
    identity = (f"--as={CONTROLLER}", "--as-group=system:masters")
    platform.kubectl("apply", "--server-side", *identity, "-f", "-", given=pod)
    connected = deepcopy(pod)
    connected["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] = "[]"

    try:
        assert platform.refuses(connected) == ""
        for update, change in UPDATES.items():
            changed = deepcopy(pod)
            change(changed)
            assert CHANGED in platform.refuses(changed), update
    finally:
        platform.kubectl("delete", "--force", "--grace-period=0", "--wait=false", "-f", "-", given=pod)


def test_the_server_admits_what_webhooks_add_to_pods(platform: Server, job: dict[str, Any]) -> None:
    (pod,) = owned_pods(with_sidecar(job))
    pod["spec"]["imagePullSecrets"] = [{"name": "what-a-webhook-gives-all"}]
    for one in pod["spec"]["initContainers"][1:]:
        one["env"].append({"name": "NO_PROXY", "value": "10.0.0.0/8"})

    assert platform.refuses(pod, user=CONTROLLER) == ""


def test_the_server_lets_a_job_write_results_of_no_other_batch(platform: Server, job: dict[str, Any]) -> None:
    other, kept = deepcopy(job), deepcopy(job)
    other["metadata"]["name"] = "lr-b9-00000000"
    kept["metadata"]["finalizers"] = ["sweepledger.dev/test"]

    assert NAME in platform.refuses(other)
    assert "created without finalizers" in platform.refuses(kept)


def test_the_server_judges_no_update_that_asks_for_nothing(platform: Server, job: dict[str, Any]) -> None:
    standing = deepcopy(job)
    standing["metadata"]["name"] += "-t0"
    platform.apply(standing)

    quiet = deepcopy(standing)
    quiet["metadata"]["finalizers"] = ["sweepledger.dev/test"]
    asking = deepcopy(standing)
    asking["spec"]["ttlSecondsAfterFinished"] = 60

    assert platform.refuses(quiet) == ""
    assert "TTL" in platform.refuses(asking)


def test_the_server_admits_what_the_tool_starts_by_itself(platform: Server) -> None:
    doctor = helper_pods.write_test_job(NAMESPACE, "results", IMAGE, "sweep-trial")
    reader = helper_pods.reader_pod_manifest(NAMESPACE, "results", IMAGE, None)

    assert platform.refuses(doctor, *pods(doctor)) == ""
    assert "violates" not in platform.refuses(reader)
    assert "denied request" not in platform.refuses(reader)


def test_the_server_lets_expiry_run_and_nothing_else_in_its_name(
    platform: Server, job: dict[str, Any]
) -> None:
    cron = the("CronJob", "sweep-expiry", a_platform(SETTINGS))
    expiry = {"apiVersion": "batch/v1", "kind": "Job", **deepcopy(cron["spec"]["jobTemplate"])}
    expiry["metadata"] |= {
        "name": "sweep-expiry-1",
        "namespace": NAMESPACE,
        "ownerReferences": controlled_by("CronJob", "sweep-expiry"),
    }
    (pod,) = pods(deepcopy(expiry))
    owners = controlled_by("Job", "sweep-expiry-1")
    pod["metadata"] |= {"name": "a", "namespace": NAMESPACE, "ownerReferences": owners}
    other, trial = deepcopy(expiry), deepcopy(job)
    other["spec"]["template"]["spec"]["containers"][0]["command"] = ["rm", "-r", "/sweep/results"]
    trial["spec"]["template"]["spec"]["serviceAccountName"] = "sweep-expiry"

    assert (platform.refuses(expiry, user=CONTROLLER), platform.refuses(pod, user=CONTROLLER)) == ("", "")
    meshed = expiry_with_sidecar(from_mirrors(pod, "expire", "clone"))
    assert platform.refuses(meshed, user=CONTROLLER) == ""
    meshed["spec"]["initContainers"][0]["image"] = "docker.io/istio/other:1"
    assert "the containers of expiry" in platform.refuses(meshed, user=CONTROLLER)
    assert "the containers of expiry" in platform.refuses(other, user=CONTROLLER)
    for child in (expiry, pod):
        assert "only a controller of the cluster names the owner" in platform.refuses(child)
    assert "only the CronJob of expiry" in platform.refuses(trial)


def test_kueue_alone_chooses_nodes_for_what_its_queue_held_back(
    platform: Server, job: dict[str, Any]
) -> None:
    held = deepcopy(job)
    held["metadata"]["name"] += "-t1"
    held["spec"]["suspend"] = True
    started, moved = deepcopy(held), deepcopy(held)
    started["spec"]["suspend"] = False
    moved["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "the-database"}
    platform.apply(held)

    try:
        assert platform.refuses(started) == ""
        assert "a trial chooses nodes as a pool" in platform.refuses(moved)
        assert (
            platform.refuses(moved, user="system:serviceaccount:kueue-system:kueue-controller-manager") == ""
        )
    finally:
        platform.kubectl("delete", "--wait=false", "-f", "-", given=held)


@pytest.mark.parametrize(
    "fault",
    [
        {"env": [{"name": "PATH", "value": "/sweep/results/lr-b1-3f9a1c2e/0"}]},
        {"volumeMounts": [{"name": "results", "mountPath": "/usr/bin", "readOnly": True}]},
    ],
    ids=["PATH", "mount"],
)
def test_a_reader_by_a_trial_is_refused(fault: dict[str, Any], platform: Server, job: dict[str, Any]) -> None:
    assert platform.refuses(job) == ""  # so the policies are at work
    reader = helper_pods.reader_pod_manifest(NAMESPACE, "results", IMAGE, None)
    reader["spec"]["containers"][0] |= fault

    assert "a trial runs as service account" in platform.refuses(reader)  # the first rule for trials


def test_the_server_gives_no_object_to_another_repository(platform: Server, job: dict[str, Any]) -> None:
    assert platform.refuses(job) == ""  # so the policies are at work
    source = GitSource("https://git.example.org/other/sweeps.git", "main")
    theirs = platform_tree(SETTINGS, source, real_bases())
    ours = [one for one in manifests(a_platform(SETTINGS), "clusters/platform/") if "kind" in one]

    assert [platform.refuses(one) for one in ours] == [""] * len(ours)
    unjudged = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Kustomization"}
    for one in manifests(theirs, "clusters/platform/"):
        if one["kind"] not in unjudged:
            said = platform.refuses(one)
            assert "belongs to the repository https://git.example.org/team/sweeps.git" in said


def test_the_server_refuses_a_ttl_and_a_foreign_queue(platform: Server, job: dict[str, Any]) -> None:
    lasting, foreign = deepcopy(job), deepcopy(job)

    lasting["spec"]["ttlSecondsAfterFinished"] = 60
    foreign["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "somebody-elses"

    assert "TTL" in platform.refuses(lasting)
    assert "queues" in platform.refuses(foreign)


@pytest.mark.parametrize("name", ["sweep-collector", "sweep-sync"])
def test_the_server_lets_collector_and_sync_into_their_namespace(platform: Server, name: str) -> None:
    made = the("CronJob", name, a_platform(SETTINGS))

    (pod,) = pods(made["spec"]["jobTemplate"])

    pod["metadata"]["namespace"] = made["metadata"]["namespace"]
    assert platform.refuses(pod) == ""


UNSAFE = {"force": True, "prune": False, "deletionPolicy": "Orphan"}


def a_kustomization() -> dict[str, Any]:
    flux = with_keys(SETTINGS, controller=Controller.FLUX)
    return the("Kustomization", "lr-b1-3f9a1c2e", a_platform(flux, active=("lr-b1-3f9a1c2e",)))


def test_the_server_refuses_a_kustomization_without_the_account_for_it(platform: Server) -> None:
    bare = deepcopy(a_kustomization())
    del bare["spec"]["serviceAccountName"]
    bare["metadata"]["name"] = "another"
    platform.until_refused(bare)

    assert "with the account for it" in platform.refuses(bare)


@pytest.mark.parametrize(
    ("says", "change"),
    [
        *(("may only set", {"components": ["../gpu"]}), ("may only set", {"namePrefix": "a-"})),
        ("may only set", {"images": [{"name": "a", "newName": "b"}]}),
        ("may only set", {"patches": [{"patch": "[]"}]}),
        ("may only set", {"commonMetadata": {"labels": {"a": "b"}}}),
        ("may only set", {"postBuild": {"substitute": {"a": "b"}}}),
        ("may only set", {"targetNamespace": "kube-system"}),
        *(("must prune and must not force", {key: value}) for key, value in UNSAFE.items()),
        ("one batch", {"path": "./overlays/active/other"}),
        ("this repository", {"sourceRef": {"kind": "GitRepository", "name": "other"}}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_kustomization_with_a_fault_is_refused(says: str, change: dict[str, Any], platform: Server) -> None:
    batch = a_kustomization()

    assert platform.refuses(batch) == ""
    assert says in platform.refuses({**batch, "spec": {**batch["spec"], **change}})


def test_the_collector_may_read_jobs_and_no_secret(platform: Server) -> None:
    account = f"--as=system:serviceaccount:{NAMESPACE}-collector:sweep-collector"

    def may(words: str, namespace: str) -> bool:
        asked = (*words.split(), account, "--namespace", namespace)
        done = platform.kubectl("auth", "can-i", *asked, check=False)
        return done.stdout.strip() == "yes"

    assert may("list jobs.batch", NAMESPACE)
    for words in ("get secrets", "create jobs.batch", "delete pods", "list configmaps"):
        assert not may(words, NAMESPACE)
    lease = "leases.coordination.k8s.io"
    for words in ("get secrets", f"update {lease}", f"create {lease}", f"patch {lease}/sweep-collector"):
        assert not may(words, f"{NAMESPACE}-collector")
    for verb in ("get", "update"):
        assert may(f"{verb} {lease}/sweep-collector", f"{NAMESPACE}-collector")
