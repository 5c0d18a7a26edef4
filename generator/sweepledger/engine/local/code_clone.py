"""The init container that clones a batch's code in a cluster, and its volumes: compared, and not run here. Pure.

On this machine the same tree comes from the repository. What differs from the components below `base/` is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweepledger.engine.local.manifest_node import ManifestNode
from sweepledger.structs.kubernetes import (
    CODE_CONTAINER,
    CODE_VARIABLES,
    STORE_COMMAND,
    STORE_CONTAINER,
    Manifest,
)

COMPONENT = "base/components/clone"
HINT = (
    "on this machine the code comes from the repository, and no other init container runs; "
    "what a newer version has rendered needs that version here"
)


@dataclass(frozen=True, slots=True)
class CodeClone:
    """How the pods of one batch may clone its code."""

    pods: Sequence[Manifest]
    """What the components add to a pod, without and with a credential."""
    variables: Mapping[str, str]
    """The values that the batch has locked; other variables say from where the code comes."""


def is_sidecar(container: Manifest) -> bool:
    """Return whether an init container is the sidecar of a bucket; on this machine files stay where they are."""
    return container.get("name") == STORE_CONTAINER and container.get("command") == [*STORE_COMMAND]


def take_clone(spec: ManifestNode, clone: CodeClone | None) -> frozenset[str]:
    """Read the init containers of a pod, and return the names of the volumes that only they need.

    Problems are added to the node: all differences from the component that is most like them.
    """
    containers = [node for node in spec.children("initContainers") if not is_sidecar(node.data)]
    known = clone is not None and [node.data.get("name") for node in containers] == [CODE_CONTAINER]
    if clone is None or not known:
        for node in containers:
            message = f"must be absent on this machine, or {CODE_CONTAINER!r} alone, which clones the code"
            node.refuse("name", f"{message}; got {node.data.get('name')!r}", hint=HINT)
        return frozenset()
    (container,) = containers
    compared = [
        (list(_differences(container.data, spec.data, pod, clone.variables)), pod) for pod in clone.pods
    ]
    differences, pod = min(compared, key=lambda pair: len(pair[0]))
    for key, wanted, actual in differences:
        container.refuse(key, f"must be {wanted!r}, as in {COMPONENT}, got {actual!r}", hint=HINT)
    return frozenset(volume["name"] for volume in pod["volumes"])


Difference = tuple[str, object, object]
"""What differs, the value of the component, and the value found."""


def _differences(
    container: Manifest, spec: Manifest, pod: Manifest, locked: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield how an init container, its volumes and the trial's mounts of these differ from a component's pod.

    The image and the amounts of resources are the settings' and the spec's; policy compares them.
    """
    (wanted,), (trial,) = pod["initContainers"], pod["containers"]
    for key in sorted({*container, *wanted} - {"env", "image", "resources", "volumeMounts"}):
        if container.get(key) != wanted.get(key):
            yield key, wanted.get(key), container.get(key)
    if _amounts(container) != _amounts(wanted):
        yield "resources", _amounts(wanted), container.get("resources")
    if _named(container, "volumeMounts", "mountPath") != _named(wanted, "volumeMounts", "mountPath"):
        yield "volumeMounts", wanted["volumeMounts"], container.get("volumeMounts")
    yield from _variable_differences(_named(container, "env"), _named(wanted, "env"), locked)
    volumes = _named(spec, "volumes")
    for name, volume in _named(pod, "volumes").items():
        if _without_own_values(volumes.get(name, {})) != _without_own_values(volume):
            yield f"volumes.{name}", volume, volumes.get(name)
    for name, other in _named(spec, "containers").items():
        mounts = [
            mount for mount in _items(other, "volumeMounts") if mount.get("name") in _named(pod, "volumes")
        ]
        if mounts != trial["volumeMounts"]:
            yield f"volumeMounts of {name}", trial["volumeMounts"], mounts


def _variable_differences(
    actual: Mapping[str, Manifest], wanted: Mapping[str, Manifest], locked: Mapping[str, str]
) -> Iterator[Difference]:
    values = {name: variable["value"] for name, variable in wanted.items()} | dict(locked)
    for name in sorted({*actual, *values, *CODE_VARIABLES}):
        variable = actual.get(name)
        value = values.get(name)
        if name in CODE_VARIABLES and name not in values and variable is not None:
            value = str(variable.get("value"))
        known = None if value is None else {"name": name, "value": value}
        if variable != known or variable is None:
            yield f"env.{name}", value, variable


def _amounts(container: Manifest) -> Mapping[str, list[str]]:
    """Return which resources a container requests and may use, without the amounts."""
    resources = container.get("resources")
    sections = resources if isinstance(resources, Mapping) else {}
    return {section: sorted(amounts) for section, amounts in sections.items() if isinstance(amounts, Mapping)}


def _items(owner: Manifest, key: str) -> list[Manifest]:
    items = owner.get(key)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list | tuple) else []


def _named(owner: Manifest, key: str, name: str = "name") -> dict[str, Manifest]:
    """Return the mappings in a list by what names them; kustomize chooses their order."""
    return {str(item.get(name)): item for item in _items(owner, key)}


def _without_own_values(volume: Manifest) -> dict[str, Any]:
    """Return a volume without the name of its Secret and the size of its folder, which policy compares."""
    own = {"secret": "secretName", "emptyDir": "sizeLimit"}
    return {
        key: {name: item for name, item in part.items() if name != own.get(key)}
        if isinstance(part, Mapping)
        else part
        for key, part in volume.items()
    }
