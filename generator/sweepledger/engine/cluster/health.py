"""The health of a cluster's objects compared with the repository's manifests. Pure, one object at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sweepledger.engine.cluster.api_objects import condition, has_condition
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import Manifest

RESTRICTED = "restricted"
ENFORCE = "pod-security.kubernetes.io/enforce"
SHARED_ACCESS_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})

REPORTING: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "Application": (None, ()),  # its conditions are only errors; see _check_application
    "AppProject": (None, ()),
    "ApplicationSet": ("ResourcesUpToDate", ("ErrorOccurred",)),
    "GitRepository": ("Ready", ()),
    "Kustomization": ("Ready", ()),
    "Receiver": ("Ready", ()),
}
"""Kinds of controllers → the condition that must be True, and the conditions that must not be."""

COMPARED_FIELDS = ("spec", "rules", "roleRef", "subjects", "data", "automountServiceAccountToken")
"""Fields that are compared; the cluster manages all others."""


class HealthStatus(StrEnum):
    """The result of one check of the cluster."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"
    NOT_CHECKED = "not checked"
    """The check could not run; never a pass."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One line of `sweep doctor`."""

    part: str
    """tools, repository, cluster, controller or storage."""
    what: str
    state: HealthStatus
    says: str = ""
    hint: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether the user has to do something."""
        return self.state in {HealthStatus.MISSING, HealthStatus.WRONG}

    def as_data(self) -> dict[str, str | None]:
        """Return the finding as JSON data."""
        return {
            "part": self.part,
            "what": self.what,
            "state": str(self.state),
            "says": self.says,
            "hint": self.hint,
        }


def check_object(wanted: Manifest, found: Manifest | None, *, nodes: int, apply: str) -> HealthFinding:
    """Compare an object with the platform's files; `nodes` is the size of the largest pool, `apply` the hint."""
    part = _part(wanted)
    what = object_title(wanted)
    if found is None:
        return HealthFinding(part, what, HealthStatus.MISSING, "the cluster does not have it", apply)
    different = next(_differences(wanted, found), None)
    if different is not None:
        return HealthFinding(part, what, HealthStatus.WRONG, different, apply)
    return _by_kind(found, part, nodes=nodes)


def _by_kind(found: Manifest, part: str, *, nodes: int) -> HealthFinding:
    what = object_title(found)
    match str(found["kind"]):
        case "Namespace":
            return _check_namespace(found)
        case "PersistentVolumeClaim":
            return check_claim(found, nodes=nodes)
        case "PersistentVolume" if "nfs" in found.get("spec", {}):
            says = "NFS with root_squash is not supported, and cannot be detected from outside"
            hint = "`sweep doctor --prove` writes as a trial would"
            return HealthFinding(part, what, HealthStatus.NOT_CHECKED, says, hint)
        case "CronJob" if found.get("spec", {}).get("suspend"):
            return HealthFinding(
                part, what, HealthStatus.WRONG, "it is suspended", "set its spec.suspend to false"
            )
        case kind if kind in REPORTING and part == "controller":
            return _check_conditions(found, part)
    return HealthFinding(part, what, HealthStatus.OK)


def check_claim(found: Manifest, *, nodes: int) -> HealthFinding:
    """Check that a claim is bound, and that all nodes of its pods can mount it."""
    what = object_title(found)
    phase = (found.get("status") or {}).get("phase")
    modes = frozenset(found.get("spec", {}).get("accessModes") or ())
    if nodes > 1 and not modes & SHARED_ACCESS_MODES:
        says = f"its access modes are {sorted(modes)}, but a pool has {nodes} nodes, of which only one can mount it"
        return HealthFinding(
            "storage", what, HealthStatus.WRONG, says, "use a storage class with ReadWriteMany"
        )
    if phase != "Bound":
        says = f"its phase is {phase!r}, not 'Bound'"
        return HealthFinding(
            "storage",
            what,
            HealthStatus.WRONG,
            says,
            "run `kubectl describe` on it: no volume fits the claim yet",
        )
    return HealthFinding("storage", what, HealthStatus.OK, ", ".join(sorted(modes)))


