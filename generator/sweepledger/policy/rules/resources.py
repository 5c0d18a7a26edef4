"""Rules for resources: valid quantities, requests within limits, and limits for everything that nodes share."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sweepledger.policy.objects import Container, Finding, Object, Pod
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_repr
from sweepledger.structs import quantities

QUANTITY, UNEQUAL, MISSING = "quantity-invalid", "resources-unequal", "resources-missing"

NEEDED = ("cpu", "memory", "ephemeral-storage")


def check(obj: Object) -> Iterator[Finding]:
    """Yield the findings in the amounts of every container and volume."""
    for pod in obj.pods:
        for container in pod.containers:
            yield from _container(container)
        yield from _scratch(pod)


def _parsed(amounts: Mapping[str, Any], at: DocumentPath) -> Iterator[Finding]:
    for name, amount in amounts.items():
        if _read(amount) is None:
            message = f"must be a quantity such as 500m or 2Gi, got {safe_repr(amount)}"
            yield Finding((*at, name), message, QUANTITY)


def _container(container: Container) -> Iterator[Finding]:
    at = (*container.path, "resources")
    resources = container.data.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    yield from _parsed(limits, (*at, "limits"))
    yield from _parsed(requests, (*at, "requests"))
    yield from _compared(limits, requests, at)
    for key, amounts in (("limits", limits), ("requests", requests)):
        lacking = [name for name in NEEDED if name not in amounts]
        if lacking:
            yield Finding(at, f"must have {key} of {', '.join(lacking)}", MISSING)


def _compared(limits: Mapping[str, Any], requests: Mapping[str, Any], at: DocumentPath) -> Iterator[Finding]:
    for name, requested in requests.items():
        if _is_extended(name) and limits.get(name) != requested:
            message = f"must equal the limit: {name} is never shared, got {safe_repr(requested)}"
            yield Finding((*at, "requests", name), message, UNEQUAL, f"write limits.{name} as well")
            continue
        wanted, allowed = _read(requested), _read(limits.get(name))
        if wanted is not None and allowed is not None and wanted > allowed:
            message = f"must be at most the limit {safe_repr(limits[name])}, got {safe_repr(requested)}"
            yield Finding((*at, "requests", name), message, UNEQUAL)
    for name, amount in limits.items():
        allowed = _read(amount)
        if _is_extended(name) and allowed is not None and allowed != allowed.to_integral_value():
            yield Finding((*at, "limits", name), f"must be a whole number, got {safe_repr(amount)}", QUANTITY)


def _is_extended(name: str) -> bool:
    """Return whether a resource is a device, such as nvidia.com/gpu."""
    prefix, slash, _ = name.partition("/")
    return bool(slash) and not prefix.endswith("kubernetes.io")


def _scratch(pod: Pod) -> Iterator[Finding]:
    for index, volume in enumerate(pod.volumes):
        scratch = volume.get("emptyDir")
        if scratch is None:
            continue
        at = (*pod.at, "volumes", index, "emptyDir")
        if "sizeLimit" not in scratch:
            yield Finding(at, "must have a sizeLimit: without one it fills the node's disk", MISSING)
        else:
            yield from _parsed({"sizeLimit": scratch["sizeLimit"]}, at)


@lru_cache(maxsize=1024, typed=True)
def _read(amount: Any) -> Decimal | None:
    try:
        return quantities.parse_quantity(amount)
    except ValueError:
        return None
