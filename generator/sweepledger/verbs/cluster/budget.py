"""Show each team's used, reserved and remaining budget."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli.options import BaseOption, MonthOption
from sweepledger.cli.response import Response
from sweepledger.cli.text.style import new_table
from sweepledger.commands.repository import at_commit, costs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.plan.budgets import Balance, BudgetUnit, Charge, balances, counts_towards
from sweepledger.plan.review import balance_as_data
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.structs.names import records_path, results_folder, split_batch_name
from sweepledger.structs.settings import Settings


def budget(workspace: Workspace, base: BaseOption = None, month: MonthOption = None) -> Response:
    shown = month_budget(workspace, base=base, month=month)
    return Response(shown.as_data(), tuple(_tables(shown)), shown.problems)


@dataclass(frozen=True)
class SweepShare:
    """What one sweep has used and reserved in a month."""

    sweep: str
    used: Charge
    reserved: Charge
    teams: tuple[str, ...]
    """The budgets that the sweep counts towards."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        charges = {"used": self.used, "reserved": self.reserved}
        amounts = {name: {"gpu_hours": each.gpu_hours, "money": each.money} for name, each in charges.items()}
        return {"sweep": self.sweep, "teams": self.teams, **amounts}


@dataclass(frozen=True)
class MonthBudget:
    """A month at a commit."""

    base: str | None
    ledger: costs.MonthLedger
    currency: str
    balances: tuple[Balance, ...]
    shares: tuple[SweepShare, ...]
    """Sweeps that used or reserved anything, by name."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return a warning for each batch with times that cannot be."""
        message = "a trial took more time than its attempts had, which is not charged, or reported a result in no time"
        hint = "`sweep show` shows the trial; it is charged at most what it was allowed: its timeout for each attempt"
        files = [
            f"{results_folder(named[0])}/{records_path(batch)}"
            for batch in self.ledger.doubtful
            if (named := split_batch_name(batch))  # only batches with records are charged
        ]
        return tuple(
            Problem(file, 0, 0, "", message, "times-absurd", hint, Severity.WARNING) for file in files
        )

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "base": self.base,
            "month": self.ledger.month,
            "currency": self.currency or None,
            "budgets": list(map(balance_as_data, self.balances)),
            "sweeps": [share.as_data() for share in self.shares],
            "unreadable": self.ledger.unread,
            "doubtful": self.ledger.doubtful,
            "reported": self.ledger.reported,
        }


def month_budget(workspace: Workspace, *, base: str | None = None, month: str | None = None) -> MonthBudget:
    """Return the budgets of a month. Raises UsageError for an invalid month or commit."""
    repository, commit = workspace.repository, workspace.base_commit(base)
    parsed = at_commit.read_settings(repository, commit)
    settings = parsed if isinstance(parsed, Settings) else workspace.settings
    ledger = costs.month_ledger(
        at_commit.SpecReader(repository, settings),
        commit,
        settings.teams.budgets,
        settings.trials.pools,
        costs.month_of(repository, commit, month),
        merged=batches.in_commit(repository, commit),
    )
    return MonthBudget(
        commit,
        ledger,
        settings.teams.currency,
        balances(settings.teams.budgets, used=ledger.used, reserved=ledger.reserved),
        _shares(ledger, settings),
    )


def _shares(ledger: costs.MonthLedger, settings: Settings) -> tuple[SweepShare, ...]:
    def total(charges: Iterable[Charge], sweep: str) -> Charge:
        own = [charge for charge in charges if charge.sweep == sweep]
        return Charge(sweep, sum(charge.gpu_hours for charge in own), sum(charge.money for charge in own))

    return tuple(
        SweepShare(
            sweep,
            total(ledger.used, sweep),
            total(ledger.reserved, sweep),
            tuple(
                team
                for team, budget in sorted(settings.teams.budgets.items())
                if counts_towards(budget, sweep)
            ),
        )
        for sweep in sorted({charge.sweep for charge in (*ledger.used, *ledger.reserved)})
    )


def _tables(budget: MonthBudget) -> Iterator[RenderableType]:
    if not budget.balances:
        yield "sweepledger.yaml has no budgets"
        return
    money = budget.currency or "money"
    teams = new_table(budget.ledger.month, "unit", "used", "reserved", "remaining", "limit")
    for balance in budget.balances:
        unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else money
        amounts = (balance.used, balance.reserved, balance.remaining, balance.limit)
        style = "red" if balance.remaining < 0 else None
        teams.add_row(balance.team, unit, *map(_amount_cell, amounts), style=style)
    yield teams
    if budget.shares:
        shares = new_table("sweep", "GPU hours", "reserved", money, "reserved")
        for share in budget.shares:
            used, reserved = share.used, share.reserved
            amounts = (used.gpu_hours, reserved.gpu_hours, used.money, reserved.money)
            shares.add_row(share.sweep, *map(_amount_cell, amounts))
        yield ""
        yield shares
    for batch in budget.ledger.unread:
        yield Text(f"{batch} does not contain its resources: no cost is counted", "yellow")
    for batch in budget.ledger.reported:
        yield Text(f"{batch}: some trials were not observed, and are charged by what they reported", "dim")


def _amount_cell(amount: float) -> str:
    return f"{amount:,.2f}"
