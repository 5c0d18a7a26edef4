"""Who may create objects in the trials' namespace, past git, makes no batch's launcher, results or credentials theirs.

What is merged is compared with what the generator writes: only what nobody merged needs these rules.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sweepledger.structs.kubernetes import BATCH_LABEL, RECORD_FINALIZER
from sweepledger.structs.run_config import Shape
from tests.cluster.templates import pods
from tests.manifests import controlled_by
from tests.render.building import built
from tests.render.judging import refusals
from tests.render.platforms import DISTRIBUTED, a_platform, a_source, the, trial_policy
from tests.render.pod_faults import (
    Change,
    a_mount,
    a_projection,
    a_variable,
    a_variable_before,
    a_volume,
    container,
    the_container,
    the_pod,
)
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep

Manifest = dict[str, Any]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
OTHER = "lr-b9-00000000"
"""A batch that is not this one."""
POLICY = trial_policy(shapes=DISTRIBUTED)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """An Indexed Job with every option, as kustomize builds it."""
    made = built(a_batch(sweep=a_full_sweep(), image=IMAGE), tmp_path_factory.mktemp("built"), FULL_SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def all_of(*changes: Change) -> Change:
    return lambda pod: [change(pod) for change in changes]


def mounted(path: str, volume: str = "other", **more: Any) -> Change:
    return lambda pod: container(pod)["volumeMounts"].append({"name": volume, "mountPath": path, **more})


def evil(path: str, **more: Any) -> Change:
    """Mount a ConfigMap of nobody's."""
    return all_of(a_volume(configMap={"name": "evil"}), mounted(path, **more))


def the_launcher(**source: Any) -> Change:
    """Change the volume of the launcher."""
    return lambda pod: next(one for one in pod["volumes"] if one["name"] == "launcher").update(**source)


def the_code(**changes: Any) -> Change:
    """Change the mount of the code."""
    return lambda pod: next(one for one in container(pod)["volumeMounts"] if one["name"] == "code").update(
        changes
    )


