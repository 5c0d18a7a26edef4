"""`sweep cluster collect --by-pod` against a real API server, on which no node ever runs a pod."""

import shlex
import uuid

import pytest

from sweepledger.engine.cluster import helper_pods
from sweepledger.engine.cluster.helper_pods import READER_SECONDS
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.operations.collection.collector import collect_by_pod
from sweepledger.operations.repository.workspace import Target
from tests.cluster.apiserver import Server, kubectl
from tests.repository import Sandbox

IMAGE = "registry.example/trainer@sha256:" + "a" * 64
SETTINGS = "version: 1\nnamespace: {namespace}\ncontroller: submit\n{more}"


@pytest.fixture
def namespace(apiserver: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A namespace under Pod Security "restricted", with the account that every namespace has."""
    name = f"project-{uuid.uuid4().hex[:8]}"
    metadata = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    account = {"name": "default", "namespace": name}
    apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    apiserver.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))
    return name


def collected(sandbox: Sandbox, patience: float = 1.0, image: str | None = None) -> None:
    workspace = sandbox.workspace
    collect_by_pod(workspace, Target(workspace.repository), Kubectl(), image=image, patience=patience)


def test_the_server_admits_the_reader_into_a_restricted_namespace(namespace: str) -> None:
    for queue in (None, "project-user-queue"):
        pod = helper_pods.reader_pod_manifest(namespace, "results", IMAGE, queue)

        made = Kubectl().create(pod, dry_run=True)

        assert made["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] is True
        assert made["spec"]["activeDeadlineSeconds"] == READER_SECONDS


def test_a_stuck_pod_goes(namespace: str, sandbox: Sandbox, apiserver: Server, needs_kustomize: None) -> None:
    more = f"defaults: {{image: '{IMAGE}'}}\n"
    sandbox.write("sweepledger.yaml", SETTINGS.format(namespace=namespace, more=more))
    sandbox.merged()

    with pytest.raises(ClusterError, match="is still Pending: no node has run it in time") as caught:
        collected(sandbox)

    left = apiserver.kubectl("get", "pods", "--namespace", namespace, "--output=name").stdout
    assert f"kubectl describe pod sweep-reader --namespace {namespace}" in str(caught.value.hint)
    assert left == ""
