"""How a pod asks for the nodes of a pool, in Kubernetes' words: one text for who writes and who checks it."""

from typing import Any

from generator.structs.labels import GPU_PRODUCT
from generator.structs.settings import Pool

SPOT_TAINTS = (
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
"""What providers put on nodes that they may take away, beside what the pool's own tolerations bear."""


def placement(pool: Pool, *, has_gpus: bool) -> dict[str, Any]:
    """Choose nodes, unless a queue does; the type of a GPU is asked for in a form that queues read, too."""
    chosen: dict[str, Any] = {}
    if pool.gpu_type is not None and has_gpus:
        wanted = {"key": GPU_PRODUCT, "operator": "In", "values": [pool.gpu_type]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        chosen["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if pool.queue is None and pool.selector:
        chosen["nodeSelector"] = dict(sorted(pool.selector.items()))
    tolerations = _tolerations(pool)
    if pool.queue is None and tolerations:
        chosen["tolerations"] = tolerations
    return chosen


def _tolerations(pool: Pool) -> list[dict[str, Any]]:
    borne: list[dict[str, Any]] = []
    for toleration in pool.tolerations:
        any_value = toleration.value is None
        value = {} if any_value else {"value": toleration.value}
        operator = "Exists" if any_value else "Equal"
        borne.append({"key": toleration.key, "operator": operator, **value, "effect": toleration.effect})
    if pool.spot:
        known = {toleration.key for toleration in pool.tolerations}
        borne += [
            {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
            for key, value in SPOT_TAINTS
            if key not in known
        ]
    return borne
