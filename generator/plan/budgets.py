"""Budgets of teams: what a month has used up, what is promised, what is left. Arithmetic, and no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from generator.plan.forecast import price_an_hour
from generator.structs.settings import Allowance, Pool
from generator.structs.sweep import Run

SECONDS_AN_HOUR = 3600


class Unit(StrEnum):
    """What a budget counts."""

    GPU_HOURS = "gpu_hours"
    MONEY = "money"


@dataclass(frozen=True, slots=True)
class Charge:
    """What trials of a sweep use up."""

    sweep: str
    gpu_hours: float
    money: float

    def of(self, unit: Unit) -> float:
        """Give it in one unit."""
        return self.gpu_hours if unit is Unit.GPU_HOURS else self.money


@dataclass(frozen=True, slots=True)
class Balance:
    """One limit of a team, and what stands against it."""

    team: str
    unit: Unit
    limit: float
    used: float
    """By attempts that ended in the month."""
    promised: float
    """At most, to active batches, whenever they end."""
    asked: float = 0.0
    """At most, by what is about to be merged."""

    @property
    def left(self) -> float:
        """What nobody has used up and nobody was promised."""
        return self.limit - self.used - self.promised - self.asked

    @property
    def is_exceeded(self) -> bool:
        """Tell whether what is asked for finds no room; what asks for nothing exceeds nothing."""
        return self.asked > 0 and self.left < 0


def charge(sweep: str, run: Run, pool: Pool | None, seconds: float) -> Charge:
    """Charge a sweep for so many seconds of single trials."""
    hours = seconds / SECONDS_AN_HOUR
    return Charge(sweep, hours * run.resources.gpu * run.nodes, hours * (price_an_hour(run, pool) or 0.0))


def promise(sweep: str, run: Run, pool: Pool | None, trials: int) -> Charge:
    """Charge the most that trials can take: every attempt of each lasts until its timeout.

    No forecast has a say here: an author who wants to be promised less lowers the timeout, which binds.
    """
    return charge(sweep, run, pool, trials * run.timeout_seconds * (run.retries + 1))


def balances(
    budgets: Mapping[str, Allowance],
    *,
    used: Iterable[Charge],
    promised: Iterable[Charge],
    asked: Iterable[Charge] = (),
) -> tuple[Balance, ...]:
    """Hold charges against every limit, in the order of the teams."""
    sums = [tuple(found) for found in (used, promised, asked)]
    return tuple(
        Balance(team, unit, limit, *(_sum(found, allowance, unit) for found in sums))
        for team, allowance in sorted(budgets.items())
        for unit, limit in ((Unit.GPU_HOURS, allowance.gpu_hours), (Unit.MONEY, allowance.money))
        if limit is not None
    )


def counts(allowance: Allowance, sweep: str) -> bool:
    """Tell whether a sweep counts towards a budget."""
    return any(fnmatchcase(sweep, pattern) for pattern in allowance.sweeps)


def _sum(charges: Iterable[Charge], allowance: Allowance, unit: Unit) -> float:
    return sum(one.of(unit) for one in charges if counts(allowance, one.sweep))
