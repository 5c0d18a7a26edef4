"""A real API server takes the platform, and its admission policies refuse what they should."""

import copy
import uuid
from typing import Any

import pytest

from sweepledger.commands.generate import generate
from sweepledger.repo import kustomize
from sweepledger.structs.settings import Controller
from tests.cluster.apiserver import Server
from tests.cluster.platforms import Manifest, applied, bootstrapped, built
from tests.repository import Sandbox

pytestmark = pytest.mark.usefixtures("needs_kustomize")


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX])
def test_the_server_takes_the_platform_and_the_controllers_files(
    controller: Controller, apiserver: Server, sandbox: Sandbox
) -> None:
    namespace = f"team-{uuid.uuid4().hex[:8]}"
    bootstrapped(sandbox, namespace, controller)
    if controller is Controller.ARGOCD:
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})

    for folder in ("platform", str(controller)):
        applied(apiserver, built(sandbox.root, folder))


def test_the_admission_policies_let_our_jobs_in_and_hostile_ones_not(
    apiserver: Server, sandbox: Sandbox
) -> None:
    namespace = f"team-{uuid.uuid4().hex[:8]}"
    bootstrapped(sandbox, namespace, Controller.ARGOCD)
    applied(apiserver, built(sandbox.root, "platform"))
    sandbox.spec(parallelism=3)
    (generated,) = generate(sandbox.workspace)
    assert generated.batch is not None
    rendered = kustomize.build(sandbox.root / "overlays/active" / generated.batch.name)
    job = next(item for item in rendered if item["kind"] == "Job")
    apiserver.until_refused(hostile(job)["another service account"])

    refused = {what: apiserver.refuses(item) for what, item in hostile(job).items()}

    assert apiserver.refuses(job) == ""
    assert all("ValidatingAdmissionPolicy" in message for message in refused.values()), refused


def hostile(job: Manifest) -> dict[str, dict[str, Any]]:
    """Make of a Job some that a compromised repository would hold."""

    def changed(**parts: Any) -> dict[str, Any]:
        made = copy.deepcopy(dict(job))
        made["spec"]["template"]["spec"] |= parts
        return made

    pod = job["spec"]["template"]["spec"]
    volumes = pod["volumes"]
    reference = {"secretKeyRef": {"name": "sweep-git-write", "key": "password"}}
    leaking = copy.deepcopy(pod["containers"])
    leaking[0]["env"] = [*leaking[0].get("env", []), {"name": "STOLEN", "valueFrom": reference}]
    return {
        "another service account": changed(serviceAccountName="sweep-collector"),
        "a foreign Secret": changed(
            volumes=[*volumes, {"name": "stolen", "secret": {"secretName": "sweep-git-write"}}]
        ),
        "a Secret in the environment": changed(containers=leaking),
        "a folder of the node": changed(volumes=[*volumes, {"name": "node", "hostPath": {"path": "/"}}]),
        "a token": changed(automountServiceAccountToken=True),
    }
