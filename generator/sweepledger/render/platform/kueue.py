"""Samples for Kueue and priorities, from pools with queues; quotas are the platform team's to say."""

from collections.abc import Mapping, Sequence

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import NAMESPACE_LABEL, Names, manifest
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import DOMAIN, GPU_PRODUCT_LABEL
from sweepledger.structs.node_pool import Pool, Provisioning, tolerations_of

GROUP = "kueue.x-k8s.io/v1beta1"
"""Served by every supported version; newer ones convert it."""

CHECK = "kueue.x-k8s.io/v1beta2/AdmissionCheck"
"""Served by every supported version, too. Of `v1beta1`, Kueue 0.15 accepts no second server-side apply."""

PROVISIONING = "kueue.x-k8s.io/provisioning-request"
"""The controller of checks that ask an autoscaler for nodes."""

NODE_POOL = f"{DOMAIN}/pool"
"""The label of a pool's nodes, if the pool has neither a selector nor a GPU type."""

PRIORITIES = {"low": -100, "normal": 0, "high": 100}
"""Behind the namespace: the classes are the cluster's, and two repositories may weigh differently."""

NO_BOUND = "1Ei"
"""Quota of what no setting limits, such as scratch space: Kueue starts no pod that requests a resource without one."""


def objects(names: Names, pools: Mapping[str, Pool], collector_pool: str | None) -> list[Manifest]:
    """Return what Kueue needs for each pool with a queue, and three priorities.

    A pool has a flavor, a cluster queue and a local queue, with the topology and the admission check of its settings;
    that of the collector has a local queue in the collector's namespace, too.

    A pool without `max_nodes` gets none: its quota would be a guess. Pools of a cohort on the same nodes have one
    flavor, with the tolerations of all of them: Kueue lends quota of a flavor only to queues that have this flavor.
    A flavor that the settings name is there, and so is its cohort, which queues of other repositories join.
    """
    queued = [pool for _, pool in sorted(pools.items()) if pool.queue and pool.max_nodes]
    if not queued:
        return []
    prefix = names.trials
    classes = [
        manifest(
            f"{GROUP}/WorkloadPriorityClass",
            f"{prefix}-{name}",
            names,
            value=value,
            description="Which sweep waits for which, within a queue.",
        )
        for name, value in PRIORITIES.items()
    ]
    sharing: dict[str, list[Pool]] = {}
    for pool in queued:
        sharing.setdefault(_nodes(pool), []).append(pool)
    objects: list[Manifest] = []
    for pool in queued:
        same = sharing[_nodes(pool)]
        flavor = pool.flavor or f"{prefix}-{same[0].name}"
        if pool is same[0] and pool.flavor is None:
            spec, levels = _flavor(same), () if pool.topology is None else pool.topology.levels
            if levels:
                nodes = [{"nodeLabel": level} for level in levels]
                objects.append(manifest(f"{GROUP}/Topology", flavor, names, spec={"levels": nodes}))
                spec = {**spec, "topologyName": flavor}
            objects.append(manifest(f"{GROUP}/ResourceFlavor", flavor, names, spec=spec))
        if pool.provisioning is not None:
            objects += _check(f"{prefix}-{pool.name}", pool.provisioning, names)
        objects += _queues(pool, flavor, names, collector_pool)
    return objects + classes


def priority_class(names: Names, name: str | None) -> list[Manifest]:
    """Return the priority class of the settings: as important as pods without one, and never preempting."""
    if name is None:
        return []
    return [
        manifest(
            "scheduling.k8s.io/v1/PriorityClass",
            name,
            names,
            description="Trials of hyperparameter sweeps: they wait, and push nobody aside.",
            globalDefault=False,
            preemptionPolicy="Never",
            value=0,
        )
    ]


