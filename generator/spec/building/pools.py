"""The pools of the settings."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from generator.spec import units
from generator.structs.settings import GPU, Node, Pool, Toleration


def pool(name: str, data: Mapping[str, Any]) -> Pool:
    """Build a pool without problems."""
    price, most = data.get("price"), data.get("max_nodes")
    node = data["node"]
    made = Pool(
        name,
        Node(units.cores(node["cpu"]), units.memory(node["memory"]), int(node.get("gpu", 0))),
        queue=data.get("queue"),
        selector=MappingProxyType(dict(data.get("selector", {}))),
        tolerations=tuple(Toleration(**toleration) for toleration in data.get("tolerations", ())),
        gpu_resource=data.get("gpu_resource", GPU),
        gpu_type=data.get("gpu_type"),
        max_nodes=None if most is None else int(most),
        price=None if price is None else float(price),
        spot=data.get("spot", False),
    )
    return made if "startup" not in data else replace(made, startup_seconds=units.seconds(data["startup"]))
