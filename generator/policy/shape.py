"""Which keys a rendered object may have: those that the bases and the renderer write.

A list of what is allowed, as a list of what is forbidden would miss what Kubernetes adds next year.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Manifest = Mapping[str, Any]

Finding = tuple[str, str, str]
"""Path in the object, message, code."""

Shape: TypeAlias = "Mapping[str, Shape] | tuple[Shape] | None"
"""A mapping with these keys, a list of such, or (None) a plain value."""

ANY_KEY = "*"
MALFORMED = "manifest-malformed"

_LABELS: Shape = {
    "app.kubernetes.io/name": None,
    "app.kubernetes.io/managed-by": None,
    "sweepledger.dev/sweep": None,
    "sweepledger.dev/batch": None,
    "sweepledger.dev/trial": None,
    "sweepledger.dev/index": None,
}
_OBJECT: Mapping[str, Shape] = {
    "apiVersion": None,
    "kind": None,
    "metadata": {"name": None, "namespace": None, "labels": _LABELS},
}
_AMOUNTS: Shape = {"cpu": None, "memory": None, "ephemeral-storage": None, "nvidia.com/gpu": None}
_CONTAINER: Shape = {
    "name": None,
    "image": None,
    "args": (None,),  # allowed here, as another rule has the better words against it
    "command": (None,),
    "workingDir": None,
    "env": (
        {"name": None, "value": None, "valueFrom": {"fieldRef": {"apiVersion": None, "fieldPath": None}}},
    ),
    "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS},
    "securityContext": {
        "allowPrivilegeEscalation": None,
        "capabilities": {"drop": (None,)},
        "privileged": None,
        "readOnlyRootFilesystem": None,
        "runAsNonRoot": None,
    },
    "terminationMessagePath": None,
    "terminationMessagePolicy": None,
    "volumeMounts": (
        {"name": None, "mountPath": None, "readOnly": None, "subPath": None, "subPathExpr": None},
    ),
}
_VOLUME: Shape = {
    "name": None,
    "configMap": {"name": None, "defaultMode": None},
    "projected": {"defaultMode": None, "sources": ({"configMap": {"name": None}},)},
    "persistentVolumeClaim": {"claimName": None, "readOnly": None},
    "emptyDir": {"sizeLimit": None},
}
_POD: Shape = {
    "activeDeadlineSeconds": None,
    "automountServiceAccountToken": None,
    "containers": (_CONTAINER,),
    "enableServiceLinks": None,
    "restartPolicy": None,
    "securityContext": {
        "fsGroup": None,
        "fsGroupChangePolicy": None,
        "runAsGroup": None,
        "runAsNonRoot": None,
        "runAsUser": None,
        "seccompProfile": {"type": None},
    },
    "terminationGracePeriodSeconds": None,
    "volumes": (_VOLUME,),
}
_RULE: Shape = {
    "action": None,
    "onExitCodes": {"containerName": None, "operator": None, "values": (None,)},
    "onPodConditions": ({"type": None, "status": None},),
}
_JOB: Shape = {
    "backoffLimit": None,
    "backoffLimitPerIndex": None,
    "completionMode": None,
    "completions": None,
    "maxFailedIndexes": None,
    "parallelism": None,
    "podFailurePolicy": {"rules": (_RULE,)},
    "podReplacementPolicy": None,
    "template": {"metadata": {"labels": _LABELS}, "spec": _POD},
}

OBJECTS: Mapping[tuple[str, str], Shape] = {
    ("v1", "ConfigMap"): {**_OBJECT, "immutable": None, "data": {ANY_KEY: None}},
    ("batch/v1", "Job"): {**_OBJECT, "spec": _JOB},
}
"""The kinds of objects that a batch may have, and what may stand in them."""

_CODES = (
    (".spec.template.spec.volumes", "volume-not-allowed"),
    (".spec.template", "pod-not-restricted"),
    ("", "key-not-allowed"),
)


def compare(found: Any, shape: Shape, path: str = "") -> Iterator[Finding]:
    """Find keys that the shape lacks, and values of another kind than it has."""
    if isinstance(shape, Mapping):
        if not isinstance(found, Mapping):
            yield path, f"must be a mapping, got {found!r}", MALFORMED
            return
        for key, value in found.items():
            if key in shape or ANY_KEY in shape:
                yield from compare(value, shape.get(key), f"{path}.{key}")
            else:
                yield f"{path}.{key}", f"must be absent, got {value!r}", _code(f"{path}.{key}")
    elif isinstance(shape, tuple):
        if not isinstance(found, list):
            yield path, f"must be a list, got {found!r}", MALFORMED
            return
        for index, item in enumerate(found):
            yield from compare(item, shape[0], f"{path}[{_label(item, index)}]")
    elif found is None or isinstance(found, Mapping | list):
        yield path, f"must be a plain value, got {found!r}", MALFORMED


def _code(path: str) -> str:
    return next(code for start, code in _CODES if path.startswith(start))


def _label(item: Any, index: int) -> Any:
    return item.get("name", index) if isinstance(item, Mapping) else index
