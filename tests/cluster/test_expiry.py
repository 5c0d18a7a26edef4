"""A real API server lets what deletes old results in beside the trials, and nothing that looks like it."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from sweepledger.structs.settings import Controller
from tests.cluster.apiserver import Server
from tests.render.platforms import a_platform, manifests
from tests.render.test_expiry import PLACED, the_job, the_pod

NAMESPACE = "expiry-test"
"""Of these tests alone: others use the same server."""

SETTINGS = replace(PLACED, namespace=NAMESPACE, controller=Controller.ARGOCD)
UID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def platform(apiserver: Server) -> Iterator[Server]:
    """The platform, once its policies are at work; what lies in no namespace is taken away again."""
    made = manifests(a_platform(SETTINGS), "clusters/platform/")
    spaces = [one for one in made if one["kind"] == "Namespace"]
    apiserver.apply(*spaces)
    apiserver.apply(*(one for one in made if one not in spaces))
    faulty = placed(the_job(SETTINGS))
    faulty["spec"]["template"]["spec"]["serviceAccountName"] = "default"
    apiserver.until_refused(faulty)
    yield apiserver
    shared = [one for one in made if one["kind"].startswith("ValidatingAdmission")]
    apiserver.kubectl("delete", "--wait=false", "-f", "-", given=shared)


def placed(manifest: dict[str, Any]) -> dict[str, Any]:
    made = deepcopy(manifest)
    made["metadata"]["namespace"] = NAMESPACE
    for owner in made["metadata"]["ownerReferences"]:
        owner["uid"] = UID
    return made


def test_its_job_and_its_pod_are_let_in(platform: Server) -> None:
    job = the_job(SETTINGS)

    assert platform.refuses(placed(job)) == ""
    assert platform.refuses(placed(the_pod(job))) == ""


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_another_command_in_its_clothes_is_refused(kind: str, platform: Server) -> None:
    job = the_job(SETTINGS)
    job["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "rm -r /sweep/results"]

    assert "forbidden" in platform.refuses(placed(job if kind == "Job" else the_pod(job)))
