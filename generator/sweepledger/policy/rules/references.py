"""Names of a rendered set as a whole: objects are unique, and references name objects that exist."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sweepledger.policy.objects import Finding, Object, Pod
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_repr

DANGLING, DUPLICATE = "reference-dangling", "name-duplicate"

ROOT_CERTIFICATES = "kube-root-ca.crt"
"""Kubernetes puts this ConfigMap into every namespace."""

KindAndName = tuple[str, str]


def check_references(
    objects: Sequence[Object], *, known: Collection[KindAndName]
) -> Iterator[tuple[int, Finding]]:
    """Yield the findings in a rendered set, by index of the object; `known` objects exist elsewhere."""
    counts = Counter(map(_identity, objects))
    existing = {(obj.kind, obj.name) for obj in objects} | {*known, ("ConfigMap", ROOT_CERTIFICATES)}
    for index, obj in enumerate(objects):
        if counts[_identity(obj)] > 1:
            message = f"must stand once, got {counts[_identity(obj)]}"
            yield index, Finding(("metadata", "name"), message, DUPLICATE)
        for path, kind, name in _references(obj):
            if (kind, name) not in existing:
                message = f"must be among what is rendered with it, got {kind} {safe_repr(name)}"
                yield index, Finding(path, message, DANGLING)


def _identity(obj: Object) -> tuple[str, str, Any, str]:
    return obj.api.rpartition("/")[0], obj.kind, obj.metadata.get("namespace"), obj.name


def _references(obj: Object) -> Iterator[tuple[DocumentPath, str, str]]:
    for pod in obj.pods:
        yield from _pod_references(pod)
    reference = (obj.data.get("spec") or {}).get("runtimeRef") if obj.kind == "TrainJob" else None
    if reference and reference.get("kind") == "TrainingRuntime":
        yield ("spec", "runtimeRef", "name"), "TrainingRuntime", str(reference.get("name"))


def _pod_references(pod: Pod) -> Iterator[tuple[DocumentPath, str, str]]:
    account = pod.spec.get("serviceAccountName")
    if account:
        yield (*pod.at, "serviceAccountName"), "ServiceAccount", str(account)
    for index, volume in enumerate(pod.volumes):
        at = (*pod.at, "volumes", index)
        listed = (volume.get("projected") or {}).get("sources") or ()
        projected = [((*at, "projected", "sources", number), each) for number, each in enumerate(listed)]
        for path, source in [(at, volume), *projected]:
            if reference := source.get("configMap"):
                yield (*path, "configMap"), "ConfigMap", str(reference.get("name"))
