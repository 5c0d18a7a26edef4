"""What the new trials of a sweep take of their pool."""

import math
from dataclasses import dataclass

from generator.structs import placing
from generator.structs.settings import Pool
from generator.structs.sweep import Run, Sweep

SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Room:
    """Nodes of a pool, as trials fill them at full parallelism."""

    pool: Pool
    run: Run
    trials: int
    at_once: int
    """As many as the spec wants; fewer where the pool ends before."""
    nodes: int
    """For so many; never more than there are."""
    price: float | None
    """The most that these nodes can cost; None where the settings name no price."""


def room(sweep: Sweep, trials: int) -> Room | None:
    """Work out what trials take; None for a sweep that names no pool, or without trials."""
    run, pool = sweep.run, sweep.pool
    if pool is None or not trials:
        return None
    most = placing.most_at_once(run, pool)
    at_once = min(trials, run.parallelism, trials if most is None else most)
    wanted = placing.nodes(run, pool, trials)
    nodes = wanted if pool.max_nodes is None else min(wanted, pool.max_nodes)
    hours = run.timeout_seconds * (run.retries + 1) / SECONDS_AN_HOUR * math.ceil(trials / at_once)
    return Room(pool, run, trials, at_once, nodes, None if pool.price is None else pool.price * nodes * hours)