def _queues(pool: Pool, flavor: str, names: Names, collector_pool: str | None) -> list[Manifest]:
    shared = f"{names.trials}-{pool.name}"
    places = [names.trials, *([names.collector] if collector_pool == pool.name else [])]
    chosen: Manifest = {"matchLabels": {NAMESPACE_LABEL: names.trials}}
    if len(places) > 1:
        chosen = {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": places}]}
    quota, kind = _quota(pool), f"{GROUP}/LocalQueue"
    checks = {"admissionChecks": [{"name": shared}]}
    covered, flavored = [amount["name"] for amount in quota], {"name": flavor, "resources": quota}
    return [
        manifest(
            f"{GROUP}/ClusterQueue",
            shared,
            names,
            spec={
                "namespaceSelector": chosen,
                "queueingStrategy": "BestEffortFIFO",
                **_sharing(pool, names),
                **({"admissionChecksStrategy": checks} if pool.provisioning else {}),
                "resourceGroups": [{"coveredResources": covered, "flavors": [flavored]}],
            },
        ),
        *(
            manifest(kind, str(pool.queue), names, namespace=place, spec={"clusterQueue": shared})
            for place in places
        ),
    ]


def _sharing(pool: Pool, names: Names) -> Manifest:
    """Return whom a queue preempts, and with which queues it shares what is unused: lent amounts are taken back."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    if pool.cohort is None:
        return {"preemption": preemption}
    return {
        "cohort": f"{names.trials}-{pool.cohort}" if pool.flavor is None else pool.cohort,
        "preemption": {**preemption, "reclaimWithinCohort": "Any"},
    }


def _check(name: str, provisioning: Provisioning, names: Names) -> list[Manifest]:
    """Return the check that a queue makes before it admits a workload, and what it requests of the autoscaler."""
    retries = {} if provisioning.retries is None else {"backoffLimitCount": provisioning.retries}
    selector = [
        {"key": label, "valueFromProvisioningClassDetail": detail}
        for label, detail in sorted(provisioning.selector.items())
    ]
    config = {
        "provisioningClassName": provisioning.provisioning_class,
        **({"parameters": dict(sorted(provisioning.parameters.items()))} if provisioning.parameters else {}),
        **({"podSetUpdates": {"nodeSelector": selector}} if selector else {}),
        **({"retryStrategy": retries} if retries else {}),
    }
    kind = "ProvisioningRequestConfig"
    reference = {"apiGroup": GROUP.partition("/")[0], "kind": kind, "name": name}
    return [
        manifest(f"{GROUP}/{kind}", name, names, spec=config),
        manifest(CHECK, name, names, spec={"controllerName": PROVISIONING, "parameters": reference}),
    ]


def _nodes(pool: Pool) -> str:
    """Return a text that pools of one cohort have in common if their nodes are the same."""
    levels = () if pool.topology is None else pool.topology.levels
    whose = pool.name if pool.cohort is None else f"cohort {pool.cohort}"
    return repr((pool.flavor, whose, _node_labels(pool), tolerations_of(pool), levels))


def _node_labels(pool: Pool) -> dict[str, str]:
    labels = dict(sorted(pool.selector.items()))
    if pool.gpu_type is not None:
        labels[GPU_PRODUCT_LABEL] = pool.gpu_type
    return labels or {NODE_POOL: pool.name}


def _flavor(pools: Sequence[Pool]) -> Manifest:
    """Return node labels and tolerations of pools on the same nodes, which Kueue adds to pods when it starts them."""
    tolerations = tolerations_of(pools[0])
    known = {toleration["key"] for toleration in tolerations}
    # What vendors put on their nodes, whatever slices of a GPU these offer.
    taints = {f"{pool.gpu_resource.partition('/')[0]}/gpu" for pool in pools if pool.node.gpu}
    tolerations += [
        {"key": taint, "operator": "Exists", "effect": "NoSchedule"} for taint in sorted(taints - known)
    ]
    return {"nodeLabels": _node_labels(pools[0]), **({"tolerations": tolerations} if tolerations else {})}


def _quota(pool: Pool) -> list[Manifest]:
    nodes = pool.max_nodes or 0
    cpu = quantities.whole_quantity(pool.node.cpu, unit=1000) * nodes
    amounts = {
        "cpu": quantities.format_cpus(cpu),
        "memory": quantities.format_bytes(quantities.whole_quantity(pool.node.memory) * nodes),
    }
    if pool.node.gpu:
        amounts[pool.gpu_resource] = str(pool.node.gpu * nodes)
    amounts["ephemeral-storage"] = NO_BOUND
    amounts.update(dict.fromkeys(sorted(pool.pod.resources), NO_BOUND))
    return [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
