"""Placement of a batch's pods: nodes, queue, priority, account and metadata, only as the settings allow."""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.batch_rules.allowed_keys import STEADY
from sweepledger.policy.batch_rules.identity import RUNTIME_KIND, BatchContext
from sweepledger.policy.objects import BATCH_MANIFEST, Finding, Object, Pod
from sweepledger.reader.messages import safe_json, safe_repr
from sweepledger.structs.kubernetes import JOB, MIN_PARALLELISM, PRIORITY_LABEL, QUEUE_LABEL, TRIAL_ACCOUNT
from sweepledger.structs.node_pool import (
    GPU_RESOURCE,
    TOKENS_VOLUME,
    PodSettings,
    Pool,
    topology_annotations,
    trial_fields,
)
from sweepledger.structs.settings import Settings

KEYS = (
    *("affinity", "nodeSelector", "resourceClaims", "runtimeClassName", "schedulerName", "tolerations"),
    "topologySpreadConstraints",
)
POOLS = "pools stand in sweepledger.yaml; a sweep names one as run.pool"


def check(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield nodes, queues or priorities that the settings do not allow."""
    own = obj.metadata.get("labels") or {}
    queue = own.get(QUEUE_LABEL)
    pools = tuple(trials.settings.trials.pools.values())
    if queue is not None and queue not in {pool.queue for pool in pools}:
        message = f"must be the queue of a pool of the settings, got {safe_repr(queue)}"
        yield Finding(("metadata", "labels", QUEUE_LABEL), message, BATCH_MANIFEST, POOLS)
        return
    if PRIORITY_LABEL in own and queue is None:
        message = f"must be absent without a queue, got {safe_repr(own[PRIORITY_LABEL])}"
        yield Finding(("metadata", "labels", PRIORITY_LABEL), message, BATCH_MANIFEST)
    least = (obj.metadata.get("annotations") or {}).get(MIN_PARALLELISM)
    allowed = {
        str(pool.min_parallelism)
        for pool in pools
        if pool.min_parallelism is not None and pool.queue == queue
    }
    if least is not None and (queue is None or least not in allowed):
        message = f"must be absent or as the pool of the settings has it, got {safe_repr(least)}"
        yield Finding(("metadata", "annotations", MIN_PARALLELISM), message, BATCH_MANIFEST, POOLS)
    if obj.kind != RUNTIME_KIND:  # the objects that start its pods have the queue
        pools = tuple(pool for pool in pools if pool.queue == queue)
    for pod in obj.pods:
        fitting = _fitting(pod, pools, queue)
        if fitting:
            templates = len(obj.pods) if obj.kind != JOB.kind else 0
            yield from _named(pod, fitting, templates, trials.settings)
        else:
            requested = _fields(pod) | _devices(pod)
            message = f"must ask for nodes as one pool of the settings does, got {safe_json(requested)}"
            yield Finding(pod.at, message, BATCH_MANIFEST, POOLS)


def _fitting(pod: Pod, pools: tuple[Pool, ...], queue: str | None) -> tuple[Pool | None, ...]:
    """Return the pools whose pods ask for nodes and devices as this one does; None stands for no pool."""
    fields, devices = _fields(pod), _devices(pod)
    is_plain = not fields and queue is None and devices.keys() <= {GPU_RESOURCE}
    return (*((None,) if is_plain else ()), *(pool for pool in pools if _fits(pool, fields, devices)))


def _fields(pod: Pod) -> dict[str, Any]:
    return {key: pod.spec[key] for key in KEYS if key in pod.spec}


def _devices(pod: Pod) -> dict[str, Any]:
    """Return the extended resources of a pod's containers, with the amounts of the last that has them."""
    return {
        name: amount
        for container in pod.containers
        for name, amount in ((container.data.get("resources") or {}).get("limits") or {}).items()
        if "/" in name
    }


def _fits(pool: Pool, fields: Mapping[str, Any], devices: Mapping[str, Any]) -> bool:
    own = {name: str(amount) for name, amount in devices.items() if name != pool.gpu_resource}
    wanted = {name: str(amount) for name, amount in pool.pod.resources.items()}
    return own == wanted and trial_fields(pool, has_gpus=pool.gpu_resource in devices) == fields


def _named(pod: Pod, pools: tuple[Pool | None, ...], templates: int, settings: Settings) -> Iterator[Finding]:
    """Yield what differs from the pod settings of each fitting pool: as one of them says, all must be.

    `templates`: the number of pod templates in the object of a distributed trial, otherwise 0.
    """
    differences = [
        (*_differences(pod, pool, settings), *_annotations(pod, pool, templates, settings)) for pool in pools
    ]
    if all(differences):
        yield from min(differences, key=len)


def _differences(pod: Pod, pool: Pool | None, settings: Settings) -> Iterator[Finding]:
    own, secret = PodSettings() if pool is None else pool.pod, settings.trials.image_pull_secret
    wanted = {
        "imagePullSecrets": None if secret is None else [{"name": secret}],
        "priorityClassName": own.priority_class or settings.trials.priority_class,
        "serviceAccountName": own.service_account or TRIAL_ACCOUNT,
    }
    for key, value in wanted.items():
        if pod.spec.get(key) != value:
            message = f"must be {safe_json(value)} as in the settings, got {safe_json(pod.spec.get(key))}"
            yield Finding((*pod.at, key), message, BATCH_MANIFEST)
    tokens = next((one for one in pod.volumes if one.get("name") == TOKENS_VOLUME), None)
    if tokens != own.token_volume:
        message = f"must have tokens as the pool of the settings has them, got {safe_json(tokens)}"
        yield Finding(pod.at, message, BATCH_MANIFEST)
    # A batch may be older than the pool's labels; none of another pool may stand in them.
    of_others = {
        name for other in settings.trials.pools.values() for name in other.pod.labels
    } - settings.trials.labels.keys()
    for key, value in (pod.metadata.get("labels") or {}).items():
        if key in of_others and own.labels.get(key) != value:
            message = f"must be absent or as the pool of the settings has it, got {safe_json(value)}"
            yield Finding((*pod.path, "metadata", "labels", key), message, BATCH_MANIFEST)


def _annotations(pod: Pod, pool: Pool | None, templates: int, settings: Settings) -> Iterator[Finding]:
    """Yield annotations of another pool; a batch may be older than those of its own."""
    bucket = settings.results.bucket
    own = {} if pool is None else {**pool.pod.annotations}
    if pool is not None and templates:
        own |= topology_annotations(pool, templates)
    own |= {} if bucket is None else bucket.pod_annotations
    for key, value in (pod.metadata.get("annotations") or {}).items():
        if key not in STEADY and own.get(key) != value:
            message = f"must be absent or as the pool of the settings has it, got {safe_json(value)}"
            yield Finding((*pod.path, "metadata", "annotations", key), message, BATCH_MANIFEST)
