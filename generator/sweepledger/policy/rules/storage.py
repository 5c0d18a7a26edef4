"""Rules for storage: matching volumes and mounts, and stable paths."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.objects import Container, Finding, Object, Pod
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.kubernetes import COMPLETION_INDEX_VARIABLE

MOUNT_CODE = "reference-dangling"
REFERENCE = re.compile(r"\$\(([^)]*)\)")
FILLED_IN = frozenset({"TrainingRuntime"})
"""Kinds whose containers get further variables from another object."""


def check_volumes(obj: Object) -> Iterator[Finding]:
    """Yield the findings in the volumes and mounts of every pod."""
    for pod in obj.pods:
        names = [str(volume.get("name")) for volume in pod.volumes]
        yield from _volumes(pod, names)
        for container in pod.containers:
            yield from _mounts(obj, container, frozenset(names))


def _volumes(pod: Pod, names: list[str]) -> Iterator[Finding]:
    used = {
        str(mount.get("name"))
        for container in pod.containers
        for mount in container.data.get("volumeMounts") or ()
    }
    for index, name in enumerate(names):
        at = (*pod.at, "volumes", index)
        if names.index(name) < index:
            yield Finding(at, f"must have a name of its own, got {safe_repr(name)} again", MOUNT_CODE)
        sources = sorted(pod.volumes[index].keys() - {"name"})
        if len(sources) != 1:
            yield Finding(at, f"must have one source, got {sources or 'none'}", MOUNT_CODE)
        if name not in used:
            message = f"must be mounted somewhere, but nothing mounts {safe_repr(name)}"
            yield Finding(at, message, MOUNT_CODE, "delete it")


def _mounts(obj: Object, container: Container, volumes: frozenset[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, mount in enumerate(container.data.get("volumeMounts") or ()):
        at = (*container.path, "volumeMounts", index)
        if str(mount.get("name")) not in volumes:
            known = ", ".join(sorted(volumes)) or "none"
            message = f"must name a volume of the pod ({known}), got {safe_repr(mount.get('name'))}"
            yield Finding(at, message, MOUNT_CODE)
        target = str(mount.get("mountPath", ""))
        if target.rstrip("/") in seen:
            message = f"must be another mount's path no more, got {safe_repr(target)}"
            yield Finding((*at, "mountPath"), message, MOUNT_CODE)
        seen.add(target.rstrip("/"))
        if not target.startswith("/") or ":" in target or ".." in target.split("/"):
            message = f"must be an absolute path without : and .., got {safe_repr(target)}"
            yield Finding((*at, "mountPath"), message, MOUNT_CODE)
        yield from _below(obj, container, mount, index)


def _below(obj: Object, container: Container, mount: Mapping[str, Any], index: int) -> Iterator[Finding]:
    at = (*container.path, "volumeMounts", index)
    if "subPath" in mount and "subPathExpr" in mount:
        yield Finding((*at, "subPathExpr"), "must be absent beside subPath", MOUNT_CODE)
    for key in ("subPath", "subPathExpr"):
        path = str(mount.get(key) or "")
        if path.startswith("/") or ".." in path.split("/"):
            message = f"must be a path below the volume's root, got {safe_repr(path)}"
            yield Finding((*at, key), message, MOUNT_CODE)
    if obj.kind in FILLED_IN or "$(" not in str(mount.get("subPathExpr", "")):
        return
    known = {variable.get("name") for variable in container.data.get("env") or ()}
    if any(job.spec.get("completionMode") == "Indexed" for job in obj.jobs):
        known.add(COMPLETION_INDEX_VARIABLE)
    for name in REFERENCE.findall(str(mount["subPathExpr"])):
        if name not in known:
            message = f"must use variables of this container, got $({name})"
            yield Finding((*at, "subPathExpr"), message, MOUNT_CODE, "the pod would never start")
