"""Nodes that a test loses: started for a pool, cut off with the trials that run on them, and given up."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.children import until
from tests.cluster.node import Node, Place
from tests.e2e.founding import Ground, load
from tests.e2e.pools import LABEL, TAINT
from tests.e2e.team import PATIENCE, Batch, Team

FIRST = "node-1"
"""The node that stays."""


def start_node(ground: Ground, number: int, room: str) -> Node:
    machine, place = ground.machine, Place(number)
    labels, taints = {f"{LABEL}-{room}": "yes"}, {TAINT: "NoSchedule"}
    made = Node(machine.folder / place.name, machine.children, machine.server, place, labels, taints)
    made.start()
    load(ground.images, made)
    return made


def running_pod(team: Team, batch: Batch) -> str:
    def runs() -> bool:
        return [pod["status"]["phase"] for pod in team.pods(batch)] == ["Running"]

    until(f"the trial of {batch.name} runs", runs, seconds=PATIENCE, pause=1)
    (pod,) = team.pods(batch)
    return str(pod["metadata"]["uid"])


@contextmanager
def given_up(ground: Ground, node: Node, room: str) -> Iterator[None]:
    """Delete a node for a block, in which the first node takes in the trials of its pool."""
    kubectl = ground.machine.server.kubectl
    kubectl("label", "node", FIRST, f"{LABEL}-{room}=yes")
    try:
        kubectl("delete", "node", node.place.name)
        yield
    finally:
        kubectl("delete", "node", node.place.name, "--ignore-not-found")
        kubectl("label", "node", FIRST, f"{LABEL}-{room}-")
