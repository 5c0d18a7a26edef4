"""Fake nodes by kwok: pods on them start at once and end well after a set time, and nothing runs there.

The API server, the scheduler and every controller are real; so this is for what they take, at a size that no
machine has room for. Real pods stay away by the nodes' taint, trials come by a pool of the settings.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sweepledger.formats import yaml
from tests.cluster import building
from tests.cluster.apiserver import tool
from tests.cluster.children import until
from tests.cluster.machine import Machine

NAME = "kwok"
MARK = "kwok.x-k8s.io/node"
"""Of a fake node: annotation, by which kwok knows its own, and taint."""
POOL_LABEL = "sweepledger.dev/pool"
"""As the generator's samples for Kueue have it: a queue's flavor chooses these nodes, too."""
LEASE_SECONDS = 20
"""Renewed four times as often; the node controller of a test is less patient than usual."""
READY_SECONDS = 180

CPU, MEMORY, PODS = "1000", "4Ti", "10000"
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat/node-heartbeat.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
ENDS = "pod-complete"

POOL = f"""
pools:
  fake:
    selector: {{{POOL_LABEL}: fake}}
    tolerations: [{{key: {MARK}, value: fake}}]
    node: {{cpu: {CPU}, memory: {MEMORY}}}
    max_nodes: 1000
"""
"""For the settings: a spec with `run.pool: fake` runs on these nodes alone."""


def start(machine: Machine, *, nodes: int = 10, seconds: float = 0, pool: str = "fake") -> None:
    """Start kwok and wait until its nodes are ready; pods of Jobs end so long after they started."""
    restart(machine, seconds=seconds)
    if nodes:
        add(machine, *(node(f"{pool}-{number:03}", pool) for number in range(nodes)))


def add(machine: Machine, *nodes: Mapping[str, Any]) -> None:
    before = _ready(machine)
    machine.server.apply(*nodes)
    count = before + len(nodes)
    until(f"{count} fake nodes are ready", lambda: _ready(machine) == count, seconds=READY_SECONDS)


def restart(machine: Machine, *, seconds: float, most: float | None = None) -> None:
    """Let pods take another time from now on, or any up to a longest. Raises NoClusterToolsError."""
    program = tool(building.KWOK, "kwok")
    machine.children.end(NAME)
    config = machine.folder / "kwok.yaml"
    config.write_text(yaml.dump(*_stages(program.parent / "stage", seconds, most or seconds)))
    machine.children.start(
        NAME,
        [
            str(program),
            f"--kubeconfig={machine.server.kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={MARK}=fake",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
        ],
    )


def node(name: str, pool: str, *, cpu: str = CPU, **labels: str) -> dict[str, Any]:
    """Make a node that is larger than any, unless its CPUs are given; further labels are of the domain example.org."""
    room = {"cpu": cpu, "memory": MEMORY, "pods": PODS, "ephemeral-storage": MEMORY}
    marks = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    marks |= {f"example.org/{label}": value for label, value in labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**marks, POOL_LABEL: pool}, "annotations": {MARK: "fake"}},
        "spec": {"taints": [{"key": MARK, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"allocatable": room, "capacity": room},
    }


def _stages(folder: Path, least: float, most: float) -> Iterable[dict[str, Any]]:
    """Read kwok's own stages; the end of a pod is put off."""
    for path in STAGES:
        for stage in yaml.load_all((folder / path).read_bytes()):
            if stage["metadata"]["name"] == ENDS and most:
                delay = {
                    "durationMilliseconds": int(least * 1000),
                    "jitterDurationMilliseconds": int(most * 1000),
                }
                stage["spec"]["delay"] = delay
            yield stage


def _ready(machine: Machine) -> int:
    assert machine.children.is_alive(NAME), f"{NAME} ended:\n{machine.children.tail(NAME)}"
    path = '{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
    chosen = ("--selector", POOL_LABEL, f"--output=jsonpath={path}")
    return machine.server.kubectl("get", "nodes", *chosen).stdout.split().count("True")
