"""What a cluster that forbids GitOps gets: rendered objects, turned into ones that it names itself. Pure.

Its rules: a Job has `generateName`, a queue label, requests and limits in every container, and is deleted
some time after its end. None of that may stand in git, and kustomize cannot write it.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from generator.engine.cluster.kubectl import Manifest
from generator.structs.kinds import RUNNING
from generator.structs.labels import QUEUE_LABEL, TRIAL_LABEL

NAMED = frozenset({"ConfigMap", "TrainingRuntime"})
"""Kinds that others refer to by name: they keep theirs, which holds the batch's digest."""

TTL = "ttlSecondsAfterFinished"

MODEST = {"cpu": "100m", "memory": "128Mi"}
"""For a container that asks for nothing; those of trials say what they need."""

PER_INDEX = (1, 29)
"""Since then Indexed Jobs count failures for each index by itself."""


def project_queue(namespace: str) -> str:
    """Name the queue that a namespace has where a cluster gives each project one: EIDF's convention."""
    return f"{namespace}-user-queue"


def turned(manifest: Manifest, *, ttl: int, queue: str) -> dict[str, Any]:
    """Give a rendered object as the cluster wants it; what others refer to stays as it is."""
    made = copy.deepcopy(dict(manifest))
    if made["kind"] in NAMED:
        return made
    metadata = made["metadata"]
    metadata["generateName"] = f"{metadata.pop('name')}-"
    metadata["labels"] = {**metadata.get("labels", {})}
    metadata["labels"].setdefault(QUEUE_LABEL, queue)
    kind = RUNNING[made["kind"]]
    if kind.has_ttl:
        place = made
        for key in kind.policy:
            place = place.setdefault(key, {})
        place[TTL] = ttl
    for container in _containers(made["spec"]):
        _bound(container)
    return made


def trial_of(manifest: Manifest) -> str | None:
    """Name the one trial that an object runs; None where it runs all of its batch."""
    found = manifest["metadata"].get("labels", {}).get(TRIAL_LABEL)
    return None if found is None else str(found)


def kinds(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Name the resources under which the objects that run trials are listed."""
    return tuple(sorted({RUNNING[one["kind"]].resource for one in manifests if one["kind"] not in NAMED}))


def is_too_old(server: str, manifests: Iterable[Manifest]) -> bool:
    """Tell whether a server would drop what makes an Indexed Job count failures by index."""
    major, _, rest = server.removeprefix("v").partition(".")
    minor = rest.partition(".")[0].rstrip("+")
    is_old = major.isdigit() and minor.isdigit() and (int(major), int(minor)) < PER_INDEX
    return is_old and any("backoffLimitPerIndex" in one.get("spec", {}) for one in manifests)


def _containers(node: object) -> Iterator[dict[str, Any]]:
    """Find every container of every pod template below a node, whatever the kind."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in {"containers", "initContainers"} and isinstance(value, list):
                yield from value
            else:
                yield from _containers(value)
    elif isinstance(node, list):
        for item in node:
            yield from _containers(item)


def _bound(container: dict[str, Any]) -> None:
    resources = container.setdefault("resources", {})
    limits = {**MODEST, **resources.get("requests", {}), **resources.get("limits", {})}
    resources["limits"] = limits
    resources["requests"] = {**limits, **resources.get("requests", {})}
