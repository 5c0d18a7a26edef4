"""Upper bounds of what a sweep can use: its cost, the nodes of its pool, its further rounds."""

import math
from dataclasses import dataclass

from sweepledger.structs import node_pool
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """The nodes of a pool that trials use at full parallelism."""

    pool: Pool
    run: RunConfig
    trials: int
    at_once: int
    """Concurrent trials: the parallelism, or fewer if the pool is too small."""
    nodes: int
    """Nodes for the concurrent trials, at most the pool's."""
    price: float | None
    """Upper bound for the price of these nodes; None if the settings contain no price."""


def pool_usage(sweep: Sweep, trials: int) -> PoolUsage | None:
    """Compute the nodes that trials use; None without a pool or without trials."""
    run, pool = sweep.run, sweep.pool
    if pool is None or not trials:
        return None
    capacity = node_pool.max_concurrent_trials(run, pool)
    running = min(trials, run.pods_at_once(trials) * run.trials_per_pod)
    at_once = running if capacity is None else min(running, capacity)
    needed = node_pool.required_nodes(run, pool, trials)
    nodes = needed if pool.max_nodes is None else min(needed, pool.max_nodes)
    hours = run.max_trial_seconds / SECONDS_PER_HOUR * math.ceil(trials / at_once)
    price = None if pool.price is None else pool.price * nodes * hours
    return PoolUsage(pool, run, trials, at_once, nodes, price)


@dataclass(frozen=True, slots=True)
class PodDisk:
    """The bytes that a pod may write on its node."""

    total: int
    scratch: int
    """Those of its trials, copies of the code included."""
    copy: int
    """Those of one copy of the code; every trial has one."""


@dataclass(frozen=True, slots=True)
class RoundBounds:
    """Upper bounds for the rounds that a merge approves in addition to the existing ones."""

    size: int
    """Trials of one round, including replicates."""
    trials: int | None
    """None: no limit applies before results are known."""
    rounds: int | None
    """As for trials."""
    ahead: int = 1
    """Rounds that may run at the same time."""

    def trials_at_once(self, parallelism: int) -> int:
        """Return how many trials of all rounds may run at the same time; `parallelism` applies to each round."""
        return min(parallelism, self.size) * self.ahead


def round_bounds(sweep: Sweep, *, trials: int, rounds: int, max_trials: int | None = None) -> RoundBounds:
    """Bound what follows the existing trials and rounds, for a sweep whose rounds all have one size.

    `max_trials` is the number of all trials that its configurations or its limits allow.
    """
    given, cap = sweep.rounds, None if sweep.search is None else sweep.search.cap
    assert given is not None
    size = given.size * sweep.replicates
    remaining = [
        None if given.max is None else max(0, given.max - rounds) * size,
        None if cap is None else cap * sweep.replicates - trials,
        None if max_trials is None else max_trials - trials,
    ]
    least = min((max(0, bound) for bound in remaining if bound is not None), default=None)
    rounds_left = None if least is None else -(-least // size)
    return RoundBounds(size, least, rounds_left, given.ahead)


@dataclass(frozen=True, slots=True)
class Cost:
    """Upper bound for trials: every attempt of each lasts until its timeout, disrupted ones as well."""

    trials: int
    trial_hours: float
    """Hours of single trials, one after the other."""
    gpu_hours: float
    wall_hours: float
    """Hours of wall-clock time at full parallelism, without disruptions."""


def cost(run: RunConfig, pool: Pool | None, trials: int) -> Cost:
    """Bound the cost of trials."""
    longest = run.max_trial_seconds / SECONDS_PER_HOUR
    hours, waves = trials * longest, math.ceil(trials / run.parallelism)
    wall_hours = waves * run.timeout_seconds * run.attempts / SECONDS_PER_HOUR
    return Cost(trials, hours, hours * node_pool.gpus_per_trial(run, pool), wall_hours)
