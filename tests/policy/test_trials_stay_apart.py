"""Trials write into their own folders, run where the settings let them, and reach what the settings open.

`sweep submit` and `sweep cluster local` ask nobody else.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.controllers.controller import SYNC_WAVE
from sweepledger.structs import pod_fields
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Dataset, Settings
from tests.policy import building
from tests.policy.building import Rendered, container, job, mount, of_kind, pod
from tests.render.judging import check_batch
from tests.sweeps import (
    FULL_SETTINGS,
    POD_POOL_SETTINGS,
    POD_SETTINGS,
    POOLS,
    SETTINGS,
    a_full_sweep,
    a_sweep,
    with_keys,
)

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "x", "controller": True}
SINGLE = (Shape.JOBS, Shape.INDEXED)
SHAPES = pytest.mark.parametrize("shape", SINGLE, ids=lambda shape: str(shape.value))
INDEX = "sweepledger.dev/index"
QUEUE = "kueue.x-k8s.io/queue-name"

Change = Callable[[list[Any]], object]


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    return building.rendered(tmp_path_factory.mktemp("plain"), a_sweep(), SETTINGS)


@pytest.fixture(scope="session")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    folder = tmp_path_factory.mktemp("queued")
    return building.rendered(folder, a_full_sweep("queued"), FULL_SETTINGS, image=IMAGE)


@pytest.fixture(scope="session")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    folder = tmp_path_factory.mktemp("chosen")
    return building.rendered(folder, a_full_sweep("chosen"), FULL_SETTINGS, image=IMAGE)


def codes(
    batch: tuple[str, tuple[Any, ...]], change: Change, settings: Settings, image: str | None = None
) -> set[str]:
    name, original = batch
    manifests = copy.deepcopy(list(original))
    change(manifests)
    problems = check_batch(name, settings, tuple(manifests), file="x", image=image)
    assert len({(problem.path, problem.message) for problem in problems}) == len(problems)
    return {problem.code for problem in problems}


def nothing(_: list[Any]) -> None:
    """Leave all as it is."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", Shape, ids=lambda shape: str(shape.value))
def test_whatever_a_platform_offers_is_ours(shape: Shape, queued: Rendered, chosen: Rendered) -> None:
    assert codes(queued[shape], nothing, FULL_SETTINGS, IMAGE) == set()
    assert codes(chosen[shape], nothing, FULL_SETTINGS, IMAGE) == set()


def labels(all_: list[Any]) -> dict[str, Any]:
    document: dict[str, Any] = job(all_)["metadata"]["labels"]
    return document


def pod_labels(all_: list[Any]) -> dict[str, Any]:
    document: dict[str, Any] = job(all_)["spec"]["template"]["metadata"]["labels"]
    return document


def in_folder(all_: list[Any], folder: str, key: str = "subPath") -> None:
    """Mount the results somewhere else below the batch's folder."""
    document = mount(all_, "results")
    name = (document.get("subPath") or document["subPathExpr"]).split("/")[0]
    for old in ("subPath", "subPathExpr"):
        document.pop(old, None)
    document[key] = f"{name}/{folder}"


def whole(all_: list[Any]) -> None:
    """Mount the whole results volume beside the trial's own folder, to read."""
    container(all_)["volumeMounts"].append({"name": "results", "mountPath": "/all", "readOnly": True})


def environment(all_: list[Any], name: str, value: str) -> None:
    variables = container(all_)["env"]
    variables[:] = [each for each in variables if each["name"] != name] + [{"name": name, "value": value}]


FAULTS: dict[str, dict[str, Change]] = {
    "placement-not-allowed": {
        "nodes": lambda all_: pod(all_).update(nodeSelector={"pool": "gpu"}),
        "every node": lambda all_: pod(all_).update(tolerations=[{"operator": "Exists"}]),
        "affinity": lambda all_: pod(all_).update(affinity={"nodeAffinity": {}}),
        "a priority": lambda all_: pod(all_).update(priorityClassName="urgent"),
    },
    "pod-not-hardened": {
        "a registry's key": lambda all_: pod(all_).update(imagePullSecrets=[{"name": "admin"}]),
    },
    "volume-not-allowed": {
        "one folder for many": lambda all_: in_folder(all_, "7"),
        "a folder above": lambda all_: in_folder(all_, ""),
        "another trial's": lambda all_: in_folder(all_, "$(SWEEP_NODE)", "subPathExpr"),
        "all results to read": whole,
        "data elsewhere": lambda all_: mount(all_, "data").update(subPath="private"),
    },
    "batch-manifest": {
        "a number of its own": lambda all_: environment(all_, "JOB_COMPLETION_INDEX", "0"),
        "another row": lambda all_: environment(all_, "SWEEP_INDEX", "7"),
        "another batch": lambda all_: pod_labels(all_).update({"sweepledger.dev/batch": "lr-b2-00000000"}),
        "another sweep": lambda all_: labels(all_).update({"sweepledger.dev/sweep": "other"}),
        "another manager": lambda all_: labels(all_).update({"app.kubernetes.io/managed-by": "Helm"}),
        "another image": lambda all_: container(all_).update(image=IMAGE),
        "an owner": lambda all_: job(all_)["metadata"].update(ownerReferences=[OWNER]),
        "an owner of pods": lambda all_: metadata(all_).update(ownerReferences=[OWNER]),
    },
    "pod-not-restricted": {
        "peers": lambda all_: pod_labels(all_).update({"sweepledger.dev/egress-peers": "true"}),
        "a way out": lambda all_: pod_labels(all_).update({"sweepledger.dev/egress-world": "true"}),
    },
}
EVERY = {fault: (code, faults[fault]) for code, faults in FAULTS.items() for fault in faults}


