"""Batches that clone their code in a cluster: read here if they are exactly what the generator renders."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.local import manifests
from sweepledger.engine.local.code_clone import CodeClone
from sweepledger.engine.local.job_spec import BatchSpec
from sweepledger.problems import Problem
from sweepledger.render.base_files import clone_pods
from sweepledger.render.pod import locked_code
from sweepledger.structs.run_config import CodeMode, Resources, Shape
from tests.render.building import built
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep, real_bases

LOCKED = a_batch().program.code
CLONE = CodeClone(clone_pods(real_bases()), locked_code(LOCKED))
Change = Callable[[dict[str, Any]], object]


def rendered(folder: Path, shape: Shape = Shape.INDEXED, mode: CodeMode = CodeMode.CLONE) -> list[Any]:
    """Render a batch that clones with a credential; the machine lacks neither Secrets nor GPUs for the rest."""
    sweep = a_full_sweep("chosen", secrets=(), resources=Resources("1", "1Gi"), code_mode=mode)
    return copy.deepcopy(list(built(a_batch(shape, sweep=sweep), folder, FULL_SETTINGS)))


def pod_of(manifest: Any) -> Any:
    return manifest["spec"]["template"]["spec"]


def parsed(made: list[Any], clone: CodeClone | None = CLONE) -> BatchSpec | tuple[Problem, ...]:
    name = next(one for one in made if one["kind"] == "Job")["metadata"]["labels"]["sweepledger.dev/batch"]
    return manifests.parse_batch(name, made, clone=clone)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOBS], ids=str)
def test_a_batch_that_clones_runs_here_as_one_whose_code_is_in_the_image(
    tmp_path: Path, shape: Shape
) -> None:
    cloning = parsed(rendered(tmp_path / "clone", shape))
    plain = parsed(rendered(tmp_path / "image", shape, CodeMode.IMAGE))

    assert isinstance(cloning, BatchSpec), cloning
    assert isinstance(plain, BatchSpec), plain
    for job, other in zip(cloning.jobs, plain.jobs, strict=True):
        assert job.pod.volumes.keys() == other.pod.volumes.keys()
        assert [mount.path for mount in job.pod.mounts] == [mount.path for mount in other.pod.mounts]
        assert (job.pod.command, job.pod.code) == (other.pod.command, "/code")


@pytest.fixture(scope="module")
def cloning(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return rendered(tmp_path_factory.mktemp("cloning"))


def variable(pod: Any, name: str) -> Any:
    return next(one for one in pod["initContainers"][0]["env"] if one["name"] == name)


def mount(pod: Any, container: str, name: str) -> Any:
    return next(one for one in pod[container][0]["volumeMounts"] if one["name"] == name)


def volume(pod: Any, name: str) -> Any:
    return next(one for one in pod["volumes"] if one["name"] == name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda pod: pod["initContainers"][0].update(name="other"), "[0].name: must be absent"),
        (lambda pod: pod["initContainers"].append({"name": "two"}), "[1].name: must be absent"),
        (lambda pod: pod["initContainers"][0]["command"].append("x"), "[0].command: must be"),
        (lambda pod: pod["initContainers"][0].update(args=["x"]), "[0].args: must be None"),
        (lambda pod: pod["initContainers"][0].pop("securityContext"), "[0].securityContext: must be"),
        (
            lambda pod: pod["initContainers"][0]["securityContext"].update(runAsUser=0),
            "[0].securityContext: must be",
        ),
        (lambda pod: pod["initContainers"][0].update(restartPolicy="Always"), "[0].restartPolicy"),
        (lambda pod: pod["initContainers"][0].pop("resources"), "[0].resources: must be"),
        (lambda pod: variable(pod, "HOME").update(value="/root"), "[0].env.HOME: must be '/sweep/clone'"),
        (
            lambda pod: variable(pod, "CODE_TREE").update(value="d" * 40),
            f"env.CODE_TREE: must be '{'c' * 40}'",
        ),
        (lambda pod: variable(pod, "CODE_PATH").update(value="other"), "env.CODE_PATH: must be 'trainer'"),
        (lambda pod: pod["initContainers"][0]["env"].remove(variable(pod, "CODE_URL")), "env.CODE_URL: must"),
        (
            lambda pod: pod["initContainers"][0]["env"].append({"name": "GIT_SSH_COMMAND", "value": "x"}),
            "env.GIT_SSH_COMMAND: must be None",
        ),
        (
            lambda pod: pod["initContainers"][0]["volumeMounts"].append(
                {"name": "results", "mountPath": "/r"}
            ),
            "[0].volumeMounts: must be",
        ),
        (lambda pod: pod["volumes"].remove(volume(pod, "clone")), "volumes.clone: must be"),
        (lambda pod: volume(pod, "code").update(emptyDir={"medium": "Memory"}), "volumes.code: must be"),
        (lambda pod: mount(pod, "containers", "code").pop("readOnly"), "volumeMounts of trial: must be"),
        (
            lambda pod: pod["containers"][0]["volumeMounts"].append(
                {"name": "clone-credentials", "mountPath": "/sweep/credentials"}
            ),
            "volumeMounts of trial: must be",
        ),
    ],
)
def test_what_the_generator_does_not_render_is_refused_by_name(
    cloning: list[Any], change: Change, said: str
) -> None:
    made = copy.deepcopy(cloning)

    change(pod_of(made[-1]))

    found = parsed(made)
    assert not isinstance(found, BatchSpec)
    assert any(said in f"{problem.path}: {problem.message}" for problem in found), found
    assert {problem.code for problem in found} == {"unsupported-manifest"}


def test_no_batch_clones_whose_code_is_not_known(cloning: list[Any]) -> None:
    found = parsed(cloning, None)

    assert not isinstance(found, BatchSpec)
    assert any("initContainers[0].name" in problem.path for problem in found)
