"""Pods that somebody changes after they were judged, and pods that write, or read, what other trials do."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.spec.rules import environment
from sweepledger.structs import names
from sweepledger.structs.kubernetes import INDEX_LABEL, SWEEP_LABEL
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings.platform import AddedContainer
from tests.attacks.test_past_git import DEVICE_VARIABLES, IMAGE, POLICY, called
from tests.cluster.templates import pods
from tests.manifests import controlled_by
from tests.render.building import built, named
from tests.render.judging import is_judged, refusals
from tests.render.platforms import DISTRIBUTED, PLATFORM_SETTINGS, trial_policy
from tests.render.test_bucket_store import SETTINGS as IN_A_BUCKET
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, a_sweep, with_keys

Manifest = dict[str, Any]
INDEX = "batch.kubernetes.io/job-completion-index"
COUNTS = (
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
)
CHANGED = "no update of a pod changes that, or an image"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    made = built(a_batch(sweep=a_full_sweep(), image=IMAGE), tmp_path_factory.mktemp("built"), FULL_SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def a_pod(job: Manifest) -> Manifest:
    """Return a pod as the controller of Indexed Jobs makes it."""
    (pod,) = pods(deepcopy(job))
    pod["metadata"]["annotations"] = {INDEX: "3"}
    pod["metadata"]["labels"][INDEX] = "3"
    pod["metadata"]["ownerReferences"] = controlled_by("Job", job["metadata"]["name"])
    return pod


def another_image(pod: Manifest) -> None:
    container = pod["spec"]["containers"][0]
    container["image"] = container["image"].replace("a" * 64, "b" * 64)


def noted(key: str) -> Callable[[Manifest], Any]:
    return lambda pod: pod["metadata"]["annotations"].update({key: "0"})


UPDATES: dict[str, Callable[[Manifest], Any]] = {
    "the index": lambda pod: pod["metadata"]["annotations"].update({INDEX: "7"}),
    "no index": lambda pod: pod["metadata"].pop("annotations"),
    **{key: noted(key) for key in COUNTS},
    "the label of the index": lambda pod: pod["metadata"]["labels"].update({INDEX: "7"}),
    "the trial": lambda pod: pod["metadata"]["labels"].update({INDEX_LABEL: "7"}),
    "the sweep": lambda pod: pod["metadata"]["labels"].update({SWEEP_LABEL: "other"}),
    "the image": another_image,
    "the image before": lambda pod: pod["spec"]["initContainers"][0].update(
        image="registry.example.org/team/trainer@sha256:" + "c" * 64
    ),
}


@pytest.mark.parametrize("update", UPDATES)
def test_nobody_changes_which_trial_a_pod_is_and_which_image_it_runs(update: str, job: Manifest) -> None:
    pod = a_pod(job)
    changed = deepcopy(pod)

    UPDATES[update](changed)

    assert refusals(POLICY, pod) == refusals(POLICY, pod, "UPDATE", old=pod) == set()
    assert is_judged(POLICY, changed, pod)
    assert any(CHANGED in message for message in refusals(POLICY, changed, "UPDATE", old=pod))


def test_what_the_network_of_a_cluster_writes_into_a_pod_is_not_judged(job: Manifest) -> None:
    pod = a_pod(job)
    connected = deepcopy(pod)
    connected["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] = "[]"

    assert not is_judged(POLICY, connected, pod)


@pytest.mark.parametrize("kind", ["annotations", "labels"])
def test_no_job_says_which_trial_its_pods_are(kind: str, job: Manifest) -> None:
    faulty = deepcopy(job)
    faulty["spec"]["template"]["metadata"].setdefault(kind, {})[INDEX] = "7"

    (message,) = refusals(POLICY, faulty)
    assert "only its Job says which of them it is" in message


@pytest.mark.parametrize("index", ["7", "0/../7", "x"])
def test_a_pod_writes_in_the_folder_that_its_label_names(index: str, tmp_path: Path) -> None:
    made = built(a_batch(Shape.JOBS, sweep=a_sweep(), image=IMAGE), tmp_path, FULL_SETTINGS)
    jobs = [one for one in made if one["kind"] == "Job"]

    for one in jobs:
        assert refusals(POLICY, one) == set()
        one["spec"]["template"]["metadata"]["labels"][INDEX_LABEL] = index
        messages = " ".join(refusals(POLICY, one))
        assert "of the results a trial mounts its own folder" in messages
        assert "its number is its Job's or its label's" in messages


@pytest.mark.parametrize(
    "key", ["cdi.k8s.io/x", "nvidia.cdi.k8s.io/container.trial", "io.kubernetes.cri-o.Devices"]
)
def test_no_annotation_asks_for_devices(key: str, job: Manifest) -> None:
    faulty = deepcopy(job)
    faulty["spec"]["template"]["metadata"].setdefault("annotations", {})[key] = "nvidia.com/gpu=all"

    for manifest in (faulty, faulty["spec"]["template"]):
        (message,) = refusals(POLICY, manifest)
        assert "no annotation asks the runtime of the node for devices" in message


@pytest.mark.parametrize("name", [*DEVICE_VARIABLES, "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES"])
def test_specs_and_policies_know_the_same_variables_of_devices(name: str, job: Manifest) -> None:
    faulty = deepcopy(job)
    faulty["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": name, "value": "all"})

    assert bool(refusals(POLICY, faulty)) is names.gives_devices(name) is (name in DEVICE_VARIABLES)
    assert environment.reserved_for(name) is None


def with_parent(folder: Path, settings: Any) -> Manifest:
    """Return the Job of a trial that continues from the checkpoints of another batch of its sweep."""
    batch = a_batch(Shape.JOBS, sweep=a_sweep(), image=IMAGE)
    batch = replace(batch, parents={1: "t-1"}, parent_folders={1: "lr-b1-3f9a1c2e/7"})
    jobs = [one for one in built(batch, folder, settings) if one["kind"] == "Job"]
    job: Manifest
    (job,) = (one for one in jobs if one["metadata"]["labels"][INDEX_LABEL] == "1")
    return job


@pytest.mark.parametrize("sweep", ["l.", "...", "other", "lr-b1-3f9a1c2e", ""])
@pytest.mark.parametrize("settings", [FULL_SETTINGS, IN_A_BUCKET], ids=["volume", "bucket"])
def test_the_label_of_the_sweep_is_text_and_that_of_the_batch(
    settings: Any, sweep: str, tmp_path: Path
) -> None:
    platform = IN_A_BUCKET if settings is IN_A_BUCKET else PLATFORM_SETTINGS
    job, judge = with_parent(tmp_path, settings), trial_policy(platform, DISTRIBUTED)
    faulty = deepcopy(job)

    faulty["spec"]["template"]["metadata"]["labels"][SWEEP_LABEL] = sweep

    assert refusals(judge, job) == set()
    (message,) = refusals(judge, faulty)
    assert "checkpoints of its sweep" in message or "this batch's folder" in message


@pytest.mark.parametrize(
    "folder",
    [
        "lr-b1-3f9a1c2e/7/checkpoints/..",
        "lr-b1-3f9a1c2e/7",
        "lr-b1-3f9a1c2e/",
        "xlr-b1-3f9a1c2e/7/checkpoints",
    ],
)
def test_a_trial_reads_the_checkpoints_of_its_parent_and_nothing_beside_them(
    folder: str, tmp_path: Path
) -> None:
    job = with_parent(tmp_path, FULL_SETTINGS)
    trial = job["spec"]["template"]["spec"]["containers"][0]
    named(trial["volumeMounts"], "/sweep/parent", "mountPath")["subPath"] = folder

    (message,) = refusals(POLICY, job)
    assert "checkpoints of its sweep" in message


PROXY = AddedContainer("istio-proxy", "docker.io/istio/proxyv2", ("istio-envoy",))


def test_no_pod_has_sidecars_alone(tmp_path: Path) -> None:
    batch = a_batch(Shape.MPI_JOB, sweep=a_full_sweep(nodes=2), image=IMAGE)
    made = next(one for one in built(batch, tmp_path, FULL_SETTINGS) if one["kind"] == "MPIJob")
    template = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    worker = called({"metadata": {}, **template}, f"{batch_name(template)}-0", owner="MPIJob")
    alone = deepcopy(worker)
    alone["spec"]["containers"][0] |= {"name": "istio-proxy", "image": f"{PROXY.image}:1.24.1"}
    for key in ("command", "args", "volumeMounts"):
        alone["spec"]["containers"][0].pop(key)
    meshed = with_keys(PLATFORM_SETTINGS, sidecars={PROXY.name: PROXY})
    judge = trial_policy(meshed, DISTRIBUTED)

    assert refusals(judge, worker) == set()
    (message,) = refusals(judge, alone)
    assert "starts the launcher of its batch" in message


def batch_name(template: Manifest) -> str:
    return str(template["metadata"]["labels"]["sweepledger.dev/batch"])