@SHAPES
@pytest.mark.parametrize("fault", EVERY)
def test_what_would_let_trials_meet_is_refused(fault: str, shape: Shape, plain: Rendered) -> None:
    code, change = EVERY[fault]

    assert code in codes(plain[shape], change, SETTINGS, "sweepledger.invalid/local")


def first(all_: list[Any], key: str) -> dict[str, Any]:
    document: dict[str, Any] = pod(all_)[key][0]
    return document


POOLED: dict[str, tuple[str, Change]] = {
    "another pool's nodes": (
        "placement-not-allowed",
        lambda all_: pod(all_).update(nodeSelector={"pool": "other"}),
    ),
    "one taint more": (
        "placement-not-allowed",
        lambda all_: pod(all_)["tolerations"].append({"key": "x", "operator": "Exists"}),
    ),
    "one taint otherwise": (
        "placement-not-allowed",
        lambda all_: first(all_, "tolerations").update(operator="Equal", value="x"),
    ),
    "another pull secret": (
        "pod-not-hardened",
        lambda all_: first(all_, "imagePullSecrets").update(name="admin"),
    ),
    "another place to bill": ("batch-manifest", lambda all_: labels(all_).update({"cost-center": "nlp"})),
}


@SHAPES
@pytest.mark.parametrize("fault", POOLED)
def test_a_pod_asks_for_what_one_pool_and_settings_give(fault: str, shape: Shape, chosen: Rendered) -> None:
    code, change = POOLED[fault]

    assert code in codes(chosen[shape], change, FULL_SETTINGS)


def settings_of_pods(shape: Shape) -> Settings:
    """Give settings with a pool that sets all that pods of a shape may have: only Jobs claim devices."""
    if shape in {Shape.INDEXED, Shape.JOBS}:
        return POD_POOL_SETTINGS
    pool = POD_POOL_SETTINGS.trials.pools["chosen"]
    without = replace(pool, pod=replace(pool.pod, claims={}))
    return with_keys(POD_POOL_SETTINGS, pools={**POD_POOL_SETTINGS.trials.pools, "chosen": without})


@pytest.fixture(scope="session")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    folder = tmp_path_factory.mktemp("pooled")
    made = [
        building.rendered(folder / shape, a_full_sweep("chosen"), settings_of_pods(shape), image=IMAGE)
        for shape in (Shape.JOBS, Shape.JOB_SET)
    ]
    return {shape: made[shape not in {Shape.INDEXED, Shape.JOBS}][shape] for shape in Shape}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", Shape, ids=lambda shape: str(shape.value))
def test_pods_have_what_their_pool_says_of_pods(shape: Shape, pooled: Rendered) -> None:
    assert codes(pooled[shape], nothing, settings_of_pods(shape), IMAGE) == set()


def metadata(all_: list[Any]) -> dict[str, Any]:
    document: dict[str, Any] = job(all_)["spec"]["template"]["metadata"]
    return document


def token_volume(all_: list[Any]) -> dict[str, Any]:
    (volume,) = (one for one in pod(all_)["volumes"] if one["name"] == "tokens")
    found: dict[str, Any] = volume
    return found


def tokens(all_: list[Any]) -> list[Any]:
    sources: list[Any] = token_volume(all_)["projected"]["sources"]
    return sources


AMOUNTS = ("limits", "requests")
POD_FIELDS: dict[str, tuple[str, Change]] = {
    "the tokens of another account": (
        "pod-not-hardened",
        lambda all_: pod(all_).update(serviceAccountName="sweep-trial"),
    ),
    "another claim": (
        "pod-not-restricted",
        lambda all_: pod(all_)["resourceClaims"][0].update(resourceClaimTemplateName="eight"),
    ),
    "a token of the account for another service": (
        "pod-not-hardened",
        lambda all_: tokens(all_)[0]["serviceAccountToken"].update(audience="https://kubernetes.default.svc"),
    ),
}


@SHAPES
@pytest.mark.parametrize("fault", POD_FIELDS)
def test_a_pod_that_differs_from_its_pool_is_refused(fault: str, shape: Shape, pooled: Rendered) -> None:
    code, change = POD_FIELDS[fault]

    assert codes(pooled[shape], change, POD_POOL_SETTINGS) == {code}


def another(value: Any) -> Any:
    """Return what differs from the value of a field."""
    if isinstance(value, dict):
        return {name: another(part) for name, part in value.items()}
    return [another(part) for part in value] if isinstance(value, list) else f"{value}0"


