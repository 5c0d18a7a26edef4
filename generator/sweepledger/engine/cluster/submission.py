"""Rendered objects, adapted to a cluster without GitOps whose rules forbid fixed names. Pure.

Its rules: a Job has `generateName`, a queue label, requests and limits in every container, and is deleted
some time after it has ended. None of that may be in git, and Kustomize cannot write it.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from sweepledger.structs.kubernetes import (
    QUEUE_LABEL,
    TRIAL_LABEL,
    WORKLOAD_KINDS_BY_NAME,
    Manifest,
    parse_server_version,
)

KEPT_NAME_KINDS = frozenset({"ConfigMap", "TrainingRuntime"})
"""Kinds that others refer to by name: they keep their names, which contain the batch's digest."""

TTL_FIELD = "ttlSecondsAfterFinished"

DEFAULT_LIMITS = {"cpu": "100m", "memory": "128Mi"}
"""For containers without requests; those of trials have them."""

PER_INDEX_VERSION = (1, 29)
"""The first version in which Indexed Jobs count failures per index."""


def project_queue(namespace: str) -> str:
    """Return the queue of a namespace on clusters with one queue per project, by EIDF's convention."""
    return f"{namespace}-user-queue"


def prepare_manifest(manifest: Manifest, *, ttl: int, queue: str) -> dict[str, Any]:
    """Return a rendered object adapted to the cluster; objects that others refer to are unchanged."""
    adapted = copy.deepcopy(dict(manifest))
    if adapted["kind"] in KEPT_NAME_KINDS:
        return adapted
    metadata = adapted["metadata"]
    metadata["generateName"] = f"{metadata.pop('name')}-"
    metadata["labels"] = {**metadata.get("labels", {})}
    metadata["labels"].setdefault(QUEUE_LABEL, queue)
    kind = WORKLOAD_KINDS_BY_NAME[adapted["kind"]]
    if kind.has_ttl:
        parent = adapted
        for key in kind.policy:
            parent = parent.setdefault(key, {})
        parent[TTL_FIELD] = ttl
    for container in _containers(adapted["spec"]):
        resources = container.setdefault("resources", {})
        limits = {**DEFAULT_LIMITS, **resources.get("requests", {}), **resources.get("limits", {})}
        resources["limits"] = limits
        resources["requests"] = {**limits, **resources.get("requests", {})}
    return adapted


def trial_of(manifest: Manifest) -> str | None:
    """Return the id of the trial that an object runs; None if it runs all trials of its batch."""
    trial = manifest["metadata"].get("labels", {}).get(TRIAL_LABEL)
    return None if trial is None else str(trial)


def resource_names(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the API resources of the workloads among some manifests."""
    kinds = {manifest["kind"] for manifest in manifests} - KEPT_NAME_KINDS
    return tuple(sorted({WORKLOAD_KINDS_BY_NAME[kind].resource for kind in kinds}))


def is_too_old(server: str, manifests: Iterable[Manifest]) -> bool:
    """Return whether a server would drop the field by which Indexed Jobs count failures per index."""
    version = parse_server_version(server)
    is_old = version is not None and version < PER_INDEX_VERSION
    return is_old and any("backoffLimitPerIndex" in manifest.get("spec", {}) for manifest in manifests)


def _containers(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in {"containers", "initContainers"} and isinstance(value, list):
                yield from value
            else:
                yield from _containers(value)
    elif isinstance(node, list):
        for item in node:
            yield from _containers(item)
