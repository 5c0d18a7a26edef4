"""Sample objects for Kueue and priorities, from pools with queues; the platform team decides the quotas."""

from collections.abc import Mapping, Sequence
from typing import Any

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import NAMESPACE_LABEL, from_base
from sweepledger.render.scheduling import tolerations_of
from sweepledger.structs.kubernetes import DOMAIN, GPU_PRODUCT_LABEL
from sweepledger.structs.node_pool import Pool, Provisioning, capacity
from sweepledger.structs.platform import Names

KUEUE = "platform/kueue/v1"
"""The folder of the files below `base/`."""

NODE_POOL = f"{DOMAIN}/pool"
"""The label of a pool's nodes, if the pool has neither a selector nor a GPU type."""

NO_BOUND = "1Ei"
"""A placeholder, the quota of what no setting bounds, such as scratch space: Kueue starts no pod that requests a
resource without one. `sweep cluster doctor` reports it until the platform team has written its own."""


def objects(
    names: Names, pools: Mapping[str, Pool], collector_pool: str | None, bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the objects that Kueue needs for each pool with a queue, and three priorities.

    A pool without `max_nodes` gets none: its quota would be a guess.
    """
    queued = [pool for _, pool in sorted(pools.items()) if pool.queue and pool.max_nodes]
    sharing: dict[str, list[Pool]] = {}
    for pool in queued:
        sharing.setdefault(_nodes(pool), []).append(pool)
    made = [
        manifest
        for pool in queued
        for words in [_words(pool, sharing[_nodes(pool)], names, is_collectors=collector_pool == pool.name)]
        for manifest in from_base(bases[f"{KUEUE}/pool.yaml"], names, words)
    ]
    return [*made, *from_base(bases[f"{KUEUE}/priorities.yaml"], names)] if made else []


def _words(pool: Pool, same: Sequence[Pool], names: Names, *, is_collectors: bool) -> dict[str, Any]:
    """Return the placeholder values of a pool; of pools on the same nodes, only the first makes the flavor."""
    has_flavor = pool is same[0] and pool.flavor is None
    levels = () if pool.topology is None else pool.topology.levels
    flavor, queue = pool.flavor or f"{names.trials}-{same[0].name}", f"{names.trials}-{pool.name}"
    amounts = capacity(pool) | dict.fromkeys(("ephemeral-storage", *sorted(pool.pod.resources)), NO_BOUND)
    chosen: Manifest = {"matchLabels": {NAMESPACE_LABEL: names.trials}}
    if is_collectors:
        spaces = [names.trials, names.collector]
        chosen = {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": spaces}]}
    return {
        "flavor": flavor,
        "if-flavor": {} if has_flavor else None,
        "if-topology": {} if has_flavor and levels else None,
        "levels": [{"nodeLabel": level} for level in levels],
        "topology": flavor if levels else None,
        "node-labels": node_labels(same[0]),
        "tolerations": _tolerations(same) or None,
        "queue": queue,
        "local-queue": pool.queue,
        "namespaces": chosen,
        "cohort": pool.cohort if pool.cohort is None or pool.flavor else f"{names.trials}-{pool.cohort}",
        "reclaim": None if pool.cohort is None else "Any",
        "checks": {"admissionChecks": [{"name": queue}]} if pool.provisioning else None,
        "resources": [*amounts],
        "quota": [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()],
        "if-collector": {} if is_collectors else None,
        **_provisioning(pool.provisioning),
    }


def priority_class(names: Names, name: str | None, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the priority class of the settings, if they name one."""
    content = bases[f"{KUEUE}/priority-class.yaml"]
    return [] if name is None else from_base(content, names, {"priority-class": name})


def _provisioning(provisioning: Provisioning | None) -> dict[str, Any]:
    if provisioning is None:
        return dict.fromkeys(("if-provisioning", "class", "parameters", "updates", "retries"))
    selector = [
        {"key": label, "valueFromProvisioningClassDetail": detail}
        for label, detail in sorted(provisioning.selector.items())
    ]
    return {
        "if-provisioning": {},
        "class": provisioning.provisioning_class,
        "parameters": dict(sorted(provisioning.parameters.items())) or None,
        "updates": {"nodeSelector": selector} if selector else None,
        "retries": None if provisioning.retries is None else {"backoffLimitCount": provisioning.retries},
    }


def _nodes(pool: Pool) -> str:
    """Return a text that is equal for pools of one cohort with the same nodes."""
    levels = () if pool.topology is None else pool.topology.levels
    whose = pool.name if pool.cohort is None else f"cohort {pool.cohort}"
    return repr((pool.flavor, whose, node_labels(pool), tolerations_of(pool), levels))


def node_labels(pool: Pool) -> dict[str, str]:
    """Return the labels that identify the nodes of a pool."""
    labels = dict(sorted(pool.selector.items()))
    if pool.gpu_type is not None:
        labels[GPU_PRODUCT_LABEL] = pool.gpu_type
    return labels or {NODE_POOL: pool.name}


def _tolerations(pools: Sequence[Pool]) -> list[Manifest]:
    tolerations = tolerations_of(pools[0])
    known = {toleration["key"] for toleration in tolerations}
    # What vendors put on their nodes, whatever slices of a GPU these offer.
    taints = {f"{pool.gpu_resource.partition('/')[0]}/gpu" for pool in pools if pool.node.gpu}
    return [
        *tolerations,
        *({"key": taint, "operator": "Exists", "effect": "NoSchedule"} for taint in sorted(taints - known)),
    ]
