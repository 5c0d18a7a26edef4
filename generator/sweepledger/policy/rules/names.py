"""Names, labels and annotations: what the API server refuses only after the merge."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Object, Pod
from generator.reader.paths import Path
from generator.reader.shown import shown
from generator.structs.names import LABEL_LENGTH

NAME, LABEL = "name-invalid", "label-invalid"

DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
DNS_SUBDOMAIN = re.compile(rf"{DNS_LABEL.pattern}(?:\.{DNS_LABEL.pattern})*", re.ASCII)
PATH_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[^/%]+")
LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
SUBDOMAIN_LENGTH = 253
ANNOTATION_BYTES = 256 * 1024

LONGEST = {"CronJob": 52, "Job": LABEL_LENGTH, "Namespace": LABEL_LENGTH, "Service": LABEL_LENGTH}
"""A Job's name becomes a label of its pods; a CronJob adds eleven digits."""

RIGHTS = frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})
"""Their names are parts of a URL and nothing more."""


def check(thing: Object) -> Iterator[Finding]:
    """Check an object's own names and labels, and those within its pods."""
    yield from _name(thing)
    yield from _pairs(thing.metadata, ("metadata",))
    for pod in thing.pods:
        if pod.path:
            yield from _pairs(pod.metadata, (*pod.path, "metadata"))
        yield from _in_pod(pod)


def _name(thing: Object) -> Iterator[Finding]:
    name, path = thing.name, ("metadata", "name")
    if "name" not in thing.metadata:
        if "generateName" not in thing.metadata:  # which another rule refuses
            yield Finding(("metadata",), "must have a name", NAME)
        return
    if thing.kind in RIGHTS:
        if PATH_SEGMENT.fullmatch(name) is None:
            yield Finding(path, f"must be a name without / and %, got {shown(name)}", NAME)
        return
    longest = LONGEST.get(thing.kind, SUBDOMAIN_LENGTH)
    form = DNS_LABEL if thing.kind in {"Namespace", "Service"} else DNS_SUBDOMAIN
    if form.fullmatch(name) is None:
        message = f"must be a DNS-1123 {'label' if form is DNS_LABEL else 'name'}, got {shown(name)}"
        yield Finding(
            path, message, NAME, "lower-case letters, digits and dashes; begin and end with no dash"
        )
    elif len(name) > longest:
        yield Finding(path, f"must have at most {longest} characters, got {len(name)}", NAME)
    else:
        yield from _children(thing)


def _children(thing: Object) -> Iterator[Finding]:
    """Pods are named after their owner, and a name that is too long stops them one by one."""
    child = max(_named_after(thing), key=len, default="")
    if len(child) > LABEL_LENGTH:
        message = f"must leave room: its {shown(child)} would have {len(child)} characters of {LABEL_LENGTH}"
        yield Finding(("metadata", "name"), message, NAME, "shorten the name")


def _named_after(thing: Object) -> Iterator[str]:
    spec: Mapping[str, Any] = thing.data.get("spec") or {}
    match thing.kind:
        case "Job" if spec.get("completionMode") == "Indexed":
            yield f"{thing.name}-{max(_count(spec.get('completions')) - 1, 0)}"
        case "JobSet":
            for job in spec.get("replicatedJobs") or ():
                pods = _count(((job.get("template") or {}).get("spec") or {}).get("parallelism"))
                yield f"{thing.name}-{job.get('name')}-{_count(job.get('replicas')) - 1}-{pods - 1}"
        case "MPIJob" | "PyTorchJob" | "TFJob":
            for path, replicas in _replicas(spec):
                yield f"{thing.name}-{path.lower()}-{_count(replicas) - 1}"
        case "TrainJob":
            nodes = _count((spec.get("trainer") or {}).get("numNodes"))
            yield f"{thing.name}-node-0-{nodes - 1}"


def _replicas(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, specs in spec.items():
        if key.endswith("ReplicaSpecs") and isinstance(specs, Mapping):
            yield from ((name, (replica or {}).get("replicas")) for name, replica in specs.items())


def _count(value: Any) -> int:
    return value if type(value) is int else 1


def _in_pod(pod: Pod) -> Iterator[Finding]:
    named = [(container.path, container.data.get("name")) for container in pod.containers]
    named += [((*pod.at, "volumes", index), each.get("name")) for index, each in enumerate(pod.volumes)]
    for path, name in named:
        if len(str(name)) > LABEL_LENGTH or DNS_LABEL.fullmatch(str(name)) is None:
            yield Finding((*path, "name"), f"must be a DNS-1123 label, got {shown(name)}", NAME)
    containers = [container.data.get("name") for container in pod.containers]
    for container in pod.containers:
        if containers.count(container.data.get("name")) > 1:
            message = f"must be another container's name no more, got {shown(container.data.get('name'))}"
            yield Finding((*container.path, "name"), message, NAME)
    selector = pod.spec.get("nodeSelector") or {}
    yield from _labels(selector, (*pod.at, "nodeSelector"))


def _pairs(metadata: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    yield from _labels(metadata.get("labels") or {}, (*at, "labels"))
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        if not _is_key(key):
            yield Finding((*at, "annotations", key), f"must be an annotation's key, got {shown(key)}", LABEL)
    size = sum(len(f"{key}{value}".encode()) for key, value in annotations.items())
    if size > ANNOTATION_BYTES:
        message = f"must be at most {ANNOTATION_BYTES} bytes together, got {size}"
        yield Finding((*at, "annotations"), message, LABEL)


def _labels(labels: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    for key, value in labels.items():
        if not _is_key(key):
            hint = (
                "an optional DNS prefix and a slash, then up to 63 letters, digits, dashes, dots, underscores"
            )
            yield Finding((*at, key), f"must be a label's key, got {shown(key)}", LABEL, hint)
        if value and LABEL_NAME.fullmatch(str(value)) is None:
            message = f"must be a label's value of at most {LABEL_LENGTH} characters, got {shown(value)}"
            hint = "letters, digits, dashes, dots and underscores; long or free text is an annotation"
            yield Finding((*at, key), message, LABEL, hint)


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    is_prefix = not slash or (len(prefix) <= SUBDOMAIN_LENGTH and DNS_SUBDOMAIN.fullmatch(prefix) is not None)
    return is_prefix and LABEL_NAME.fullmatch(name) is not None
