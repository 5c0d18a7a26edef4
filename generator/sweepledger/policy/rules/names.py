"""Rules for names, labels and annotations, as the API server has them.

Also for a rendered set as a whole: objects are unique, and references name objects that exist.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.objects import Finding, Object
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.names import MAX_LABEL_LENGTH

NAME, LABEL = "name-invalid", "label-invalid"

DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
DNS_SUBDOMAIN = re.compile(rf"{DNS_LABEL.pattern}(?:\.{DNS_LABEL.pattern})*", re.ASCII)
LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
SUBDOMAIN_LENGTH = 253
ANNOTATION_BYTES = 256 * 1024


def check_names(obj: Object) -> Iterator[Finding]:
    """Yield the findings in names and labels of an object and of its pods."""
    yield from _name(obj)
    yield from _pairs(obj.metadata, ("metadata",))
    for pod in obj.pods:
        if pod.path:
            yield from _pairs(pod.metadata, (*pod.path, "metadata"))
        named = [(container.path, container.data.get("name")) for container in pod.containers]
        named += [((*pod.at, "volumes", index), each.get("name")) for index, each in enumerate(pod.volumes)]
        for path, name in named:
            if len(str(name)) > MAX_LABEL_LENGTH or DNS_LABEL.fullmatch(str(name)) is None:
                yield Finding((*path, "name"), f"must be a DNS-1123 label, got {safe_repr(name)}", NAME)
        containers = [container.data.get("name") for container in pod.containers]
        for container in pod.containers:
            if containers.count(container.data.get("name")) > 1:
                message = (
                    f"must be another container's name no more, got {safe_repr(container.data.get('name'))}"
                )
                yield Finding((*container.path, "name"), message, NAME)
        selector = pod.spec.get("nodeSelector") or {}
        yield from _labels(selector, (*pod.at, "nodeSelector"))


def _name(obj: Object) -> Iterator[Finding]:
    name, path = obj.name, ("metadata", "name")
    if "name" not in obj.metadata:
        if "generateName" not in obj.metadata:  # which another rule refuses
            yield Finding(("metadata",), "must have a name", NAME)
        return
    # A Job's name becomes a label of its pods.
    longest = MAX_LABEL_LENGTH if obj.kind == "Job" else SUBDOMAIN_LENGTH
    if DNS_SUBDOMAIN.fullmatch(name) is None:
        message = f"must be a DNS-1123 name, got {safe_repr(name)}"
        yield Finding(
            path, message, NAME, "lower-case letters, digits and dashes; begin and end with no dash"
        )
    elif len(name) > longest:
        yield Finding(path, f"must have at most {longest} characters, got {len(name)}", NAME)
    else:
        yield from _children(obj)


def _children(obj: Object) -> Iterator[Finding]:
    """Yield a finding if the names of pods, which contain their owner's name, would be too long."""
    child = max(_named_after(obj), key=len, default="")
    if len(child) > MAX_LABEL_LENGTH:
        message = f"must leave room: its {safe_repr(child)} would have {len(child)} characters of {MAX_LABEL_LENGTH}"
        yield Finding(("metadata", "name"), message, NAME, "shorten the name")


def _named_after(obj: Object) -> Iterator[str]:
    spec: Mapping[str, Any] = obj.data.get("spec") or {}
    match obj.kind:
        case "Job" if spec.get("completionMode") == "Indexed":
            yield f"{obj.name}-{max(_count(spec.get('completions')) - 1, 0)}"
        case "JobSet":
            for job in spec.get("replicatedJobs") or ():
                pods = _count(((job.get("template") or {}).get("spec") or {}).get("parallelism"))
                yield f"{obj.name}-{job.get('name')}-{_count(job.get('replicas')) - 1}-{pods - 1}"
        case "MPIJob" | "PyTorchJob" | "TFJob":
            for path, replicas in _replicas(spec):
                yield f"{obj.name}-{path.lower()}-{_count(replicas) - 1}"
        case "TrainJob":
            nodes = _count((spec.get("trainer") or {}).get("numNodes"))
            yield f"{obj.name}-node-0-{nodes - 1}"


def _replicas(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, specs in spec.items():
        if key.endswith("ReplicaSpecs") and isinstance(specs, Mapping):
            yield from ((name, (replica or {}).get("replicas")) for name, replica in specs.items())


def _count(value: Any) -> int:
    return value if type(value) is int else 1


def _pairs(metadata: Mapping[str, Any], at: DocumentPath) -> Iterator[Finding]:
    yield from _labels(metadata.get("labels") or {}, (*at, "labels"))
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        if not _is_key(key):
            yield Finding(
                (*at, "annotations", key), f"must be an annotation's key, got {safe_repr(key)}", LABEL
            )
    size = sum(len(f"{key}{value}".encode()) for key, value in annotations.items())
    if size > ANNOTATION_BYTES:
        message = f"must be at most {ANNOTATION_BYTES} bytes together, got {size}"
        yield Finding((*at, "annotations"), message, LABEL)


def _labels(labels: Mapping[str, Any], at: DocumentPath) -> Iterator[Finding]:
    for key, value in labels.items():
        if not _is_key(key):
            hint = (
                "an optional DNS prefix and a slash, then up to 63 letters, digits, dashes, dots, underscores"
            )
            yield Finding((*at, key), f"must be a label's key, got {safe_repr(key)}", LABEL, hint)
        if value and LABEL_NAME.fullmatch(str(value)) is None:
            message = (
                f"must be a label's value of at most {MAX_LABEL_LENGTH} characters, got {safe_repr(value)}"
            )
            hint = "letters, digits, dashes, dots and underscores; long or free text is an annotation"
            yield Finding((*at, key), message, LABEL, hint)


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    is_prefix = not slash or (len(prefix) <= SUBDOMAIN_LENGTH and DNS_SUBDOMAIN.fullmatch(prefix) is not None)
    return is_prefix and LABEL_NAME.fullmatch(name) is not None
