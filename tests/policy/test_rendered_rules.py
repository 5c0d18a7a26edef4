"""Each fault is one change to what the generator really renders."""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator import policy
from generator.render.overlay import overlay
from generator.repo import files, kustomize
from tests.sweeps import BASE, SETTINGS, a_batch, some_bases

NAME = overlay(a_batch(), some_bases(), SETTINGS).name


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    folder = tmp_path_factory.mktemp("build")
    shutil.copytree(BASE, folder / "base")
    target = folder / "overlays/active" / NAME
    files.write_folder(target, overlay(a_batch(), some_bases(), SETTINGS).tree)
    return kustomize.build(Path(target))


def job(manifests: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(manifest for manifest in manifests if manifest["kind"] == "Job")
    return found


def pod(manifests: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = job(manifests)["spec"]["template"]["spec"]
    return found


def container(manifests: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod(manifests)["containers"][0]
    return found


FAULTS: dict[str, tuple[str, Callable[[list[Any]], object]]] = {
    "another kind": ("kind-not-allowed", lambda all_: all_.append({"apiVersion": "v1", "kind": "Secret"})),
    "another api": ("kind-not-allowed", lambda all_: job(all_).update(apiVersion="batch/v2")),
    "a foreign name": ("name-not-ours", lambda all_: job(all_)["metadata"].update(name="other")),
    "a name that is no label": ("name-invalid", lambda all_: job(all_)["metadata"].update(name=NAME + "-A")),
    "a long name": ("name-invalid", lambda all_: job(all_)["metadata"].update(name=NAME + "-" + "a" * 63)),
    "another namespace": (
        "namespace-wrong",
        lambda all_: job(all_)["metadata"].update(namespace="kube-system"),
    ),
    "no namespace": ("namespace-wrong", lambda all_: job(all_)["metadata"].pop("namespace")),
    "a mutable table": ("config-map-mutable", lambda all_: all_[0].pop("immutable")),
    "a huge table": ("config-map-too-large", lambda all_: all_[0]["data"].update(x="x" * (1 << 20))),
    "restarts": ("pod-not-restricted", lambda all_: pod(all_).update(restartPolicy="OnFailure")),
    "a token": ("pod-not-restricted", lambda all_: pod(all_).pop("automountServiceAccountToken")),
    "an account": ("pod-not-restricted", lambda all_: pod(all_).update(serviceAccountName="admin")),
    "the host's network": ("pod-not-restricted", lambda all_: pod(all_).update(hostNetwork=True)),
    "an init container": ("pod-not-restricted", lambda all_: pod(all_).update(initContainers=[{}])),
    "root": ("pod-not-restricted", lambda all_: pod(all_)["securityContext"].update(runAsNonRoot=False)),
    "no seccomp": ("pod-not-restricted", lambda all_: pod(all_)["securityContext"].pop("seccompProfile")),
    "no context": ("pod-not-restricted", lambda all_: container(all_).pop("securityContext")),
    "privilege": (
        "pod-not-restricted",
        lambda all_: container(all_)["securityContext"].update(privileged=True),
    ),
    "a writable root": (
        "pod-not-restricted",
        lambda all_: container(all_)["securityContext"].update(readOnlyRootFilesystem=False),
    ),
    "a capability": (
        "pod-not-restricted",
        lambda all_: container(all_)["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
    ),
    "a host path": (
        "volume-not-allowed",
        lambda all_: pod(all_)["volumes"].append({"name": "root", "hostPath": {"path": "/"}}),
    ),
    "a secret": ("volume-not-allowed", lambda all_: pod(all_)["volumes"].append({"name": "s", "secret": {}})),
    "a second container": (
        "container-not-ours",
        lambda all_: pod(all_)["containers"].append({"name": "side"}),
    ),
    "another command": (
        "container-not-ours",
        lambda all_: container(all_).update(command=["sh", "-c", "id"]),
    ),
    "arguments": ("container-not-ours", lambda all_: container(all_).update(args=["x"])),
    "unequal resources": (
        "resources-unequal",
        lambda all_: container(all_)["resources"]["limits"].update(cpu="9"),
    ),
    "no limits": ("resources-unequal", lambda all_: container(all_).pop("resources")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_single_fault_is_found_and_named(fault: str, rendered: tuple[Any, ...]) -> None:
    code, change = FAULTS[fault]
    manifests = copy.deepcopy(list(rendered))
    change(manifests)

    found = policy.check(NAME, "sweeps", tuple(manifests), place="overlays/active/x")

    assert code in {problem.code for problem in found}
    assert all(problem.file == "overlays/active/x" for problem in found)


def test_what_the_generator_renders_has_no_fault(rendered: tuple[Any, ...]) -> None:
    assert policy.check(NAME, "sweeps", rendered, place="x") == ()