ANNOTATION = {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.annotations['x']"}}]}


def in_its_results(path: str, **more: Any) -> Change:
    """Mount a part of the results volume in place of the trial's own folder; `{}` is the folder of the batch."""

    def change(pod: Manifest) -> None:
        batch = next(one for one in pod["volumes"] if one["name"] == "launcher")["configMap"]["name"]
        key = "subPathExpr" if "$" in path else "subPath"
        folder = path.format(batch.removesuffix("-launcher"))
        a_mount("results", **{"subPathExpr": None, "subPath": None, key: folder, **more})(pod)

    return change


def a_second_launcher(pod: Manifest) -> None:
    pod["containers"].append({**container(pod), "name": "two"})


def a_home(volume: str) -> Change:
    """Give the trial another volume as home."""
    return lambda pod: next(
        one for one in container(pod)["volumeMounts"] if one["mountPath"] == "/sweep/scratch"
    ).update(name=volume)


LAUNCHER = "starts the launcher of its batch"
BELOW = "below /sweep lies no ConfigMap"
GIT = "only the init container code mounts the credential of git"
OF_BASE = "a trial has no other variable of the launcher"
DEVICES = "none asks the runtime of the node for devices"
FOLDER = "of the results a trial mounts its own folder"
DEVICE_VARIABLES = (
    *(
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_MIG_CONFIG_DEVICES",
        "NVIDIA_MIG_MONITOR_DEVICES",
        "NVIDIA_IMEX_CHANNELS",
    ),
    *(
        "NVIDIA_GDS",
        "NVIDIA_MOFED",
        "HABANA_VISIBLE_DEVICES",
        "AMD_VISIBLE_DEVICES",
        "ASCEND_VISIBLE_DEVICES",
    ),
    *("AWS_NEURON_VISIBLE_DEVICES", "MTHREADS_VISIBLE_DEVICES", "DOCKER_RESOURCE_GPU"),
)
POD_ATTACKS: dict[str, tuple[str, Change]] = {
    **{
        f"a ConfigMap at {path}": (LAUNCHER, evil(path))
        for path in (
            *("/sweep", "/sweep/", "/sweep/launcher/launch_trial.py", "/sweep/launcher/x/y", "/code/train"),
            *("sweep/launcher", "/work/../sweep/launcher", "/sweep//launcher/launch.py", "/./sweep/x"),
            *("/", "/usr/local/bin", "/usr", "/bin/", "/usr/lib/python3", "/lib64", "/etc/ld.so.preload"),
            *("/opt/conda", "/venv/bin", "/home/x/lib/python3.12", "/dev", "/proc/self", "/code", "/etc"),
        )
    },
    "a part of the launcher by its subPath": (
        LAUNCHER,
        evil("/sweep/launcher/launch_trial.py", subPath="launch_trial.py"),
    ),
    "the launcher of another batch": (LAUNCHER, the_launcher(configMap={"name": f"{OTHER}-launcher"})),
    "another file of its ConfigMap as launcher": (
        LAUNCHER,
        lambda pod: next(one for one in pod["volumes"] if one["name"] == "launcher")["configMap"].update(
            items=[{"key": "launch.json", "path": "launch.py"}]
        ),
    ),
    "a part of the launcher's ConfigMap": (LAUNCHER, a_mount("launcher", subPath="x")),
    "the launcher from an annotation": (
        LAUNCHER,
        all_of(
            a_projection(downwardAPI=ANNOTATION),
            mounted("/sweep/launcher/launch_row.py"),
        ),
    ),
    "other code than that of the clone": (LAUNCHER, the_code(name="scratch")),
    **{
        f"its last message at {path}": (LAUNCHER, the_container(terminationMessagePath=path))
        for path in ("/sweep/launcher/launch_trial.py", "/usr/bin/python3", "/sweep/table/table-000.csv")
    },
    "the table of nobody's": (BELOW, evil("/sweep/table/table-000.csv")),
    "the table from an annotation": (
        BELOW,
        all_of(a_projection(downwardAPI=ANNOTATION), mounted("/sweep/table/table-000.csv")),
    ),
    "authorities of nobody's": (BELOW, evil("/sweep/authorities/ca.crt", subPath="ca.crt")),
    **{
        f"the variable {name}": (OF_BASE, a_variable(name=name, value="/sweep/results/x"))
        for name in ("SWEEP_EARLIER", "SWEEP_OVERLAY", "SWEEP_CODE_STATE", "SWEEP_TERMINATION_LOG", "SWEEP_X")
    },
    "the id of another pod": (OF_BASE, a_variable(name="SWEEP_POD_UID", value="uid-0")),
    "the id of another pod by an annotation": (
        OF_BASE,
        a_variable(name="SWEEP_POD_UID", valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['x']"}}),
    ),
    "the credential of git": (GIT, mounted("/sweep/c", "clone-credentials")),
    "the credential of git by another volume": (
        GIT,
        all_of(a_volume(secret={"secretName": "git-read"}), mounted("/work")),
    ),
    "the credential of git by a projected volume": (
        GIT,
        all_of(a_projection(secret={"name": "git-read"}), mounted("/work")),
    ),
    **{f"the devices of {name}": (DEVICES, a_variable(name=name, value="all")) for name in DEVICE_VARIABLES},
    "the devices of a variable that a field fills": (
        DEVICES,
        a_variable(
            name="NVIDIA_VISIBLE_DEVICES", valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['x']"}}
        ),
    ),
    "devices before": (DEVICES, a_variable_before(name="NVIDIA_VISIBLE_DEVICES", value="all")),
    **{
        f"devices by a mount at {path}": (LAUNCHER, mounted(path, "scratch"))
        for path in (
            "/var/run/nvidia-container-devices/all",
            "/var/run/nvidia-container-devices",
            "/run/nvidia-container-devices/0",
        )
    },
    **{
        f"the results of {path}": (FOLDER, in_its_results(path))
        for path in (
            *("{}/", "{}/.", "{}", "{}/0", "{}/$(SWEEP_PARAM_X)", "{}/$(JOB_COMPLETION_INDEX)/.."),
            *("$(SWEEP_PARAM_X)/$(JOB_COMPLETION_INDEX)", f"{OTHER}/$(JOB_COMPLETION_INDEX)"),
        )
    },
    **{
        f"its results at {path}, which it reads": (FOLDER, a_mount("results", mountPath=path))
        for path in ("/sweep/data/x", "/sweep/tokens", "/work")
    },
    "its number": ("its number is its Job's", a_variable(name="JOB_COMPLETION_INDEX", value="7")),
    **{
        f"the number {number}": ("its number is its Job's", a_variable(name="SWEEP_INDEX", value=number))
        for number in ("7/../3", "..", "")
    },
    "find": (
        LAUNCHER,
        the_container(command=["find", "/sweep/launcher/launch.py"], args=["-exec", "id", ";"]),
    ),
    "sed": (LAUNCHER, the_container(command=["sed", "/sweep/launcher/launch.py"], args=["-e", "1e id"])),
    "a second launcher beside it": (LAUNCHER, a_second_launcher),
    **{
        f"a home with a user site at {path}": (LAUNCHER, mounted(path, "data", readOnly=True))
        for path in (
            "/sweep/scratch/.local/lib/python3.12/site-packages",
            "/sweep/scratch/.local",
            "/sweep/scratch/",
        )
    },
    "data as home": (LAUNCHER, a_home("data")),
    "the folder of the clone as home": (LAUNCHER, a_home("clone")),
    "another home": ("have the values that base/", a_variable(name="HOME", value="/sweep/clone")),
    "code that it may write": (LAUNCHER, the_code(readOnly=False)),
    "code that it may write elsewhere": (LAUNCHER, mounted("/work", "code")),
    "code of another repository": (
        "clones the repository of sweepledger.yaml",
        a_variable_before(name="CODE_URL", value="https://git.example.org/other/code.git"),
    ),
    "a spread that binds": (
        "no affinity or spread",
        the_pod(
            topologySpreadConstraints=[
                {"topologyKey": "pool", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            ]
        ),
    ),
    "a spread of no pool": (
        "no affinity or spread",
        the_pod(
            topologySpreadConstraints=[
                {"topologyKey": "pool", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
            ]
        ),
    ),
}


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_neither_a_job_nor_a_pod_changes_what_the_launcher_is_and_reads(attack: str, job: Manifest) -> None:
    says, change = POD_ATTACKS[attack]
    faulty = deepcopy(job)

    change(faulty["spec"]["template"]["spec"])

    assert refusals(POLICY, job) == set()
    for manifest in (faulty, faulty["spec"]["template"]):
        assert any(says in message for message in refusals(POLICY, manifest))


@pytest.mark.parametrize("path", ["/work", "/data/lib.d", "/root/.cache", "/etc/ssl/certs", "/dev/shm"])  # noqa: S108
def test_other_folders_may_be_mounted(path: str, job: Manifest) -> None:
    other = deepcopy(job)
    all_of(a_volume(emptyDir={}), mounted(path))(other["spec"]["template"]["spec"])

    assert refusals(POLICY, other) == set()


NAME = "is called like the batch, or like one of its trials"


def called(manifest: Manifest, name: str, *, label: str | None = None, owner: str | None = None) -> Manifest:
    made = deepcopy(manifest)
    made["metadata"] |= {"name": name, "namespace": "research"}
    if label is not None:
        made["metadata"]["labels"][BATCH_LABEL] = label
    if owner is not None:
        made["metadata"]["ownerReferences"] = controlled_by(owner, name)
    return made


@pytest.mark.parametrize(
    ("name", "owner", "is_admitted"),
    [
        ("{}", None, True),
        ("{}-t00c5f3a1b2d", None, True),
        ("{}-0-node-0", "JobSet", True),
        ("{}-0-launcher", "MPIJob", True),
        ("x", None, False),
        ("{}0", None, False),
        ("{}-other", None, False),
        (OTHER, None, False),
        ("x-node-0", "JobSet", False),
        ("{}-0-launcher", "Job", False),
    ],
)
def test_a_job_writes_results_of_the_batch_that_it_is_called_like(
    name: str, owner: str | None, *, is_admitted: bool, job: Manifest
) -> None:
    said = refusals(POLICY, called(job, name.format(job["metadata"]["name"]), owner=owner))

    assert any(NAME in message for message in said) is not is_admitted
    assert bool(said) is not is_admitted


@pytest.mark.parametrize(
    ("owners", "is_admitted"),
    [
        ([], False),
        (controlled_by("Job", "{}"), True),
        (controlled_by("Job", "{}-0-node-0"), True),
        (controlled_by("PyTorchJob", "{}-0"), True),
        (controlled_by("PyTorchJob", "x"), False),
        (controlled_by("Job", OTHER), False),
        ([{**controlled_by("Job", "{}")[0], "controller": False}], False),
        ([{**controlled_by("Job", "{}")[0], "apiVersion": "batch.volcano.sh/v1alpha1"}], False),
        ([{**controlled_by("Job", "{}")[0], "apiVersion": "apps/v1", "kind": "ReplicaSet"}], False),
        ([{**controlled_by("PyTorchJob", "{}-0")[0], "apiVersion": "example.org/v1"}], False),
    ],
)
def test_a_pod_writes_results_of_the_batch_that_its_maker_is_called_like(
    owners: list[Manifest], *, is_admitted: bool, job: Manifest
) -> None:
    (pod,) = pods(job)
    name = job["metadata"]["name"]
    pod["metadata"]["ownerReferences"] = [{**one, "name": one["name"].format(name)} for one in owners]

    said = refusals(POLICY, pod)

    assert any(NAME in message for message in said) is not is_admitted


def test_what_a_job_of_another_kind_makes_is_judged_like_anything_else(job: Manifest) -> None:
    (pod,) = pods(job)
    a_variable(name="LD_PRELOAD", value="/x.so")(pod["spec"])
    owners = controlled_by("Job", job["metadata"]["name"])
    foreign = [{**owners[0], "apiVersion": "batch.volcano.sh/v1alpha1"}]

    assert refusals(POLICY, {**pod, "metadata": {**pod["metadata"], "ownerReferences": owners}}) == set()
    said = refusals(POLICY, {**pod, "metadata": {**pod["metadata"], "ownerReferences": foreign}})
    assert any("no variable starts another program" in message for message in said)


@pytest.mark.parametrize("kind", ["Job", "Pod"])
@pytest.mark.parametrize("finalizer", ["example.org/never", "foregroundDeletion"])
def test_nothing_is_created_that_cannot_be_deleted(finalizer: str, kind: str, job: Manifest) -> None:
    made = deepcopy(job if kind == "Job" else next(pods(job)))
    made["metadata"]["finalizers"] = [finalizer]
    tracked = deepcopy(next(pods(job)))
    tracked["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking", RECORD_FINALIZER]

    assert any("created without finalizers" in message for message in refusals(POLICY, made))
    assert refusals(POLICY, made, "UPDATE", old=made) == refusals(
        POLICY, called_without(made), "UPDATE", old=made
    )
    assert not any("created without finalizers" in message for message in refusals(POLICY, tracked))


def called_without(manifest: Manifest) -> Manifest:
    made = deepcopy(manifest)
    del made["metadata"]["finalizers"]
    return made


@pytest.mark.parametrize("name", ["other-b1-3f9a1c2e", "lr", "", ".*"])
def test_a_train_job_runs_the_runtime_that_it_is_called_like(name: str, tmp_path: Path) -> None:
    sweep = a_full_sweep("queued", nodes=2)
    made = built(a_batch(Shape.TRAIN_JOB, sweep=sweep, image=IMAGE), tmp_path, FULL_SETTINGS)
    train_job = next(one for one in made if one["kind"] == "TrainJob")
    policy = the(
        "ValidatingAdmissionPolicy", "research-workloads", a_platform(source=a_source(shapes=DISTRIBUTED))
    )
    faulty = deepcopy(train_job)

    faulty["spec"]["runtimeRef"]["name"] = name

    assert refusals(policy, train_job) == set()
    (message,) = refusals(policy, faulty)
    assert "a runtime of its batch" in message
