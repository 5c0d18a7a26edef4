"""What controllers make and change, and what the tool starts by itself, gets past the admission policies."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.engine.cluster import helper_pods
from sweepledger.render.distributed import trial_name
from sweepledger.render.platform.admission_lists import ANYWHERE
from sweepledger.render.scheduling import REQUIRED_TOPOLOGY
from sweepledger.structs.node_pool import Topology
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import AdmissionSettings, Settings
from tests.cluster.templates import pods
from tests.manifests import controlled_by
from tests.render.building import built, named
from tests.render.judging import is_judged, refusals
from tests.render.platforms import DISTRIBUTED, PLATFORM_SETTINGS, THREE_POOLS, a_platform, a_source, the
from tests.render.pod_faults import BESIDE, a_volume, the_pod
from tests.render.test_bucket_store import SETTINGS as IN_A_BUCKET
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, with_keys

Manifest = dict[str, Any]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
QUEUE = "kueue.x-k8s.io/queue-name"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
QUEUED = with_keys(PLATFORM_SETTINGS, pools=THREE_POOLS)
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
STRANGERS = (
    "ann",
    "system:serviceaccount:research:sweep-trial",
    "system:serviceaccount:research-flux:sweep-applier",
    "system:serviceaccount:flux-system:kustomize-controller",
)
FLAVOR = {"nodeSelector": {"cloud.example.org/pool": "a100"}}
TAINT = {"tolerations": [{"key": "cloud.example.org/gpu", "operator": "Exists"}]}
OWNERS = {
    Shape.JOB_SET: "Job",
    Shape.MPI_JOB: "MPIJob",
    Shape.PYTORCH_JOB: "PyTorchJob",
    Shape.TF_JOB: "TFJob",
    Shape.TRAIN_JOB: "Job",
}
"""Whose pods those of a shape are; the launcher of MPI is a Job's."""


def policy(name: str, settings: Settings = PLATFORM_SETTINGS) -> Manifest:
    tree = a_platform(settings, a_source(shapes=DISTRIBUTED))
    return the("ValidatingAdmissionPolicy", f"research-{name}", tree)


def objects(shape: Shape, folder: Path, pool: str = "queued") -> list[Manifest]:
    sweep = a_full_sweep(pool, nodes=2 if shape.is_distributed else 1)
    made = built(a_batch(shape, sweep=sweep, image=IMAGE), folder, FULL_SETTINGS)
    return [one for one in made if one["kind"] != "ConfigMap"]


def owned(manifest: Manifest, kind: str) -> Manifest:
    made = deepcopy(manifest)
    made["metadata"]["ownerReferences"] = controlled_by(
        kind, made["metadata"].get("labels", {}).get("sweepledger.dev/batch", "x")
    )
    return made


def a_job(folder: Path, pool: str = "queued") -> Manifest:
    return objects(Shape.INDEXED, folder, pool)[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "pool", ["queued", pytest.param("chosen", marks=pytest.mark.full_suite("more options"))]
)
@pytest.mark.parametrize("shape", list(Shape))
def test_objects_of_every_shape_and_their_pods_are_admitted(shape: Shape, pool: str, tmp_path: Path) -> None:
    for made in objects(shape, tmp_path, pool):
        judge = policy("trials" if made["kind"] == "Job" else "workloads")
        assert refusals(judge, made) == set()
        for pod in pods(made):
            assert refusals(policy("trials"), owned(pod, OWNERS.get(shape, "Job"))) == set()


