"""Namespaces for trials, collector and Flux, with what bounds them: quota, limits and a closed network."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import NAMESPACE_LABEL, Names, labels, manifest
from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import TRIALS_QUOTA
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.settings import DnsSettings

BASE = "namespace/v1/namespace.yaml"
DNS_POLICY = "allow-dns"
"""Name of the base's policy that opens DNS."""

MOST_OBJECTS = 5_000
"""Limits of Jobs and ConfigMaps: far above what people start, far below what harms an API server."""


def namespace(name: str, names: Names, dns: DnsSettings | None, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Fill in the frozen base: the namespace, its unused service account, and a network that is closed."""
    made = []
    for part in yaml.load_all(bases[BASE]):
        metadata: dict[str, Any] = dict(part["metadata"])
        metadata["labels"] = labels(names, **metadata.get("labels", {}))
        if part["kind"] == "Namespace":
            metadata["name"] = name
        else:
            metadata["namespace"] = name
        made.append({**part, "metadata": metadata})
        if metadata["name"] == DNS_POLICY and dns is not None:
            made[-1]["spec"] = {**part["spec"], "egress": [_dns(dns)]}
    return made


def _dns(dns: DnsSettings) -> Manifest:
    servers: list[Manifest] = [{"ipBlock": {"cidr": cidr}} for cidr in dns.cidrs]
    if dns.namespace is not None:
        space = {"matchLabels": {NAMESPACE_LABEL: dns.namespace}}
        servers.append({"namespaceSelector": space, "podSelector": {"matchLabels": dict(dns.labels)}})
    return {"to": servers, "ports": [{"protocol": protocol, "port": dns.port} for protocol in ("UDP", "TCP")]}


def trials_bounds(names: Names, pools: Iterable[Pool], *, expires: bool) -> list[Manifest]:
    """Bound what all trials may have together, and what a container gets that asks for nothing."""
    place = names.trials
    quota, limits = {"hard": _quota(pools, expires=expires)}, {"limits": _limits(pools)}
    return [
        manifest("v1/ResourceQuota", TRIALS_QUOTA, names, namespace=place, spec=quota),
        manifest("v1/LimitRange", "sweep-trials", names, namespace=place, spec=limits),
    ]


QUOTA_RUNS = 8
"""How often the collector's namespace has room for its memory."""
SYNC_MEMORY = 2 * 1024**3
"""Bytes for the job that writes results to stores, twice: one that ends may still be there."""


def collector_bounds(names: Names, memory: str, *, syncs: bool) -> list[Manifest]:
    """Leave room for the collector, and for one pod of a person who looks after it."""
    place = names.collector
    room = str(QUOTA_RUNS * quantities.whole_quantity(memory) + (SYNC_MEMORY if syncs else 0))
    hard = {"pods": "4", "requests.cpu": "2", "requests.memory": room, "limits.memory": room}
    return [manifest("v1/ResourceQuota", "sweep-collector", names, namespace=place, spec={"hard": hard})]


def _quota(pools: Iterable[Pool], *, expires: bool) -> dict[str, str]:
    counted = {
        "count/configmaps": str(MOST_OBJECTS),
        "count/jobs.batch": str(MOST_OBJECTS),
        "count/cronjobs.batch": "1" if expires else "0",
        "count/deployments.apps": "0",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    return {**counted, **_capacity(pools)}


def _capacity(pools: Iterable[Pool]) -> dict[str, str]:
    """Return the capacity of all pools; empty if a pool has no maximum number of nodes."""
    known = [(pool, pool.max_nodes) for pool in pools]
    if not known or any(nodes is None for _, nodes in known):
        return {}
    cpu = memory = 0
    gpus = Counter[str]()
    for pool, nodes in known:
        cpu += quantities.whole_quantity(pool.node.cpu, unit=1000) * (nodes or 0)
        memory += quantities.whole_quantity(pool.node.memory) * (nodes or 0)
        gpus[pool.gpu_resource] += pool.node.gpu * (nodes or 0)
    requests = {"cpu": quantities.format_cpus(cpu), "memory": quantities.format_bytes(memory)}
    requests |= {name: str(count) for name, count in sorted(gpus.items()) if count}
    return {f"requests.{name}": amount for name, amount in requests.items()}


def _limits(pools: Iterable[Pool]) -> list[Manifest]:
    modest = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    container: Manifest = {"type": "Container", "defaultRequest": dict(modest), "default": dict(modest)}
    largest = _largest_node(pools)
    return [container, {"type": "Pod", "max": largest}] if largest else [container]


def _largest_node(pools: Iterable[Pool]) -> dict[str, str]:
    nodes = [pool.node for pool in pools]
    if not nodes:
        return {}
    return {
        "cpu": max((node.cpu for node in nodes), key=quantities.parse_quantity),
        "memory": max((node.memory for node in nodes), key=quantities.parse_quantity),
    }
