"""What the tests of several commands speak to."""

import shlex
import uuid
from collections.abc import Iterator

import pytest

from tests.cluster.apiserver import Server, kubectl
from tests.commands.clusters import Cluster
from tests.repository import Sandbox


@pytest.fixture
def cluster(apiserver: Server, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A namespace that the sandbox's settings name, and kubectl's way to it."""
    name = f"collect-{uuid.uuid4().hex[:8]}"
    apiserver.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
    )
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))
    sandbox.write("sweepledger.yaml", f"version: 1\nnamespace: {name}\n")
    yield Cluster(apiserver, name)
    apiserver.kubectl("delete", "namespace", name, "--wait=false")
