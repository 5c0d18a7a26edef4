"""Samples for Kueue and priorities, from pools with queues; quotas are the platform team's to say."""

from generator.render.platform.names import Manifest, Names, manifest
from generator.structs import quantities
from generator.structs.labels import GPU_PRODUCT
from generator.structs.settings import Pool, Settings

GROUP = "kueue.x-k8s.io/v1beta1"
"""Served by every supported version; newer ones convert it."""

NODE_POOL = "sweepledger.dev/pool"
"""The label that nodes of a pool bear where neither its selector nor its GPU says more."""

PRIORITIES = {"low": -100, "normal": 0, "high": 100}
"""Behind the namespace: the classes are the cluster's, and two repositories may weigh differently."""

NO_BOUND = "1Ei"
"""Of scratch space: no setting bounds it, and Kueue starts no pod that asks for what its queue lacks."""


def objects(settings: Settings) -> list[Manifest]:
    """Make a flavor, a cluster queue and a local queue for each pool with a queue, and three priorities.

    A pool without `max_nodes` gets none: its quota would be a guess.
    """
    pools = [pool for _, pool in sorted(settings.pools.items()) if pool.queue and pool.max_nodes]
    if not pools:
        return []
    prefix = Names.of(settings).trials
    classes = [_priority(f"{prefix}-{name}", value, settings) for name, value in PRIORITIES.items()]
    return [made for pool in pools for made in _pool(pool, settings)] + classes


def priority_class(settings: Settings) -> list[Manifest]:
    """Make the class that settings name: as important as pods without one, and preempting nobody."""
    if settings.priority_class is None:
        return []
    return [
        manifest(
            "scheduling.k8s.io/v1/PriorityClass",
            settings.priority_class,
            settings,
            description="Trials of hyperparameter sweeps: they wait, and push nobody aside.",
            globalDefault=False,
            preemptionPolicy="Never",
            value=0,
        )
    ]


def _pool(pool: Pool, settings: Settings) -> list[Manifest]:
    names = Names.of(settings)
    shared = f"{names.trials}-{pool.name}"
    chosen = {"matchLabels": {"kubernetes.io/metadata.name": names.trials}}
    quota = _quota(pool)
    return [
        manifest(f"{GROUP}/ResourceFlavor", shared, settings, spec=_flavor(pool)),
        manifest(
            f"{GROUP}/ClusterQueue",
            shared,
            settings,
            spec={
                "namespaceSelector": chosen,
                "queueingStrategy": "BestEffortFIFO",
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [
                    {
                        "coveredResources": [amount["name"] for amount in quota],
                        "flavors": [{"name": shared, "resources": quota}],
                    }
                ],
            },
        ),
        manifest(
            f"{GROUP}/LocalQueue",
            str(pool.queue),
            settings,
            namespace=names.trials,
            spec={"clusterQueue": shared},
        ),
    ]


def _flavor(pool: Pool) -> Manifest:
    """Say which nodes: Kueue writes this into the pods when it lets them start."""
    labels = {GPU_PRODUCT: pool.gpu_type} if pool.gpu_type is not None else {NODE_POOL: pool.name}
    taint = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    return {"nodeLabels": labels, **({"tolerations": [taint]} if pool.node.gpu else {})}


def _quota(pool: Pool) -> list[Manifest]:
    nodes = pool.max_nodes or 0
    cpu = quantities.whole(pool.node.cpu, unit=1000) * nodes
    amounts = {
        "cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000),
        "memory": quantities.binary(quantities.whole(pool.node.memory) * nodes),
    }
    if pool.node.gpu:
        amounts[pool.gpu_resource] = str(pool.node.gpu * nodes)
    amounts["ephemeral-storage"] = NO_BOUND
    return [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]


def _priority(name: str, value: int, settings: Settings) -> Manifest:
    return manifest(
        f"{GROUP}/WorkloadPriorityClass",
        name,
        settings,
        value=value,
        description="Which sweep waits for which, within a queue.",
    )
