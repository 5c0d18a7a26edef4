"""Each fault is one change to what the generator really renders."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sweepledger.operations.repository.rendered_manifests import team_policies
from sweepledger.render.platform.admission import ADMISSION
from sweepledger.structs.run_config import Shape
from tests.policy import building
from tests.policy.building import Rendered, container, job, mount, of_kind, pod, volume
from tests.render.judging import check_batch
from tests.sweeps import SETTINGS, a_sweep, real_bases

SINGLE = (Shape.JOBS, Shape.INDEXED)
SHAPES = pytest.mark.parametrize("shape", SINGLE, ids=lambda shape: str(shape.value))


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """Render a batch of each shape: its name, and what kustomize makes of it."""
    return building.rendered(tmp_path_factory.mktemp("build"), a_sweep(), SETTINGS)


FAULTS: dict[str, dict[str, Callable[[list[Any]], object]]] = {
    "secret-exposed": {
        "variables of a secret": lambda all_: container(all_).update(envFrom=[{"secretRef": {"name": "s"}}]),
    },
    "host-namespaces": {
        "the host's network": lambda all_: pod(all_).update(hostNetwork=True),
    },
    "batch-manifest": {
        "another kind": lambda all_: all_.append({"apiVersion": "v1", "kind": "Secret"}),
        "another api": lambda all_: job(all_).update(apiVersion="batch/v2"),
        "a foreign name": lambda all_: job(all_)["metadata"].update(name="other"),
        "another namespace": lambda all_: job(all_)["metadata"].update(namespace="kube-system"),
        "no namespace": lambda all_: job(all_)["metadata"].pop("namespace"),
        "a mutable table": lambda all_: all_[0].pop("immutable"),
        "an init container": lambda all_: pod(all_).update(
            initContainers=[{**container(all_), "name": "code"}]
        ),
        "a second container": lambda all_: pod(all_)["containers"].append({"name": "side"}),
        "another command": lambda all_: container(all_).update(command=["sh", "-c", "id"]),
        "no completions": lambda all_: job(all_)["spec"].update(completions=0),
        "early replacement": lambda all_: job(all_)["spec"].pop("podReplacementPolicy"),
    },
    "pod-not-hardened": {
        "an account": lambda all_: pod(all_).update(serviceAccountName="admin"),
        "a projected token": lambda all_: volume(all_, "table")["projected"]["sources"].append(
            {"serviceAccountToken": {"path": "t"}}
        ),
        "a token": lambda all_: pod(all_).pop("automountServiceAccountToken"),
    },
    "pod-not-restricted": {
        "privilege": lambda all_: container(all_)["securityContext"].update(privileged=True),
    },
    "volume-not-allowed": {
        "a volume of nothing": lambda all_: volume(all_, "scratch").pop("emptyDir"),
        "a secret": lambda all_: pod(all_)["volumes"].append({"name": "s", "secret": {}}),
        "another batch's launcher": lambda all_: volume(all_, "launcher")["configMap"].update(
            name="other-launcher"
        ),
        "writable data": lambda all_: mount(all_, "data").pop("readOnly"),
        "all results": lambda all_: [
            mount(all_, "results").pop(key, None) for key in ("subPath", "subPathExpr")
        ],
        "other results": lambda all_: mount(all_, "results").update(subPathExpr="lr-b9-00000000/0"),
    },
    "resources-missing": {
        "no limits": lambda all_: container(all_).pop("resources"),
    },
    "gitops-unsafe": {
        "a life after the end": lambda all_: job(all_)["spec"].update(ttlSecondsAfterFinished=1)
    },
    "manifest-malformed": {
        "a text for a mapping": lambda all_: job(all_).update(spec="x"),
        "a text for a list": lambda all_: pod(all_).update(volumes="x"),
        "nothing for a mapping": lambda all_: job(all_).update(metadata=None),
        "a list for a text": lambda all_: volume(all_, "table").update(name=["x"]),
        "a mapping for a text": lambda all_: container(all_).update(image={}),
        "true for a number": lambda all_: job(all_)["spec"].update(parallelism=True),
    },
    "deadline-missing": {"a deadline at once": lambda all_: pod(all_).update(activeDeadlineSeconds=0)},
}

EVERY = {fault: (code, faults[fault]) for code, faults in FAULTS.items() for fault in faults}

OF_ONE_SHAPE: list[tuple[Shape, str, Callable[[dict[str, Any]], object]]] = [
    (Shape.INDEXED, "volume-not-allowed", lambda spec: spec.pop("completionMode")),
    (Shape.JOBS, "batch-manifest", lambda spec: spec.update(completions=2)),
]


@SHAPES
@pytest.mark.parametrize("fault", EVERY)
def test_a_single_fault_is_found_and_named(fault: str, shape: Shape, rendered: Rendered) -> None:
    code, change = EVERY[fault]
    name, original = rendered[shape]
    manifests = copy.deepcopy(list(original))
    change(manifests)

    problems = check_batch(name, SETTINGS, tuple(manifests), file="overlays/active/x")

    assert code in {problem.code for problem in problems}
    assert all(problem.file == "overlays/active/x" for problem in problems)


def test_each_of_several_jobs_is_named_with_its_own_fault(rendered: Rendered) -> None:
    name, original = rendered[Shape.JOBS]
    manifests = copy.deepcopy(list(original))
    jobs = [manifest for manifest in manifests if manifest["kind"] == "Job"]
    for number, document in enumerate(jobs[:2]):
        volumes = document["spec"]["template"]["spec"]["volumes"]
        volumes[1 + number] = {"name": volumes[1 + number]["name"], "hostPath": {"path": "/etc"}}

    problems = check_batch(name, SETTINGS, tuple(manifests), file="x")

    assert [problem.path.rpartition(".")[2] for problem in problems] == ["volumes[1]", "volumes[2]"]


@pytest.mark.parametrize(("shape", "code", "change"), OF_ONE_SHAPE)
def test_no_two_pods_of_a_job_write_into_one_folder(
    shape: Shape, code: str, change: Any, rendered: Rendered
) -> None:
    name, original = rendered[shape]
    manifests = copy.deepcopy(list(original))
    change(job(manifests)["spec"])

    problems = check_batch(name, SETTINGS, tuple(manifests), file="x")

    assert code in {problem.code for problem in problems}


@pytest.mark.parametrize("shape", Shape, ids=lambda shape: str(shape.value))
def test_what_the_generator_renders_has_no_fault(shape: Shape, rendered: Rendered) -> None:
    name, manifests = rendered[shape]

    assert check_batch(name, SETTINGS, manifests, file="x") == ()


def nodes(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield from nodes(below, *path, key)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@pytest.mark.sampled(2)
@SHAPES
@pytest.mark.parametrize("value", [None, "x", 1, [], {}, ["x"], [{}], {"name": ["x"]}], ids=repr)
def test_no_nonsense_brings_the_rules_down(value: Any, shape: Shape, rendered: Rendered) -> None:
    name, original = rendered[shape]
    manifests = list(original)

    for *above, last in list(nodes(job(manifests)))[1:]:
        changed = copy.deepcopy(manifests)
        at(job(changed), tuple(above))[last] = value

        check_batch(name, SETTINGS, tuple(changed), file="x")


def replica(manifests: list[Any], kind: str, replicas: str, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = of_kind(manifests, kind)["spec"][replicas][name]["template"]["spec"]
    return spec


def mpi_worker(manifests: list[Any]) -> dict[str, Any]:
    return replica(manifests, "MPIJob", "mpiReplicaSpecs", "Worker")


def torch_worker(manifests: list[Any]) -> dict[str, Any]:
    return replica(manifests, "PyTorchJob", "pytorchReplicaSpecs", "Worker")


def node(manifests: list[Any]) -> dict[str, Any]:
    jobs = of_kind(manifests, "TrainingRuntime")["spec"]["template"]["spec"]["replicatedJobs"]
    spec: dict[str, Any] = jobs[0]["template"]["spec"]["template"]["spec"]
    return spec


def train(manifests: list[Any]) -> dict[str, Any]:
    spec: dict[str, Any] = of_kind(manifests, "TrainJob")["spec"]
    return spec


BY_SHAPE: dict[Shape, dict[str, dict[str, Callable[[list[Any]], object]]]] = {
    Shape.PYTORCH_JOB: {
        "host-namespaces": {"the host's network": lambda all_: torch_worker(all_).update(hostNetwork=True)},
    },
    Shape.MPI_JOB: {
        "batch-manifest": {
            "another daemon": lambda all_: mpi_worker(all_)["containers"][0].update(
                command=["sh", "-c", "id"]
            ),
        },
        "pod-not-hardened": {
            "another account": lambda all_: mpi_worker(all_).update(serviceAccountName="admin"),
        },
    },
    Shape.TRAIN_JOB: {
        "volume-not-allowed": {
            "results of others": lambda all_: [
                each.pop("subPathExpr", None) for each in node(all_)["containers"][0]["volumeMounts"]
            ]
        },
        "manifest-malformed": {
            "a key around the pod": lambda all_: of_kind(all_, "TrainingRuntime")["spec"].update(foreign="x")
        },
        "batch-manifest": {
            "other pods than the runtime's": lambda all_: train(all_).update(
                podSpecOverrides=[{"targetJobs": [{"name": "node"}]}]
            ),
            "another batch's runtime": lambda all_: train(all_)["runtimeRef"].update(name="other"),
            "another command than the runtime's": lambda all_: train(all_)["trainer"].update(command=["sh"]),
        },
    },
    Shape.JOB_SET: {
        "gitops-unsafe": {
            "a life after the end": lambda all_: of_kind(all_, "JobSet")["spec"].update(
                ttlSecondsAfterFinished=60
            )
        }
    },
    Shape.TF_JOB: {
        "volume-not-allowed": {
            "a secret": lambda all_: replica(all_, "TFJob", "tfReplicaSpecs", "Worker")["volumes"].append(
                {"name": "secret-key", "secret": {"secretName": "key"}}
            )
        }
    },
}
DISTRIBUTED = {
    fault: (shape, code, change)
    for shape, codes in BY_SHAPE.items()
    for code, faults in codes.items()
    for fault, change in faults.items()
}


@pytest.mark.parametrize("fault", DISTRIBUTED)
def test_a_single_fault_of_a_distributed_trial_is_found_and_named(fault: str, rendered: Rendered) -> None:
    shape, code, change = DISTRIBUTED[fault]
    name, original = rendered[shape]
    manifests = copy.deepcopy(list(original))
    change(manifests)

    problems = check_batch(name, SETTINGS, tuple(manifests), file="x")

    assert code in {problem.code for problem in problems}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", Shape, ids=lambda shape: str(shape.value))
def test_nothing_at_all_anywhere_brings_no_rule_down(shape: Shape, rendered: Rendered) -> None:
    name, original = rendered[shape]
    first = next(manifest for manifest in original if manifest["kind"] != "ConfigMap")

    for *above, last in list(nodes(first))[1:]:
        changed = copy.deepcopy(first)
        at(changed, tuple(above))[last] = None

        assert check_batch(name, SETTINGS, (changed,), file="x")


def test_a_change_brings_no_policies_of_its_own() -> None:
    bases = real_bases()
    own = {**bases, f"{ADMISSION}/trials.yaml": b"spec: {validations: []}"}

    assert [each.rules for each in team_policies(SETTINGS, own)] == [
        each.rules for each in team_policies(SETTINGS, bases)
    ]
