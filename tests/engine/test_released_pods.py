"""Finalizers that are removed from pods of a real API server."""

import shlex
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.structs.kubernetes import BATCH_LABEL, RECORD_FINALIZER
from tests.cluster.apiserver import Server, kubectl
from tests.manifests import manifest

OTHER = "example.org/kept"
GONE = '[{"op": "remove", "path": "/metadata/finalizers"}]'


@pytest.fixture
def namespace(apiserver: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"held-{uuid.uuid4().hex[:8]}"
    apiserver.apply(manifest("Namespace", name), manifest("ServiceAccount", "default", name))
    monkeypatch.setenv("KUBECONFIG", str(apiserver.kubeconfig))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))
    yield name
    apiserver.kubectl("delete", "namespace", name, "--wait=false")


def a_pod(namespace: str, name: str, *finalizers: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {BATCH_LABEL: "lr-b1"}}
    container = {"name": "trial", "image": "a.example/b"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "finalizers": [*finalizers]},
        "spec": {"containers": [container]},
    }


def test_only_the_named_pods_lose_only_our_finalizer(apiserver: Server, namespace: str) -> None:
    apiserver.apply(
        a_pod(namespace, "one", RECORD_FINALIZER, OTHER),
        a_pod(namespace, "two", RECORD_FINALIZER),
        a_pod(namespace, "three", RECORD_FINALIZER),
        a_pod(namespace, "four"),
    )

    pods.release(Kubectl(), namespace, ["one", "missing", "two", "four"])

    left = Kubectl().list("pods", namespace, BATCH_LABEL)
    assert {pod["metadata"]["name"]: pod["metadata"].get("finalizers", []) for pod in left} == {
        "one": [OTHER],
        "two": [],
        "three": [RECORD_FINALIZER],
        "four": [],
    }
    pods.release(Kubectl(), namespace, [])


def test_no_name_leads_out_of_the_pods_of_the_namespace(apiserver: Server, namespace: str) -> None:
    metadata = {"name": "kept", "namespace": namespace, "finalizers": [OTHER]}
    apiserver.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    for name in ("../configmaps/kept", "kept/status"):
        with pytest.raises(ClusterError, match=r"PATCH .*: (307|403): "):
            Kubectl().remove_finalizer("pods", [name], namespace, OTHER)

    (kept,) = [
        one for one in Kubectl().list("configmaps", namespace, "") if one["metadata"]["name"] == "kept"
    ]
    assert kept["metadata"]["finalizers"] == [OTHER]
    apiserver.kubectl(
        "patch", "configmap", "kept", f"--namespace={namespace}", "--type=json", "--patch", GONE
    )


def test_what_the_server_refuses_is_said_in_its_words(apiserver: Server, namespace: str) -> None:
    apiserver.apply(a_pod(namespace, "one", RECORD_FINALIZER))
    binding = f"{namespace}-refusal"
    kept = "!has(oldObject.metadata.finalizers) || has(object.metadata.finalizers)"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}]
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    validations = [{"expression": kept, "message": "pods stay"}]
    policy = {"matchConstraints": {"resourceRules": rules}, "validations": validations}
    bound = {
        "policyName": binding,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": here},
    }
    kind, group = "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"
    apiserver.apply(
        manifest(kind, binding, api=group, spec=policy),
        manifest(f"{kind}Binding", binding, api=group, spec=bound),
    )
    apiserver.until_refused(a_pod(namespace, "one"))

    with pytest.raises(ClusterError, match=r"PATCH .*/one: 422: .*pods stay"):
        pods.release(Kubectl(), namespace, ["one"])

    for each in (f"{kind}Binding", kind):
        apiserver.kubectl("delete", each.lower(), binding)


def test_a_cluster_that_is_not_there_is_said(apiserver: Server, namespace: str) -> None:
    with pytest.raises(ClusterError, match="none"):
        pods.release(Kubectl("none"), namespace, ["one"])
