"""Placement of a batch's pods: nodes, queue and priority, only as the settings allow."""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.batch_rules.identity import RUNTIME_KIND, BatchContext
from sweepledger.policy.objects import Finding, Object, Pod
from sweepledger.reader.messages import safe_json, safe_repr
from sweepledger.structs.kubernetes import PRIORITY_LABEL, QUEUE_LABEL
from sweepledger.structs.node_pool import GPU_RESOURCE, Pool, scheduling_fields

CODE = "placement-not-ours"
KEYS = ("affinity", "nodeSelector", "tolerations")
POOLS = "pools stand in sweepledger.yaml; a sweep names one as run.pool"


def check(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield nodes, queues or priorities that the settings do not allow."""
    own = obj.metadata.get("labels") or {}
    queue = own.get(QUEUE_LABEL)
    pools = tuple(trials.settings.pools.values())
    if queue is not None and queue not in {pool.queue for pool in pools}:
        message = f"must be the queue of a pool of the settings, got {safe_repr(queue)}"
        yield Finding(("metadata", "labels", QUEUE_LABEL), message, CODE, POOLS)
        return
    if PRIORITY_LABEL in own and queue is None:
        message = f"must be absent without a queue, got {safe_repr(own[PRIORITY_LABEL])}"
        yield Finding(("metadata", "labels", PRIORITY_LABEL), message, CODE)
    if obj.kind != RUNTIME_KIND:  # the objects that start its pods have the queue
        pools = tuple(pool for pool in pools if pool.queue == queue)
    for pod in obj.pods:
        yield from _nodes(pod, pools, queue)
        yield from _named(pod, trials)


def _nodes(pod: Pod, pools: tuple[Pool, ...], queue: str | None) -> Iterator[Finding]:
    fields = {key: pod.spec[key] for key in KEYS if key in pod.spec}
    devices = {name for container in pod.containers for name in _limits(container.data) if "/" in name}
    is_plain = not fields and queue is None and devices <= {GPU_RESOURCE}
    if not is_plain and not any(_fits(pool, fields, devices) for pool in pools):
        requested = fields | dict.fromkeys(sorted(devices), "a device")
        message = f"must ask for nodes as one pool of the settings does, got {safe_json(requested)}"
        yield Finding(pod.at, message, CODE, POOLS)


def _limits(container: Mapping[str, Any]) -> Mapping[str, Any]:
    limits: Mapping[str, Any] = (container.get("resources") or {}).get("limits") or {}
    return limits


def _fits(pool: Pool, fields: Mapping[str, Any], devices: set[str]) -> bool:
    return devices <= {pool.gpu_resource} and scheduling_fields(pool, has_gpus=bool(devices)) == fields


def _named(pod: Pod, trials: BatchContext) -> Iterator[Finding]:
    secret, settings = trials.settings.image_pull_secret, trials.settings
    wanted = {
        "imagePullSecrets": None if secret is None else [{"name": secret}],
        "priorityClassName": settings.priority_class,
    }
    for key, value in wanted.items():
        if pod.spec.get(key) != value:
            message = f"must be {safe_json(value)} as in the settings, got {safe_json(pod.spec.get(key))}"
            yield Finding((*pod.at, key), message, CODE)
