"""A real API server takes the platform, and its admission policies refuse what they should."""

import uuid

import pytest

from sweepledger.structs.settings import Controller
from tests.cluster.apiserver import Server
from tests.cluster.platforms import applied, bootstrapped, built
from tests.manifests import manifest
from tests.repository import Sandbox

pytestmark = pytest.mark.usefixtures("needs_kustomize")


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX])
def test_the_server_takes_the_platform(controller: Controller, apiserver: Server, sandbox: Sandbox) -> None:
    namespace = f"team-{uuid.uuid4().hex[:8]}"
    bootstrapped(sandbox, namespace, controller)
    if controller is Controller.ARGOCD:
        apiserver.apply(manifest("Namespace", "argocd"))

    for folder in ("platform", str(controller)):
        applied(apiserver, built(sandbox.root, folder))
