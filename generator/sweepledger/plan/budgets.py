"""Team budgets: what a month has used, reserved and left. Arithmetic only, no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from sweepledger.plan.forecast import hourly_price
from sweepledger.structs import node_pool
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings import TeamBudget
from sweepledger.structs.values import SECONDS_PER_HOUR


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

    def amount(self, unit: BudgetUnit) -> float:
        """Return the amount in one unit."""
        return self.gpu_hours if unit is BudgetUnit.GPU_HOURS else self.money


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


def charge(sweep: str, run: RunConfig, pool: Pool | None, seconds: float) -> Charge:
    """Return the charge for a number of seconds of single trials."""
    hours = seconds / SECONDS_PER_HOUR
    return Charge(
        sweep, hours * node_pool.gpus_per_trial(run, pool), hours * (hourly_price(run, pool) or 0.0)
    )


def reservation(sweep: str, run: RunConfig, pool: Pool | None, trials: int, resumes: int = 0) -> Charge:
    """Return the upper bound for trials: every attempt of each lasts until its timeout, disrupted ones as well.

    After each resume of a paused batch, a trial may repeat an attempt.
    It ignores forecasts: to reserve less, an author lowers the timeout, which is enforced.
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
    return sum(charge.amount(unit) for charge in charges if counts_towards(budget, charge.sweep))
