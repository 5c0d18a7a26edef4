"""Volumes and mounts closed over each other, and paths that stay where they are."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Container, Object, Pod
from generator.reader.shown import shown

CODE = "mount-dangling"
REFERENCE = re.compile(r"\$\(([^)]*)\)")
INDEX = "JOB_COMPLETION_INDEX"
"""Kubernetes gives it to every container of an Indexed Job."""
FILLED_IN = frozenset({"ClusterTrainingRuntime", "TrainingRuntime"})
"""Kinds whose containers get further variables by another object."""


def check(thing: Object) -> Iterator[Finding]:
    """Check the volumes and mounts of every pod."""
    for pod in thing.pods:
        names = [str(volume.get("name")) for volume in pod.volumes]
        yield from _volumes(pod, names)
        for container in pod.containers:
            yield from _mounts(thing, container, frozenset(names))


def _volumes(pod: Pod, names: list[str]) -> Iterator[Finding]:
    containers = [container.data for container in pod.containers]
    used = {
        str(use.get("name"))
        for container in containers
        for use in (*(container.get("volumeMounts") or ()), *(container.get("volumeDevices") or ()))
    }
    for index, name in enumerate(names):
        at = (*pod.at, "volumes", index)
        if names.index(name) < index:
            yield Finding(at, f"must have a name of its own, got {shown(name)} again", CODE)
        sources = sorted(pod.volumes[index].keys() - {"name"})
        if len(sources) != 1:
            yield Finding(at, f"must have one source, got {sources or 'none'}", CODE)
        if name not in used:
            yield Finding(
                at, f"must be mounted somewhere, but nothing mounts {shown(name)}", CODE, "delete it"
            )


def _mounts(thing: Object, container: Container, volumes: frozenset[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, mount in enumerate(container.data.get("volumeMounts") or ()):
        at = (*container.path, "volumeMounts", index)
        if str(mount.get("name")) not in volumes:
            known = ", ".join(sorted(volumes)) or "none"
            yield Finding(
                at, f"must name a volume of the pod ({known}), got {shown(mount.get('name'))}", CODE
            )
        target = str(mount.get("mountPath", ""))
        if target.rstrip("/") in seen:
            yield Finding(
                (*at, "mountPath"), f"must be another mount's path no more, got {shown(target)}", CODE
            )
        seen.add(target.rstrip("/"))
        if not target.startswith("/") or ":" in target or ".." in target.split("/"):
            message = f"must be an absolute path without : and .., got {shown(target)}"
            yield Finding((*at, "mountPath"), message, CODE)
        yield from _below(thing, container, mount, index)


def _below(thing: Object, container: Container, mount: Mapping[str, Any], index: int) -> Iterator[Finding]:
    at = (*container.path, "volumeMounts", index)
    if "subPath" in mount and "subPathExpr" in mount:
        yield Finding((*at, "subPathExpr"), "must be absent beside subPath", CODE)
    for key in ("subPath", "subPathExpr"):
        path = str(mount.get(key) or "")
        if path.startswith("/") or ".." in path.split("/"):
            yield Finding((*at, key), f"must be a path below the volume's root, got {shown(path)}", CODE)
    if thing.kind in FILLED_IN or "$(" not in str(mount.get("subPathExpr", "")):
        return
    known = {variable.get("name") for variable in container.data.get("env") or ()}
    known |= {INDEX} if any(job.spec.get("completionMode") == "Indexed" for job in thing.jobs) else set()
    for name in REFERENCE.findall(str(mount["subPathExpr"])):
        if name not in known:
            message = f"must use variables of this container, got $({name})"
            yield Finding((*at, "subPathExpr"), message, CODE, "the pod would never start")
