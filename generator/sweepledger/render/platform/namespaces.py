"""Namespaces for trials, collector and Flux, with what bounds them: quota, limits and a closed network."""

from collections.abc import Iterable, Mapping
from typing import Any

from generator.formats import yaml
from generator.render.platform.names import Manifest, Names, labels, manifest
from generator.structs import quantities
from generator.structs.settings import Pool, Settings

BASE = "namespace/v1/namespace.yaml"

MOST_OBJECTS = 5_000
"""Of Jobs, and of ConfigMaps: many times what a person would start, far below what hurts an API server."""


def namespace(name: str, settings: Settings, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Fill in the frozen base: the namespace, its unused service account, and a network that is closed."""
    made = []
    for part in yaml.load_all(bases[BASE]):
        metadata: dict[str, Any] = dict(part["metadata"])
        metadata["labels"] = labels(settings, **metadata.get("labels", {}))
        if part["kind"] == "Namespace":
            metadata["name"] = name
        else:
            metadata["namespace"] = name
        made.append({**part, "metadata": metadata})
    return made


def trials_bounds(settings: Settings) -> list[Manifest]:
    """Bound what all trials may have together, and what a container gets that asks for nothing."""
    place = Names.of(settings).trials
    return [
        manifest(
            "v1/ResourceQuota", "sweep-trials", settings, namespace=place, spec={"hard": _quota(settings)}
        ),
        manifest(
            "v1/LimitRange", "sweep-trials", settings, namespace=place, spec={"limits": _limits(settings)}
        ),
    ]


def collector_bounds(settings: Settings) -> list[Manifest]:
    """Leave room for the collector, and for one pod of a person who looks after it."""
    place = Names.of(settings).collector
    hard = {"pods": "4", "requests.cpu": "2", "requests.memory": "2Gi", "limits.memory": "2Gi"}
    return [
        manifest("v1/ResourceQuota", "sweep-collector", settings, namespace=place, spec={"hard": hard}),
    ]


def _quota(settings: Settings) -> dict[str, str]:
    counted = {
        "count/configmaps": str(MOST_OBJECTS),
        "count/jobs.batch": str(MOST_OBJECTS),
        "count/cronjobs.batch": "0" if settings.results.keep_days is None else "1",
        "count/deployments.apps": "0",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }
    return {**counted, **_capacity(settings.pools.values())}


def _capacity(pools: Iterable[Pool]) -> dict[str, str]:
    """Add up the nodes of all pools; nothing while one of them has no end."""
    known = list(pools)
    if not known or any(pool.max_nodes is None for pool in known):
        return {}
    cpu = sum(quantities.whole(pool.node.cpu, unit=1000) * (pool.max_nodes or 0) for pool in known)
    memory = sum(quantities.whole(pool.node.memory) * (pool.max_nodes or 0) for pool in known)
    gpus: dict[str, int] = {}
    for pool in known:
        if pool.node.gpu:
            gpus[pool.gpu_resource] = gpus.get(pool.gpu_resource, 0) + pool.node.gpu * (pool.max_nodes or 0)
    asked = {"cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000), "memory": quantities.binary(memory)}
    asked |= {name: str(count) for name, count in sorted(gpus.items())}
    return {f"requests.{name}": amount for name, amount in asked.items()}


def _limits(settings: Settings) -> list[Manifest]:
    modest = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    container: Manifest = {"type": "Container", "defaultRequest": dict(modest), "default": dict(modest)}
    largest = _largest_node(settings.pools.values())
    return [container, {"type": "Pod", "max": largest}] if largest else [container]


def _largest_node(pools: Iterable[Pool]) -> dict[str, str]:
    nodes = [pool.node for pool in pools]
    if not nodes:
        return {}
    return {
        "cpu": max((node.cpu for node in nodes), key=quantities.parse),
        "memory": max((node.memory for node in nodes), key=quantities.parse),
    }
