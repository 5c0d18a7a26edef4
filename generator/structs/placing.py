"""How trials fit on the nodes of a pool: arithmetic with what each asks for, and no more.

What a cluster runs on a node besides is no part of it; the settings say what a node can give.
"""

from collections.abc import Iterator
from decimal import Decimal

from generator.structs import quantities
from generator.structs.settings import Node, Pool
from generator.structs.sweep import Run


def per_node(run: Run, node: Node) -> int:
    """Count the pods that one node can bear at the same time."""
    return min(int(there // asked) for _, asked, there in _amounts(run, node) if asked)


def lacking(run: Run, node: Node) -> Iterator[str]:
    """Name what a node has too little of for a single pod: `cpu`, `memory` or `gpu`."""
    return (name for name, asked, there in _amounts(run, node) if asked > there)


def nodes(run: Run, pool: Pool, trials: int) -> int:
    """Count the nodes that so many trials fill at full parallelism, whatever the pool has."""
    pods = min(trials, run.parallelism) * run.nodes
    return -(-pods // per_node(run, pool.node))


def most_at_once(run: Run, pool: Pool) -> int | None:
    """Count the trials that can run at once when all nodes are there; None where the pool names no end."""
    return None if pool.max_nodes is None else pool.max_nodes * per_node(run, pool.node) // run.nodes


def _amounts(run: Run, node: Node) -> tuple[tuple[str, Decimal, Decimal], ...]:
    resources = run.resources
    return (
        ("cpu", quantities.parse(resources.cpu), quantities.parse(node.cpu)),
        ("memory", quantities.parse(resources.memory), quantities.parse(node.memory)),
        ("gpu", quantities.parse(resources.gpu), quantities.parse(node.gpu)),
    )