def test_jobs_that_a_job_set_or_an_mpi_job_consists_of_are_admitted(tmp_path: Path) -> None:
    cases: tuple[tuple[Shape, str, tuple[str | int, ...]], ...] = (
        (Shape.JOB_SET, "JobSet", ("replicatedJobs", 0, "template", "spec", "template")),
        (Shape.MPI_JOB, "MPIJob", ("mpiReplicaSpecs", "Launcher", "template")),
    )
    for shape, kind, path in cases:
        made = objects(shape, tmp_path / kind)[0]
        template: Any = made["spec"]
        for step in path:
            template = template[step]
        name = f"{made['metadata']['name']}-{next(iter(template['spec']['containers']))['name']}"
        child: Manifest = {"metadata": {"name": name}, "spec": {"template": deepcopy(template)}}
        if shape is Shape.MPI_JOB:
            keys = f"{trial_name(made['metadata']['labels']['sweepledger.dev/batch'], 0)}-ssh"
            a_volume(secret={"secretName": keys})(child["spec"]["template"]["spec"])

        assert refusals(policy("trials", QUEUED), owned(child, kind)) == set()
        refused = refusals(policy("trials", QUEUED), child)
        assert "every Job goes through one of the queues of sweepledger.yaml" in str(refused)


def test_only_the_pods_of_a_pytorch_job_wait_for_their_master(tmp_path: Path) -> None:
    made = objects(Shape.PYTORCH_JOB, tmp_path)[0]
    pod = next(iter(pods(made)))
    resources = {"cpu": "100m", "memory": "20Mi"}
    waits: Manifest = {
        "name": "init-pytorch",
        "image": IMAGE,
        "command": ["sh", "-c", "until nslookup master; do sleep 2; done"],
        "resources": {"limits": resources, "requests": resources},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod["spec"].setdefault("initContainers", []).append(waits)

    assert refusals(policy("trials"), owned(pod, "PyTorchJob")) == set()
    assert "init container" in refusals(policy("trials"), owned(pod, "TFJob")).pop()
    waits["volumeMounts"] = [{"name": "launcher", "mountPath": "/x"}]
    assert refusals(policy("trials"), owned(pod, "PyTorchJob"))


def test_what_kueue_writes_into_a_job_is_admitted_and_from_git_refused(tmp_path: Path) -> None:
    held = a_job(tmp_path)
    job = deepcopy(held)
    job["spec"]["template"]["spec"] |= FLAVOR | TAINT

    assert refusals(policy("trials"), job, "UPDATE", old=held, user=KUEUE) == set()
    for refused in (
        refusals(policy("trials"), job),
        *(refusals(policy("trials"), job, "UPDATE", old=held, user=user) for user in STRANGERS),
        refusals(policy("trials"), owned(job, "JobSet"), "UPDATE", old=owned(held, "JobSet"), user="ann"),
    ):
        nodes, taints = sorted(refused)
        assert "a trial chooses nodes as a pool of sweepledger.yaml does" in nodes
        assert taints == "a trial tolerates what a pool of sweepledger.yaml tolerates"


def test_a_job_that_kueue_started_may_be_changed_by_others_who_leave_its_nodes(tmp_path: Path) -> None:
    started = a_job(tmp_path)
    started["spec"]["template"]["spec"] |= FLAVOR | TAINT
    paused, moved = deepcopy(started), deepcopy(started)
    paused["spec"]["suspend"] = True
    moved["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "the-database"}

    for user in STRANGERS:
        assert refusals(policy("trials"), paused, "UPDATE", old=started, user=user) == set()
        assert len(refusals(policy("trials"), moved, "UPDATE", old=started, user=user)) == 2


def test_the_settings_say_who_is_kueue(tmp_path: Path) -> None:
    held = a_job(tmp_path)
    job = deepcopy(held)
    job["spec"]["template"]["spec"] |= FLAVOR
    elsewhere = replace(PLATFORM_SETTINGS, admission=AdmissionSettings(kueue="queues/manager"))

    judge = policy("trials", elsewhere)

    user = "system:serviceaccount:queues:manager"
    assert refusals(judge, job, "UPDATE", old=held, user=user) == set()
    assert refusals(judge, job, "UPDATE", old=held, user=KUEUE)


OPERATOR = "system:serviceaccount:kubeflow:training-operator"
CONTROLLERS = (OPERATOR, "system:serviceaccount:kube-system:job-controller", "system:kube-controller-manager")


@pytest.mark.parametrize("kind", ["Job", "PyTorchJob"])
def test_only_controllers_of_the_cluster_name_an_owner(kind: str, tmp_path: Path) -> None:
    pod = deepcopy(a_job(tmp_path)["spec"]["template"])
    child, judge = owned(pod, kind), policy("children")

    for user in CONTROLLERS:
        assert refusals(judge, child, user=user) == set()
    for user in STRANGERS:
        assert refusals(judge, child, user=user) == {
            "only a controller of the cluster names the owner of an object"
        }
    assert is_judged(judge, child, pod)
    assert not is_judged(judge, pod, child), "an owner that goes"
    assert not is_judged(judge, child, child)


@pytest.mark.parametrize("kind", ["Job", "MPIJob", "PyTorchJob", "TFJob"])
def test_pods_of_a_job_that_got_its_turn_are_admitted(kind: str, tmp_path: Path) -> None:
    pod = deepcopy(a_job(tmp_path)["spec"]["template"])
    pod["spec"] |= FLAVOR | TAINT

    assert refusals(policy("trials"), owned(pod, kind)) == set()
    assert len(refusals(policy("trials"), pod)) == 2


def test_a_trial_asks_for_a_network_only_as_a_pool_does(tmp_path: Path) -> None:
    chosen = PLATFORM_SETTINGS.trials.pools["chosen"]
    fast = replace(chosen, pod=replace(chosen.pod, annotations={NETWORKS: "rdma"}))
    settings = with_keys(PLATFORM_SETTINGS, pools={**PLATFORM_SETTINGS.trials.pools, "chosen": fast})
    job = a_job(tmp_path, "chosen")
    job["spec"]["template"]["metadata"].setdefault("annotations", {})[NETWORKS] = "rdma"

    assert refusals(policy("trials", settings), job) == set()
    (refused,) = refusals(policy("trials"), job)
    assert "reaches nothing that sweepledger.yaml does not open" in refused


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_a_trial_asks_kueue_for_a_place_only_as_a_pool_does(kind: str, tmp_path: Path) -> None:
    topology = Topology(("example.org/rack",), require="example.org/rack")
    heavy = replace(PLATFORM_SETTINGS.trials.pools["queued"], topology=topology)
    settings = with_keys(PLATFORM_SETTINGS, pools={**PLATFORM_SETTINGS.trials.pools, "queued": heavy})
    job = a_job(tmp_path)
    template = job["spec"]["template"]
    template["metadata"].setdefault("annotations", {})[REQUIRED_TOPOLOGY] = "example.org/rack"
    asks = job if kind == "Job" else template

    assert refusals(policy("trials", settings), asks) == set()
    (refused,) = refusals(policy("trials"), asks)
    assert "a trial asks Kueue for a place as a pool of sweepledger.yaml does" in refused
    template["metadata"]["annotations"] = {ANYWHERE: "true"}  # as Kueue starts it
    assert refusals(policy("trials"), asks) == set()


def test_pods_bear_what_the_server_gives_every_pod(tmp_path: Path) -> None:
    pod = deepcopy(a_job(tmp_path, "chosen")["spec"]["template"])
    pod["spec"]["tolerations"].append(
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    )
    job = owned(pod, "Job")
    job["spec"]["priorityClassName"] = "what-the-cluster-gives-all"

    assert refusals(policy("trials"), pod) == set()
    assert refusals(policy("trials"), job) == set()


def test_an_update_that_asks_for_nothing_is_not_judged(tmp_path: Path) -> None:
    old = a_job(tmp_path)
    finalized, relabelled, changed = deepcopy(old), deepcopy(old), deepcopy(old)
    finalized["metadata"]["finalizers"] = []
    relabelled["metadata"]["labels"]["sweepledger.dev/egress-other"] = "true"
    changed["spec"]["suspend"] = True

    assert not is_judged(policy("trials"), finalized, old)
    assert is_judged(policy("trials"), relabelled, old)
    assert is_judged(policy("trials"), changed, old)


def test_a_pod_that_has_its_node_may_be_relabelled_but_none_chooses_one(tmp_path: Path) -> None:
    pod = deepcopy(a_job(tmp_path)["spec"]["template"])
    pod["spec"]["nodeName"] = "node-1"

    assert refusals(policy("trials"), pod, "UPDATE", old=pod) == set()
    (refused,) = refusals(policy("trials"), pod)
    assert refused.startswith("a trial chooses no node by name")


def test_the_doctors_proof_is_admitted_though_it_has_neither_batch_nor_queue() -> None:
    job = helper_pods.write_test_job("research", "results", IMAGE, "sweep-trial")
    stranger = deepcopy(job)
    stranger["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = "lr-b1-00000000/0"

    for settings in (PLATFORM_SETTINGS, QUEUED):
        assert refusals(policy("trials", settings), job) == set()
        assert refusals(policy("trials", settings), job["spec"]["template"]) == set()
        assert "its own folder" in refusals(policy("trials", settings), stranger).pop()


def test_the_reader_of_a_person_is_admitted_and_can_only_read() -> None:
    pod = helper_pods.reader_pod_manifest("research", "results", IMAGE, "research")
    writes = deepcopy(pod)
    writes["spec"]["volumes"][0]["persistentVolumeClaim"]["readOnly"] = False
    other = deepcopy(pod)
    other["spec"]["containers"][0]["command"] = ["sh"]

    assert refusals(policy("trials"), pod) == set()
    for faulty in (writes, other):
        assert any("starts the launcher" in message for message in refusals(policy("trials"), faulty))


HELPER_FAULTS: dict[str, Manifest] = {
    "a PATH": {"env": [{"name": "PATH", "value": "/sweep/results/lr-b1-3f9a1c2e/0"}]},
    "a library": {"env": [{"name": "LD_PRELOAD", "value": "/sweep/results/lr-b1-3f9a1c2e/0/evil.so"}]},
    "a start file of Python": {"env": [{"name": "PYTHONSTARTUP", "value": "/sweep/results/evil.py"}]},
    "variables of a ConfigMap": {"envFrom": [{"configMapRef": {"name": "evil"}}]},
    "a folder to start in": {"workingDir": "/sweep/results/lr-b1-3f9a1c2e/0"},
    "programs of the results": {"volumeMounts": [{"name": "results", "mountPath": "/usr/bin"}]},
    "a program of the results": {
        "volumeMounts": [{"name": "results", "mountPath": "/bin/sleep", "subPath": "lr-b1-3f9a1c2e/0/sleep"}]
    },
    "arguments": {"args": ["1"]},
    "an absolute program": {"command": ["/sweep/results/lr-b1-3f9a1c2e/0/sleep", "1800"]},
}


@pytest.mark.parametrize("fault", HELPER_FAULTS)
def test_a_helper_whose_program_could_be_another_is_none(fault: str) -> None:
    pod = helper_pods.reader_pod_manifest("research", "results", IMAGE, "research")
    job = helper_pods.write_test_job("research", "results", IMAGE, "sweep-trial")
    template = job["spec"]["template"]

    for judged in (pod, template):
        judged["spec"]["containers"][0] |= HELPER_FAULTS[fault]

    assert any("starts the launcher" in message for message in refusals(policy("trials"), pod))
    assert any("starts the launcher" in message for message in refusals(policy("trials"), template))
    assert any("starts the launcher" in message for message in refusals(policy("trials"), job))


def test_an_mpi_worker_waits_in_sshd_and_a_plain_job_does_not(tmp_path: Path) -> None:
    made = objects(Shape.MPI_JOB, tmp_path)[0]
    template = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    job = {"metadata": {"name": "x"}, "spec": {"template": template}}

    assert refusals(policy("trials"), template) == set()
    assert any("starts the launcher" in message for message in refusals(policy("trials"), job))


TEMPLATE_FAULTS: dict[str, tuple[str, Callable[[Manifest], Any]]] = {
    "nodes of no pool": ("its pods choose and tolerate nodes", lambda pod: pod.update(FLAVOR)),
    "a taint of no pool": ("its pods choose and tolerate nodes", lambda pod: pod.update(TAINT)),
    "nodes beside another pod": ("its pods choose and tolerate nodes", the_pod(affinity=BESIDE)),
    "a container that a mesh could have added": (
        "one container",
        lambda pod: pod["containers"].append({"name": "istio-proxy", "image": "docker.io/istio/proxyv2:1"}),
    ),
}


@pytest.mark.parametrize("fault", TEMPLATE_FAULTS)
@pytest.mark.parametrize("shape", DISTRIBUTED)
def test_pods_from_git_are_judged_before_kueue_and_a_mesh_change_them(
    shape: Shape, fault: str, tmp_path: Path
) -> None:
    says, change = TEMPLATE_FAULTS[fault]
    made = next(one for one in objects(shape, tmp_path) if one["kind"] != "TrainJob")
    assert refusals(policy("workloads"), made) == set()
    for pod in pods(made):
        change(pod["spec"])

    (message,) = refusals(policy("workloads"), made)
    assert says in message
    if "nodes" in says:
        judge, plain = policy("workloads"), deepcopy(made)
        for pod in pods(plain):
            pod["spec"].pop("affinity", None)
            pod["spec"].pop("nodeSelector", None)
        assert refusals(judge, made, "UPDATE", old=plain, user=KUEUE) == set(), "Kueue starts it"
        assert refusals(judge, made, "UPDATE", old=made, user="ann") == set(), "a pause, after that"
        plain["spec"] = {"suspend": True}
        assert refusals(judge, made, "UPDATE", old=plain, user="ann") == {message}


def test_the_job_set_of_a_train_job_has_the_nodes_that_kueue_gave_it(tmp_path: Path) -> None:
    made = objects(Shape.JOB_SET, tmp_path)[0]
    for pod in pods(made):
        pod["spec"] |= FLAVOR | TAINT

    assert refusals(policy("workloads"), owned(made, "TrainJob")) == set()


KIND_FAULTS: dict[str, tuple[Shape, str, dict[str, Any]]] = {
    "a TTL of a JobSet": (Shape.JOB_SET, "TTL", {"ttlSecondsAfterFinished": 1}),
    "a TTL of an MPIJob": (Shape.MPI_JOB, "TTL", {"runPolicy": {"ttlSecondsAfterFinished": 1}}),
    "a TTL of a PyTorchJob": (Shape.PYTORCH_JOB, "TTL", {"runPolicy": {"ttlSecondsAfterFinished": 1}}),
    "a TTL of a TFJob": (Shape.TF_JOB, "TTL", {"runPolicy": {"ttlSecondsAfterFinished": 1}}),
    "a runtime of the cluster's": (
        Shape.TRAIN_JOB,
        "runtime of its batch",
        {"runtimeRef": {"kind": "ClusterTrainingRuntime", "name": "torch"}},
    ),
    **{
        f"{key} of a TrainJob": (Shape.TRAIN_JOB, "change no pods of it", {key: []})
        for key in ("podSpecOverrides", "podTemplateOverrides", "runtimePatches")
    },
}


@pytest.mark.parametrize("fault", KIND_FAULTS)
def test_a_custom_kind_with_a_single_fault_is_refused(fault: str, tmp_path: Path) -> None:
    shape, says, change = KIND_FAULTS[fault]
    made = next(one for one in objects(shape, tmp_path) if one["kind"] != "TrainingRuntime")

    made["spec"] |= change

    (message,) = refusals(policy("workloads"), made)
    assert says in message


@pytest.mark.parametrize("shape", DISTRIBUTED)
def test_a_custom_kind_goes_past_no_queue_and_has_a_name(shape: Shape, tmp_path: Path) -> None:
    made = next(one for one in objects(shape, tmp_path) if one["kind"] != "TrainingRuntime")

    for pod in pods(made):  # of another pool
        for key in {"affinity", "nodeSelector", "tolerations"} & pod["spec"].keys():
            del pod["spec"][key]
    made["metadata"]["labels"][QUEUE] = "heavy"
    assert refusals(policy("workloads", QUEUED), made) == set()
    del made["metadata"]["labels"][QUEUE]
    made["metadata"]["generateName"] = "x-"

    assert len(refusals(policy("workloads", QUEUED), made)) == 2


@pytest.mark.parametrize("shape", [Shape.MPI_JOB, Shape.PYTORCH_JOB, Shape.TF_JOB])
def test_from_git_no_operators_init_container_is_taken(shape: Shape, tmp_path: Path) -> None:
    made = objects(shape, tmp_path)[0]
    for pod in pods(made):
        pod["spec"].setdefault("initContainers", []).append({"name": "init-pytorch"})

    assert "belongs to an operator" in refusals(policy("workloads"), made).pop()


@pytest.mark.parametrize("shape", DISTRIBUTED)
def test_no_template_says_where_a_token_of_a_cloud_goes(shape: Shape, tmp_path: Path) -> None:
    made = next(one for one in objects(shape, tmp_path) if one["kind"] != "TrainJob")
    identity = "AZURE_AUTHORITY_HOST", "AWS_CONTAINER_CREDENTIALS_FULL_URI"
    settings = with_keys(IN_A_BUCKET, namespace=PLATFORM_SETTINGS.trials.namespace)
    for pod in pods(made):
        pod["spec"]["initContainers"] = [{"name": "store", "env": [{"name": identity[0], "value": "evil"}]}]
    other = json.loads(json.dumps(made).replace(*identity))
    honest = json.loads(json.dumps(made).replace(identity[0], "SWEEP_BATCH"))
    judge = policy("workloads", settings)

    assert refusals(judge, honest) == set()
    for faulty in (made, other):
        assert "the variables of a cloud's identity are its webhook's" in refusals(judge, faulty).pop()


AUTHORITIES = {
    "name": "ca-bundle",
    "mountPath": "/etc/ssl/certs/ca.crt",
    "subPath": "ca.crt",
    "readOnly": True,
}


def a_variable_of(container: str, name: str) -> Callable[[Manifest], Any]:
    added = {"name": name, "value": "10.0.0.0/8"}
    return lambda pod: named(pod["initContainers"], container)["env"].append(added)


def certificates_of(container: str) -> Callable[[Manifest], Any]:
    def change(pod: Manifest) -> None:
        pod["volumes"].append({"name": "ca-bundle", "configMap": {"name": "ca-bundle"}})
        named(pod["initContainers"], container)["volumeMounts"].append(AUTHORITIES)

    return change


ADDED: dict[str, Callable[[Manifest], Any]] = {
    "image pull secrets": the_pod(imagePullSecrets=[{"name": "what-a-webhook-gives-all"}]),
    **{
        f"{name} in {container}": a_variable_of(container, name)
        for name in ("NO_PROXY", "https_proxy", "SSL_CERT_FILE")
        for container in ("code", "store")
    },
    **{f"certificates in {container}": certificates_of(container) for container in ("code", "store")},
}
"""What webhooks of a cluster add to pods, and nobody may ask for in git."""


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOB_SET, Shape.PYTORCH_JOB, Shape.TF_JOB])
def test_what_webhooks_add_to_all_pods_is_admitted_in_those_and_refused_in_git(
    shape: Shape, added: str, tmp_path: Path
) -> None:
    sweep = a_full_sweep("chosen", nodes=2 if shape.is_distributed else 1)
    batch = a_batch(shape, sweep=sweep, image=IMAGE)
    made = next(one for one in built(batch, tmp_path, IN_A_BUCKET) if one["kind"] != "ConfigMap")
    settings = with_keys(IN_A_BUCKET, namespace=PLATFORM_SETTINGS.trials.namespace)
    trials, change = policy("trials", settings), ADDED[added]
    for pod in pods(deepcopy(made)):
        assert refusals(trials, owned(pod, OWNERS.get(shape, "Job"))) == set()
        change(pod["spec"])
        assert refusals(trials, owned(pod, OWNERS.get(shape, "Job"))) == set()
        assert refusals(trials, pod), "of nobody, as `sweep check` judges a template"
    asked = deepcopy(made)
    for pod in pods(asked):
        change(pod["spec"])

    assert refusals(policy("trials" if made["kind"] == "Job" else "workloads", settings), made) == set()
    assert refusals(policy("trials" if made["kind"] == "Job" else "workloads", settings), asked)
