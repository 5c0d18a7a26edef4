"""What a cluster holds against what the repository asks for: pure judgements, one object at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from generator.engine.cluster.kubectl import Manifest, conditions
from generator.structs import quantities

RESTRICTED = "restricted"
ENFORCE = "pod-security.kubernetes.io/enforce"
MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})

REPORTING: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "Application": (None, ()),  # its conditions are errors only; see _synced
    "AppProject": (None, ()),
    "ApplicationSet": ("ResourcesUpToDate", ("ErrorOccurred",)),
    "GitRepository": ("Ready", ()),
    "Kustomization": ("Ready", ()),
    "Receiver": ("Ready", ()),
}
"""Objects of controllers: the condition that is True when all is well, and those that must not be."""

SPECIFIED = ("spec", "rules", "roleRef", "subjects", "data", "automountServiceAccountToken")
"""Where an object says what it is for; the rest is the cluster's own."""


class State(StrEnum):
    """How one thing stands."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"
    NOT_CHECKED = "not checked"
    """It could not be looked at, which is no pass."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    part: str
    """tools, repository, cluster, controller or storage."""
    what: str
    state: State
    says: str = ""
    hint: str | None = None

    @property
    def is_fault(self) -> bool:
        """Tell whether something has to be done."""
        return self.state in {State.MISSING, State.WRONG}

    def as_data(self) -> dict[str, str | None]:
        """Give it as the envelope shows it."""
        return {
            "part": self.part,
            "what": self.what,
            "state": str(self.state),
            "says": self.says,
            "hint": self.hint,
        }


def judge(wanted: Manifest, found: Manifest | None, *, nodes: int, apply: str) -> Finding:
    """Judge an object of the platform's files; `nodes` is the most that one pool has, `apply` the way out."""
    part = _part(wanted)
    what = title(wanted)
    if found is None:
        return Finding(part, what, State.MISSING, "the cluster has none", apply)
    different = next(_differences(wanted, found), None)
    if different is not None:
        return Finding(part, what, State.WRONG, different, apply)
    return _by_kind(found, part, nodes=nodes)


def _by_kind(found: Manifest, part: str, *, nodes: int) -> Finding:
    what = title(found)
    match str(found["kind"]):
        case "Namespace":
            return _namespace(found)
        case "PersistentVolumeClaim":
            return claim(found, nodes=nodes)
        case "PersistentVolume" if "nfs" in found.get("spec", {}):
            says = "NFS with root_squash is not supported, and cannot be told from outside"
            hint = "`sweep doctor --prove` writes as a trial would"
            return Finding(part, what, State.NOT_CHECKED, says, hint)
        case "CronJob" if found.get("spec", {}).get("suspend"):
            return Finding(part, what, State.WRONG, "it is suspended", "set its spec.suspend to false")
        case kind if kind in REPORTING and part == "controller":
            return _reported(found, part)
    return Finding(part, what, State.OK)


def claim(found: Manifest, *, nodes: int) -> Finding:
    """Judge a claim: bound, and mountable wherever its pods may run."""
    what = title(found)
    phase = (found.get("status") or {}).get("phase")
    modes = frozenset(found.get("spec", {}).get("accessModes") or ())
    if nodes > 1 and not modes & MANY_NODES:
        says = (
            f"its access modes are {sorted(modes)}, and a pool has {nodes} nodes: one of them could mount it"
        )
        return Finding("storage", what, State.WRONG, says, "use a class that offers ReadWriteMany")
    if phase != "Bound":
        says = f"its phase is {phase!r}, not 'Bound'"
        return Finding(
            "storage", what, State.WRONG, says, "`kubectl describe` it: no volume fits its claim yet"
        )
    return Finding("storage", what, State.OK, ", ".join(sorted(modes)))


def title(manifest: Manifest) -> str:
    """Name an object for a person."""
    metadata = manifest["metadata"]
    place = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{manifest['kind']} {place}{metadata['name']}"


def _part(manifest: Manifest) -> str:
    group = str(manifest["apiVersion"]).partition("/")[0]
    if group.endswith(("fluxcd.io", "argoproj.io")):
        return "controller"
    return "storage" if str(manifest["kind"]).startswith("PersistentVolume") else "cluster"


def _namespace(found: Manifest) -> Finding:
    level = found["metadata"].get("labels", {}).get(ENFORCE)
    if level != RESTRICTED:
        says = f"{ENFORCE} is {level!r}, not {RESTRICTED!r}"
        hint = "label it; trials are strangers' code"
        return Finding("cluster", title(found), State.WRONG, says, hint)
    return Finding("cluster", title(found), State.OK, f"{RESTRICTED} enforced")


def _reported(found: Manifest, part: str) -> Finding:
    """Judge what a controller says of its own object."""
    if found["kind"] == "Application":
        return _synced(found, part)
    good, bad = REPORTING[str(found["kind"])]
    seen = conditions(found)
    what = title(found)
    for name in bad:
        if seen.get(name) == "True":
            return Finding(part, what, State.WRONG, _message(found, name), "mend what it says")
    if good is None or seen.get(good) == "True":
        return Finding(part, what, State.OK)
    if good not in seen:
        return Finding(part, what, State.WRONG, "no controller has looked at it", "install the controller")
    return Finding(part, what, State.WRONG, _message(found, good), "mend what it says")


def _synced(found: Manifest, part: str) -> Finding:
    """Judge an Application, which has conditions only for what went wrong."""
    status, what = found.get("status") or {}, title(found)
    synced = (status.get("sync") or {}).get("status")
    if synced == "Synced":
        return Finding(part, what, State.OK)
    if synced is None:
        return Finding(part, what, State.WRONG, "no controller has looked at it", "install the controller")
    told = [str(one.get("message", "")) for one in status.get("conditions") or ()]
    return Finding(part, what, State.WRONG, "; ".join([str(synced), *told]), "mend what it says")


def _message(found: Manifest, name: str) -> str:
    told = found["status"]["conditions"]
    return next(f"{name}: {one.get('message', '')}" for one in told if one.get("type") == name)


def _differences(wanted: Manifest, found: Manifest) -> Iterator[str]:
    for name in SPECIFIED:
        if name in wanted:
            yield from _compare(wanted[name], found.get(name), name)
    labels = {name: value for name, value in wanted["metadata"].get("labels", {}).items() if name == ENFORCE}
    yield from _compare(labels, found["metadata"].get("labels", {}), "metadata.labels")


def _compare(wanted: Any, found: Any, path: str) -> Iterator[str]:
    """Tell where what is asked for is not there; what the cluster added is no difference."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name, value in wanted.items():
            yield from _compare(value, found.get(name), f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _compare(one, other, f"{path}[{number}]")
    elif not _is_same(wanted, found):
        yield f"{path} must be {wanted!r}, the cluster has {found!r}"


def _is_same(wanted: Any, found: Any) -> bool:
    """Compare leaves: the server leaves out what is empty, and writes amounts and durations its own way."""
    if wanted == found or (found is None and wanted in ({}, [], "", None, False, 0)):
        return True
    try:
        return quantities.parse(wanted) == quantities.parse(found)
    except (ValueError, ArithmeticError, TypeError):
        return False
