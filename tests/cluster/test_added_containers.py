"""A real API server takes the policies that admit what a cluster adds to pods, and judges by them."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from sweepledger.structs.settings import Controller
from tests.cluster.apiserver import Server
from tests.cluster.platforms import policed_job, rendered_and_applied
from tests.cluster.templates import pods
from tests.render.test_sidecars import FAULTS, IMAGE, MESHED, with_sidecar
from tests.sweeps import FULL_SETTINGS, a_batch, a_full_sweep

NAMESPACE = "meshed-test"
SETTINGS = replace(MESHED, namespace=NAMESPACE, controller=Controller.ARGOCD)
OF_BATCH = replace(FULL_SETTINGS, namespace=NAMESPACE, priority_class=None)  # the cluster has no class


@pytest.fixture(scope="module")
def platform(apiserver: Server) -> Iterator[Server]:
    """The platform, without what Argo CD reads; what lies in no namespace is taken away again."""
    with rendered_and_applied(apiserver, SETTINGS, "PersistentVolume"):
        yield apiserver


@pytest.fixture(scope="module")
def job(platform: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A Job with every option; given once the policies are at work."""
    return policed_job(
        platform, a_batch(sweep=a_full_sweep(), image=IMAGE), OF_BATCH, tmp_path_factory.mktemp("built")
    )


def test_the_server_admits_a_listed_sidecar_in_a_pod_and_in_no_job(
    platform: Server, job: dict[str, Any]
) -> None:
    assert platform.refuses(job) == ""
    assert [platform.refuses(pod) for pod in pods(with_sidecar(job))] == [""]
    assert "denied request" in platform.refuses(with_sidecar(job))


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change.__name__)
def test_the_server_lets_no_other_container_pass_for_it(
    change: Any, platform: Server, job: dict[str, Any]
) -> None:
    changed = with_sidecar(job)

    change(changed["spec"]["template"]["spec"])

    assert "ValidatingAdmissionPolicy" in platform.refuses(*pods(changed))


def test_the_server_admits_an_image_from_a_mirror_in_a_pod(platform: Server, job: dict[str, Any]) -> None:
    changed = deepcopy(job)
    for one in changed["spec"]["template"]["spec"]["containers"]:
        one["image"] = one["image"].replace("registry.example.org/", "mirror.example.org/cache/")

    assert platform.refuses(*pods(changed)) == ""
    assert "repositories" in platform.refuses(changed)
