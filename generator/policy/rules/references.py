"""What objects say of each other: every object once, and what one names is there."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Object, Pod
from generator.problems import Severity
from generator.reader.paths import Path
from generator.reader.shown import shown

CODE, TWICE = "reference-dangling", "name-duplicate"

ROOT_CERTIFICATES = "kube-root-ca.crt"
"""Kubernetes puts this ConfigMap into every namespace."""

Named = tuple[str, str]
"""A kind and a name."""


def check(
    things: Sequence[Object], *, known: Collection[Named], severity: Severity
) -> Iterator[tuple[int, Finding]]:
    """Check a rendered set as a whole; `known` objects are elsewhere."""
    counts = Counter(map(_identity, things))
    there = {(thing.kind, thing.name) for thing in things} | {*known, ("ConfigMap", ROOT_CERTIFICATES)}
    for index, thing in enumerate(things):
        if counts[_identity(thing)] > 1:
            message = f"must stand once, got {counts[_identity(thing)]}"
            yield index, Finding(("metadata", "name"), message, TWICE)
        for path, kind, name in _named(thing):
            if (kind, name) not in there:
                message = f"must be among what is rendered with it, got {kind} {shown(name)}"
                yield index, Finding(path, message, CODE, severity=severity)


def _identity(thing: Object) -> tuple[str, str, Any, str]:
    return thing.api.rpartition("/")[0], thing.kind, thing.metadata.get("namespace"), thing.name


def _named(thing: Object) -> Iterator[tuple[Path, str, str]]:
    for pod in thing.pods:
        yield from _in_pod(pod)
    reference = (thing.data.get("spec") or {}).get("runtimeRef") if thing.kind == "TrainJob" else None
    if reference and reference.get("kind") == "TrainingRuntime":
        yield ("spec", "runtimeRef", "name"), "TrainingRuntime", str(reference.get("name"))


def _in_pod(pod: Pod) -> Iterator[tuple[Path, str, str]]:
    account = pod.spec.get("serviceAccountName")
    if account:
        yield (*pod.at, "serviceAccountName"), "ServiceAccount", str(account)
    for index, volume in enumerate(pod.volumes):
        at = (*pod.at, "volumes", index)
        sources = [(at, volume)]
        listed = (volume.get("projected") or {}).get("sources") or ()
        sources += [((*at, "projected", "sources", number), each) for number, each in enumerate(listed)]
        for path, source in sources:
            found = source.get("configMap")
            if found and not found.get("optional"):
                yield (*path, "configMap"), "ConfigMap", str(found.get("name"))
    for container in pod.containers:
        for index, variable in enumerate(container.data.get("env") or ()):
            found = (variable.get("valueFrom") or {}).get("configMapKeyRef")
            if found and not found.get("optional"):
                yield (*container.path, "env", index, "valueFrom"), "ConfigMap", str(found.get("name"))
        for index, source in enumerate(container.data.get("envFrom") or ()):
            found = source.get("configMapRef")
            if found and not found.get("optional"):
                yield (*container.path, "envFrom", index), "ConfigMap", str(found.get("name"))
