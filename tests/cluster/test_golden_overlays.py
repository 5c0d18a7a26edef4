"""A real API server accepts what we generate, and the pods that a Job controller would make of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.repo import kustomize
from tests.cluster.apiserver import Server
from tests.cluster.overlays import CASES, laid_out
from tests.cluster.templates import pods

NAMESPACE = "research"
"""That of the golden overlays."""


@pytest.fixture(scope="module")
def restricted(apiserver: Server) -> Server:
    """A namespace under Pod Security "restricted", with the accounts that a controller would have made."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
        for name in ("default", "sweep-trial")
    ]
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "batch"},
        "value": 1,
    }
    apiserver.apply(namespace, *accounts, priority)
    return apiserver


def built(folder: Path, overlay: Path) -> tuple[Mapping[str, Any], ...]:
    return kustomize.build(laid_out(folder, overlay))


@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.parametrize("overlay", CASES, ids=lambda path: path.parents[1].name)
def test_the_server_accepts_every_golden_overlay(overlay: Path, restricted: Server, tmp_path: Path) -> None:
    manifests = built(tmp_path, overlay)

    assert restricted.refuses(*manifests) == ""


@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.parametrize("overlay", CASES, ids=lambda path: path.parents[1].name)
def test_the_server_lets_the_pods_of_every_golden_overlay_into_the_restricted_namespace(
    overlay: Path, restricted: Server, tmp_path: Path
) -> None:
    made = [pod for manifest in built(tmp_path, overlay) for pod in pods(manifest)]

    assert made
    assert [restricted.refuses(pod) for pod in made] == [""] * len(made)


def test_the_namespace_is_one_that_refuses_what_is_not_restricted(restricted: Server) -> None:
    container = {"name": "trial", "image": "a.example/b:1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "loose", "namespace": NAMESPACE},
        "spec": {"containers": [container]},
    }

    assert 'violates PodSecurity "restricted' in restricted.refuses(pod)
