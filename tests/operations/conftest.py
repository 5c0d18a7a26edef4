"""What the tests of several commands speak to."""

import shlex
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.operations.collection.collector import Collection, collect_from_cluster
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.repository.workspace import Target, Workspace
from tests.cluster.apiserver import Server, kubectl
from tests.operations.clusters import Cluster, Look, Scene
from tests.repository import Sandbox


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def look_at_cluster(sandbox: Sandbox, cluster: Cluster, results: Path) -> Look:
    """What `sweep cluster collect --push --cluster` does at some time, from the sandbox's clone or another."""

    def collect(clock: Callable[[], float] = time.time, workspace: Workspace | None = None) -> Collection:
        target = Target((workspace or sandbox.workspace).repository, "origin", "main")
        return collect_from_cluster(target, on_volume(results), Kubectl(), cluster.namespace, clock=clock)

    return collect


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


@pytest.fixture
def scene(sandbox: Sandbox, cluster: Cluster, results: Path) -> Scene:
    """A merged batch of three trials, whose Job has begun."""
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    return Scene(cluster.server, cluster.namespace, sandbox, results, batch)