def object_title(manifest: Manifest) -> str:
    """Return kind, namespace and name of an object as text."""
    metadata = manifest["metadata"]
    namespace = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{manifest['kind']} {namespace}{metadata['name']}"


def _part(manifest: Manifest) -> str:
    group = str(manifest["apiVersion"]).partition("/")[0]
    if group.endswith(("fluxcd.io", "argoproj.io")):
        return "controller"
    return "storage" if str(manifest["kind"]).startswith("PersistentVolume") else "cluster"


def _check_namespace(found: Manifest) -> HealthFinding:
    level = found["metadata"].get("labels", {}).get(ENFORCE)
    if level != RESTRICTED:
        says = f"{ENFORCE} is {level!r}, not {RESTRICTED!r}"
        hint = "set the label, because trials are untrusted code"
        return HealthFinding("cluster", object_title(found), HealthStatus.WRONG, says, hint)
    return HealthFinding("cluster", object_title(found), HealthStatus.OK, f"{RESTRICTED} enforced")


def _check_conditions(found: Manifest, part: str) -> HealthFinding:
    """Check the conditions that a controller reports on its object."""
    if found["kind"] == "Application":
        return _check_application(found, part)
    good, bad = REPORTING[str(found["kind"])]
    what = object_title(found)
    for name in bad:
        if has_condition(found, name):
            return HealthFinding(
                part, what, HealthStatus.WRONG, _message(found, name), "fix the reported error"
            )
    if good is None or has_condition(found, good):
        return HealthFinding(part, what, HealthStatus.OK)
    if not condition(found, good):
        return HealthFinding(
            part, what, HealthStatus.WRONG, "no controller has processed it", "install the controller"
        )
    return HealthFinding(part, what, HealthStatus.WRONG, _message(found, good), "fix the reported error")


def _check_application(found: Manifest, part: str) -> HealthFinding:
    """Check an Application, whose conditions are only errors."""
    status, what = found.get("status") or {}, object_title(found)
    synced = (status.get("sync") or {}).get("status")
    if synced == "Synced":
        return HealthFinding(part, what, HealthStatus.OK)
    if synced is None:
        return HealthFinding(
            part, what, HealthStatus.WRONG, "no controller has processed it", "install the controller"
        )
    errors = [str(item.get("message", "")) for item in status.get("conditions") or ()]
    return HealthFinding(
        part, what, HealthStatus.WRONG, "; ".join([str(synced), *errors]), "fix the reported error"
    )


def _message(found: Manifest, name: str) -> str:
    return f"{name}: {condition(found, name).get('message', '')}"


def _differences(wanted: Manifest, found: Manifest) -> Iterator[str]:
    for name in COMPARED_FIELDS:
        if name in wanted:
            yield from _compare(wanted[name], found.get(name), name)
    labels = {name: value for name, value in wanted["metadata"].get("labels", {}).items() if name == ENFORCE}
    yield from _compare(labels, found["metadata"].get("labels", {}), "metadata.labels")


def _compare(wanted: Any, found: Any, path: str) -> Iterator[str]:
    """Yield the differences; fields that the cluster added are ignored."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name, value in wanted.items():
            yield from _compare(value, found.get(name), f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (wanted_item, found_item) in enumerate(zip(wanted, found, strict=True)):
            yield from _compare(wanted_item, found_item, f"{path}[{number}]")
    elif not _is_same(wanted, found):
        yield f"{path} must be {wanted!r}, the cluster has {found!r}"


def _is_same(wanted: Any, found: Any) -> bool:
    """Compare values: the server omits empty ones, and normalizes quantities."""
    if wanted == found or (found is None and wanted in ({}, [], "", None, False, 0)):
        return True
    try:
        return quantities.parse_quantity(wanted) == quantities.parse_quantity(found)
    except (ValueError, ArithmeticError, TypeError):
        return False
