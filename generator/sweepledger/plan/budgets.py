"""Team budgets: the amounts used, reserved and remaining in a month. Arithmetic only, no clock.

Also upper bounds for a sweep: its cost, the nodes of its pool, its further rounds.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from sweepledger.plan.forecast import hourly_price
from sweepledger.structs import node_pool
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings import TeamBudget
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
    """Bound the trials and rounds that follow the existing ones; all rounds have the same size.

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
    """Upper bound of the cost of trials, if every attempt lasts until its timeout, disrupted ones included."""

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


class BudgetUnit(StrEnum):
    """The unit of a budget's limit."""

    GPU_HOURS = "gpu_hours"
    MONEY = "money"


@dataclass(frozen=True, slots=True)
class Charge:
    """What trials of a sweep use."""

    sweep: str
    gpu_hours: float
    money: float


@dataclass(frozen=True, slots=True)
class Balance:
    """One limit of a team, and the charges against it."""

    team: str
    unit: BudgetUnit
    limit: float
    used: float
    """Charges for attempts that ended in the month."""
    reserved: float
    """Upper bound for active batches, whenever they end."""
    requested: float = 0.0
    """Upper bound for the batches of a change."""

    @property
    def remaining(self) -> float:
        """What is not used, reserved or requested."""
        return self.limit - self.used - self.reserved - self.requested

    @property
    def is_exceeded(self) -> bool:
        """Whether a request does not fit; a change that requests nothing exceeds no budget."""
        return self.requested > 0 and self.remaining < 0

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {**asdict(self), "remaining": self.remaining, "exceeded": self.is_exceeded}


def charge(sweep: str, run: RunConfig, pool: Pool | None, seconds: float) -> Charge:
    """Return the charge for a number of seconds of single trials."""
    hours = seconds / SECONDS_PER_HOUR
    return Charge(
        sweep, hours * node_pool.gpus_per_trial(run, pool), hours * (hourly_price(run, pool) or 0.0)
    )


def reservation(sweep: str, run: RunConfig, pool: Pool | None, trials: int, resumes: int = 0) -> Charge:
    """Return the upper bound of the time of trials, if every attempt, disrupted ones included, lasts until its timeout.

    After each resume of a paused batch, a trial may repeat an attempt.
    Forecasts do not matter: to reserve less, an author lowers the timeout, which is enforced.
    """
    return charge(sweep, run, pool, trials * (run.max_trial_seconds + resumes * run.timeout_seconds))


def balances(
    budgets: Mapping[str, TeamBudget],
    *,
    used: Iterable[Charge],
    reserved: Iterable[Charge],
    requested: Iterable[Charge] = (),
) -> tuple[Balance, ...]:
    """Return the balance of every limit, sorted by team."""
    charges = [tuple(part) for part in (used, reserved, requested)]
    return tuple(
        Balance(team, unit, limit, *(_sum(part, budget, unit) for part in charges))
        for team, budget in sorted(budgets.items())
        for unit, limit in ((BudgetUnit.GPU_HOURS, budget.gpu_hours), (BudgetUnit.MONEY, budget.money))
        if limit is not None
    )


def counts_towards(budget: TeamBudget, sweep: str) -> bool:
    """Return whether a sweep counts towards a budget."""
    return any(fnmatchcase(sweep, pattern) for pattern in budget.sweeps)


def _sum(charges: Iterable[Charge], budget: TeamBudget, unit: BudgetUnit) -> float:
    own = [charge for charge in charges if counts_towards(budget, charge.sweep)]
    return sum(charge.gpu_hours if unit is BudgetUnit.GPU_HOURS else charge.money for charge in own)
