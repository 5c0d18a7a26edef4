"""What a Job controller would make of a manifest: its pods, so that the server can judge these, too."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.manifests import controlled_by

Manifest = Mapping[str, Any]


def pods(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Make a pod of every pod template that lies anywhere in a manifest."""
    metadata = manifest.get("metadata") or {}
    for number, template in enumerate(_templates(manifest.get("spec"))):
        own = template.get("metadata") or {}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{number}",
                "namespace": metadata.get("namespace"),
                "labels": own.get("labels") or {},
                "annotations": own.get("annotations") or {},
            },
            "spec": template["spec"],
        }


CONTROLLER = "system:serviceaccount:kube-system:job-controller"
"""Nobody but controllers makes pods of trials."""


def owned_pods(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Make the same pods as they come to the server: with the owner that their controller names."""
    kind = manifest["kind"] if manifest["kind"] in {"MPIJob", "PyTorchJob", "TFJob"} else "Job"
    for pod in pods(manifest):
        pod["metadata"]["ownerReferences"] = controlled_by(kind, manifest["metadata"]["name"])
        yield pod


def _templates(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        template = node.get("template")
        if isinstance(template, dict) and "containers" in (template.get("spec") or {}):
            yield template
        else:
            for value in node.values():
                yield from _templates(value)
    elif isinstance(node, list):
        for item in node:
            yield from _templates(item)
