"""Karpenter in the box: its controller as a process, with the provider whose nodes kwok simulates.

What differs from an installation: no Deployment, the rights of the administrator, and no instance runs. A node
registers after a set time, as if an instance had booted.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sweepledger.formats import yaml
from sweepledger.operations.repository.workspace import parse_settings
from sweepledger.structs import quantities
from sweepledger.structs.node_pool import Pool
from tests.cluster import building, controller_files, fleet, kueue, kwok
from tests.cluster.apiserver import tool
from tests.cluster.fleet import Fleet
from tests.cluster.machine import Machine

EXAMPLE = Path(__file__).parents[2] / "examples/pools"

NAME = "karpenter"
METRICS, HEALTH = 9643, 9644
"""Fixed, and nobody's default."""
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
KUBELET = {"cpu": 100, "memory": 10 * 1024**2}
"""What the provider keeps of each node: thousandths of a core, bytes."""
PODS = "110"
INSTANCE_TYPE, CAPACITY_TYPE = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"
POOL_LABEL = "karpenter.sh/nodepool"
"""Of nodes and claims."""
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"

Manifest = dict[str, Any]


def start(
    machine: Machine, node_pools: Iterable[Manifest], pools: Mapping[str, Pool], *, boot_seconds: int = 0
) -> None:
    """Start Karpenter with node pools, whose capacity and price are those of the pools of the same names.

    kwok must run already. Raises NoClusterToolsError.
    """
    program = tool(building.KARPENTER, NAME)
    for part in ("core", "provider"):
        machine.server.define(program.parent / "crds" / part, ("",))
    placed = [_placed(node_pool) for node_pool in node_pools]
    folder = machine.folder / NAME
    folder.mkdir()
    types = folder / "instance-types.json"
    types.write_text(json.dumps([_instance_type(one, pools[one["metadata"]["name"]]) for one in placed]))
    machine.children.start(
        NAME,
        [
            str(program),
            f"--instance-types-file-path={types}",
            f"--metrics-port={METRICS}",
            f"--health-probe-port={HEALTH}",
            "--disable-leader-election=true",
        ],
        env={"KUBECONFIG": str(machine.server.kubeconfig)},
    )
    controller_files.until_ready(machine, NAME, f"http://127.0.0.1:{HEALTH}/readyz")
    machine.server.apply(_node_class(boot_seconds), *placed)


def start_fleet(machine: Machine, follower: str | None, *, boot_seconds: int) -> Fleet:
    """Start a team with the pools of `examples/pools`, behind queues of Kueue, on nodes of Karpenter.

    Nodes boot in a time of their own, which is the start-up in the settings.
    """
    kueue.start(machine)
    pools = yaml.load((EXAMPLE / "sweepledger.yaml").read_text())["pools"] | yaml.load(kwok.POOL)["pools"]
    startup = {"startup": f"{boot_seconds}s"}
    text = yaml.dump({"pools": {name: pool | startup for name, pool in pools.items()}})
    made = fleet.start_fleet(machine, follower, pool=text)
    machine.server.apply(*yaml.load_all((made.team.root / "clusters/optional/kueue.yaml").read_bytes()))
    settings = parse_settings((made.team.root / "sweepledger.yaml").read_bytes())
    start(machine, node_pools(), settings.trials.pools, boot_seconds=boot_seconds)
    return made


def node_pools() -> list[Manifest]:
    return [dict(item) for item in yaml.load_all((EXAMPLE / "karpenter.yaml").read_bytes())]


def claims(machine: Machine) -> list[Manifest]:
    return controller_files.objects(machine, "nodeclaims.karpenter.sh")


def _node_class(boot_seconds: int) -> Manifest:
    return {
        "apiVersion": f"{NODE_CLASS['group']}/v1alpha1",
        "kind": NODE_CLASS["kind"],
        "metadata": {"name": NODE_CLASS["name"]},
        "spec": {"nodeRegistrationDelay": f"{boot_seconds}s"},
    }


def _placed(node_pool: Manifest) -> Manifest:
    """Replace the class of nodes of a real provider: nothing else differs from what a platform team applies."""
    template = node_pool["spec"]["template"]
    spec = template["spec"] | {"nodeClassRef": NODE_CLASS}
    return node_pool | {"spec": node_pool["spec"] | {"template": template | {"spec": spec}}}


def _instance_type(node_pool: Manifest, pool: Pool) -> Manifest:
    """Describe the only instance type of a node pool, which gives pods what the settings say."""
    required = {item["key"]: item["values"] for item in node_pool["spec"]["template"]["spec"]["requirements"]}
    (name,), (capacity_type,) = required[INSTANCE_TYPE], required[CAPACITY_TYPE]
    resources = {
        "cpu": f"{quantities.whole_quantity(pool.node.cpu, unit=1000) + KUBELET['cpu']}m",
        "memory": str(quantities.whole_quantity(pool.node.memory) + KUBELET["memory"]),
        "ephemeral-storage": "1Ti",
        "pods": PODS,
    }
    if pool.node.gpu:
        resources[pool.gpu_resource] = str(pool.node.gpu)
    offered = {CAPACITY_TYPE: capacity_type, "topology.kubernetes.io/zone": "zone-a"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in offered.items()]
    return {
        "name": name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
        "offerings": [{"Price": pool.price or 0.0, "Available": True, "Requirements": requirements}],
    }