@SHAPES
@pytest.mark.parametrize(
    "field", pod_fields.decided(FULL_SETTINGS.trials, POD_SETTINGS, a_full_sweep("chosen").run)
)
def test_a_field_that_a_key_decides_has_no_other_value(field: str, shape: Shape, pooled: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        pod(all_)[field] = another(pod(all_)[field])

    assert codes(pooled[shape], change, POD_POOL_SETTINGS)


@SHAPES
def test_what_a_pool_gives_is_refused_elsewhere(shape: Shape, pooled: Rendered) -> None:
    assert {"placement-not-allowed", "pod-not-hardened"} <= codes(pooled[shape], nothing, FULL_SETTINGS)


@SHAPES
def test_a_queue_that_no_pool_has_is_refused(shape: Shape, queued: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        labels(all_)[QUEUE] = "other"

    assert "placement-not-allowed" in codes(queued[shape], change, FULL_SETTINGS)
    slices = {"sliced": POOLS["sliced"]}
    assert "placement-not-allowed" in codes(queued[shape], nothing, with_keys(FULL_SETTINGS, pools=slices))


def test_two_objects_of_one_trial_are_refused(plain: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        item, other = (each for each in all_ if each["kind"] == "Job")
        name = other["metadata"]["name"]
        other.update(copy.deepcopy(item))
        other["metadata"]["name"] = name

    assert codes(plain[Shape.JOBS], change, SETTINGS) == {"batch-manifest"}


def test_the_label_of_a_trial_is_its_number(plain: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        labels(all_)[INDEX] = pod_labels(all_)[INDEX] = "00"
        in_folder(all_, "00")
        environment(all_, "SWEEP_INDEX", "00")

    assert codes(plain[Shape.JOBS], change, SETTINGS) == {"batch-manifest"}


def test_trials_of_one_runtime_tell_it_their_own_number(plain: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        variables = of_kind(all_, "TrainJob")["spec"]["trainer"]["env"]
        next(each for each in variables if each["name"] == "SWEEP_INDEX")["value"] = "."

    assert codes(plain[Shape.TRAIN_JOB], change, SETTINGS) == {"batch-manifest"}


def test_a_runtimes_trials_run_the_locked_image(plain: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        of_kind(all_, "TrainJob")["spec"]["trainer"]["image"] = IMAGE

    results = codes(plain[Shape.TRAIN_JOB], change, SETTINGS, "sweepledger.invalid/local")
    assert results == {"batch-manifest"}


@pytest.mark.parametrize(
    ("kind", "wave", "refused"),
    [
        ("TrainingRuntime", "-1", set()),
        ("TrainingRuntime", "1", {"gitops-unsafe"}),
        ("TrainJob", "-1", {"gitops-unsafe"}),
    ],
)
def test_only_a_runtime_has_a_wave(plain: Rendered, kind: str, wave: str, refused: set[str]) -> None:
    def change(all_: list[Any]) -> None:
        of_kind(all_, kind)["metadata"]["annotations"][SYNC_WAVE] = wave

    assert codes(plain[Shape.TRAIN_JOB], change, SETTINGS) == refused


def test_a_dataset_on_the_volume_of_results_has_a_folder_of_its_own(plain: Rendered) -> None:
    claim = SETTINGS.results.claim
    shared = with_keys(SETTINGS, datasets={"mnist": Dataset("mnist", claim, "sha256:" + "d" * 64)})

    def change(all_: list[Any]) -> None:
        for each in pod(all_)["volumes"]:
            if each["name"] == "data":
                each["persistentVolumeClaim"]["claimName"] = claim

    assert "volume-not-allowed" in codes(plain[Shape.INDEXED], change, shared)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda all_: pod(all_).update(hostNetwork=True), "host-namespaces"),
        (lambda all_: pod(all_).update(automountServiceAccountToken=True), "pod-not-hardened"),
        (lambda all_: container(all_)["securityContext"].update(privileged=True), "pod-not-restricted"),
        (lambda all_: container(all_).update(foreign="x"), "manifest-malformed"),
        (lambda all_: pod(all_).update(priorityClassName="x"), "placement-not-allowed"),
    ],
    ids=["host", "token", "privileged", "unknown-field", "priority"],
)
def test_a_fault_is_told_once_and_in_the_words_of_yaml(change: Change, code: str, plain: Rendered) -> None:
    name, original = plain[Shape.INDEXED]
    manifests = copy.deepcopy(list(original))
    change(manifests)

    problems = check_batch(name, SETTINGS, tuple(manifests), file="x")

    assert [problem.code for problem in problems] == [code]
    assert not {"True", "False", "None"} & set(problems[0].message.split())


def test_an_unknown_field_hides_no_other_fault(plain: Rendered) -> None:
    def change(all_: list[Any]) -> None:
        pod(all_)["hostnetwork"] = True
        container(all_)["securityContext"]["allowPrivilegeEscalation"] = True
        container(all_)["command"] = ["sh"]

    results = codes(plain[Shape.INDEXED], change, SETTINGS)
    assert results == {"manifest-malformed", "pod-not-restricted", "batch-manifest"}
