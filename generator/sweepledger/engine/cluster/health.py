"""The health of a cluster's objects compared with the repository's manifests. Pure, one object at a time."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from sweepledger.controllers import GITOPS
from sweepledger.formats.manifest_fields import condition, has_condition, time_at, value_at
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, COMPONENT_LABEL, OWNER_ANNOTATION, Manifest

RESTRICTED = "restricted"
ENFORCE = "pod-security.kubernetes.io/enforce"
SHARED_ACCESS_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})

REPORTING = {kind: said for own in GITOPS.values() for kind, said in own.conditions.items()}
"""Kind of a controller's object → the condition that must be True, and those that must not be True."""

COMPARED_FIELDS = ("spec", "rules", "roleRef", "subjects", "data", "automountServiceAccountToken")
"""Fields that are compared; the cluster manages all others."""


class HealthStatus(StrEnum):
    """The result of one check."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"
    NOT_CHECKED = "not checked"
    """The check could not run; never a pass."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One line of `sweep cluster doctor`."""

    part: str
    """tools, repository, cluster, controller or storage."""
    check: str
    state: HealthStatus
    message: str = ""
    hint: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether the user has to do something."""
        return self.state in {HealthStatus.MISSING, HealthStatus.WRONG}


def check_object(desired: Manifest, observed: Manifest | None, *, nodes: int, apply: str) -> HealthFinding:
    """Return the finding for an object of the platform; `nodes` is the size of the largest pool, `apply` the hint."""
    what = object_title(desired)
    part = "storage" if str(desired["kind"]).startswith("PersistentVolume") else "cluster"
    if str(desired["apiVersion"]).partition("/")[0].endswith(tuple(own.domain for own in GITOPS.values())):
        part = "controller"
    if observed is None:
        return HealthFinding(part, what, HealthStatus.MISSING, "the cluster does not have it", apply)
    owner, other = (
        str((manifest["metadata"].get("annotations") or {}).get(OWNER_ANNOTATION, ""))
        for manifest in (desired, observed)
    )
    if owner and other and owner != other:
        hint = "before you apply anything, set another `namespace` and run `sweep cluster bootstrap`"
        return HealthFinding(part, what, HealthStatus.WRONG, f"it belongs to the repository {other}", hint)
    compared = [name for name in COMPARED_FIELDS if name in desired]
    pairs = [(desired[name], observed.get(name), name) for name in compared]
    labels, given = (manifest["metadata"].get("labels", {}) for manifest in (desired, observed))
    pairs.append(({ENFORCE: labels[ENFORCE]} if ENFORCE in labels else {}, given, "metadata.labels"))
    for difference in (text for pair in pairs for text in _compare(*pair)):
        return HealthFinding(part, what, HealthStatus.WRONG, difference, apply)
    return _by_kind(observed, part, nodes=nodes)


def _by_kind(manifest: Manifest, part: str, *, nodes: int) -> HealthFinding:
    what, message = object_title(manifest), ""
    match str(manifest["kind"]):
        case "Namespace":
            level = manifest["metadata"].get("labels", {}).get(ENFORCE)
            if level != RESTRICTED:
                details = f"{ENFORCE} is {level!r}, not {RESTRICTED!r}"
                hint = "set the label, because trials are untrusted code"
                return HealthFinding("cluster", what, HealthStatus.WRONG, details, hint)
            message = f"{RESTRICTED} enforced"
        case "PersistentVolumeClaim":
            return check_claim(manifest, nodes=nodes)
        case "PersistentVolume" if "nfs" in manifest.get("spec", {}):
            details = "whom its export maps root to cannot be seen from outside"
            hint = "`sweep cluster doctor --prove` writes as a trial would"
            return HealthFinding(part, what, HealthStatus.NOT_CHECKED, details, hint)
        case "CronJob":
            return _check_cron_job(manifest)
        case kind if kind in REPORTING and part == "controller":
            return _check_conditions(manifest, part)
    return HealthFinding(part, what, HealthStatus.OK, message)


def _check_cron_job(cron_job: Manifest) -> HealthFinding:
    """Return the finding for a CronJob, whose last ended run must have succeeded."""
    started = time_at(cron_job, "status", "lastScheduleTime")
    succeeded = time_at(cron_job, "status", "lastSuccessfulTime")
    what, name = object_title(cron_job), cron_job["metadata"]["name"]
    wrong = partial(HealthFinding, "cluster", what, HealthStatus.WRONG)
    if value_at(cron_job, "spec", "suspend"):
        return wrong("it is suspended", "set its spec.suspend to false")
    has_ended = started is not None and not value_at(cron_job, "status", "active")
    # The collector has a finding of its own, which says why a run failed.
    if not has_ended or name == COLLECTOR_ACCOUNT or (succeeded or 0) >= (started or 0):
        return HealthFinding("cluster", what, HealthStatus.OK)
    namespace = cron_job["metadata"]["namespace"]
    logs = f"kubectl --namespace {namespace} logs --selector={COMPONENT_LABEL}={name} --all-containers"
    return wrong("its last run failed", f"`{logs}` shows its output")


def check_claim(claim: Manifest, *, nodes: int) -> HealthFinding:
    """Return the finding for a claim, which must be bound, and which all nodes of its pods must be able to mount."""
    what = object_title(claim)
    wrong = partial(HealthFinding, "storage", what, HealthStatus.WRONG)
    phase = (claim.get("status") or {}).get("phase")
    modes = frozenset(claim.get("spec", {}).get("accessModes") or ())
    if nodes > 1 and not modes & SHARED_ACCESS_MODES:
        details = f"its access modes are {sorted(modes)}, but a pool has {nodes} nodes, of which only one can mount it"
        return wrong(details, "use a storage class with ReadWriteMany")
    if phase != "Bound":
        return wrong(
            f"its phase is {phase!r}, not 'Bound'",
            "run `kubectl describe` on it: no volume fits the claim yet, or its class waits for the first pod, which "
            "`sweep cluster doctor --prove` starts",
        )
    return HealthFinding("storage", what, HealthStatus.OK, ", ".join(sorted(modes)))


def object_title(manifest: Manifest) -> str:
    """Return kind, namespace and name of an object as text."""
    metadata = manifest["metadata"]
    namespace = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{manifest['kind']} {namespace}{metadata['name']}"


def _check_conditions(manifest: Manifest, part: str) -> HealthFinding:
    what, kind = object_title(manifest), str(manifest["kind"])
    good, bad = REPORTING[kind]
    message = ""
    if kind == "Application":
        status = manifest.get("status") or {}
        synced = (status.get("sync") or {}).get("status")
        is_ok = synced == "Synced"
        errors = [str(item.get("message", "")) for item in status.get("conditions") or ()]
        message = "" if synced is None else "; ".join([str(synced), *errors])
    else:
        wrong = next((name for name in bad if has_condition(manifest, name)), good)
        is_ok = wrong is None or (wrong == good and has_condition(manifest, wrong))
        if wrong is not None and condition(manifest, wrong):
            message = f"{wrong}: {condition(manifest, wrong).get('message', '')}"
    if is_ok:
        return HealthFinding(part, what, HealthStatus.OK)
    hint = "fix the reported error" if message else "install the controller"
    return HealthFinding(part, what, HealthStatus.WRONG, message or "no controller has processed it", hint)


def _compare(desired: Any, observed: Any, path: str) -> Iterator[str]:
    """Yield the differences; fields that the cluster added are ignored."""
    if isinstance(desired, Mapping) and isinstance(observed, Mapping):
        for name, value in desired.items():
            yield from _compare(value, observed.get(name), f"{path}.{name}")
    elif isinstance(desired, list) and isinstance(observed, list) and len(desired) == len(observed):
        for number, (desired_item, observed_item) in enumerate(zip(desired, observed, strict=True)):
            yield from _compare(desired_item, observed_item, f"{path}[{number}]")
    # The server omits empty values, and normalizes quantities.
    elif desired != observed and not (observed is None and desired in ({}, [], "", None, False, 0)):
        with suppress(ValueError, ArithmeticError, TypeError):
            if quantities.parse_quantity(desired) == quantities.parse_quantity(observed):
                return
        yield f"{path} must be {desired!r}, the cluster has {observed!r}"
