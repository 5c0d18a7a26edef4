"""Show each team's used, reserved and remaining budget."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli.options import BaseOption, MonthOption
from sweepledger.cli.response import Response
from sweepledger.cli.text.style import new_table
from sweepledger.operations.repository import at_commit, costs
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.plan.budgets import Balance, BudgetUnit, Charge, balances, counts_towards
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.structs.names import records_path, results_folder, split_batch_name
from sweepledger.structs.settings import Settings


def budget(workspace: Workspace, base: BaseOption = None, month: MonthOption = None) -> Response:
    shown = month_budget(workspace, base=base, month=month)
    return Response(shown, tuple(_tables(shown)), tuple(_doubts(shown.doubtful)))


@dataclass(frozen=True, slots=True)
class Amounts:
    """Used or reserved amounts."""

    gpu_hours: float
    money: float


@dataclass(frozen=True)
class SweepShare:
    """What one sweep has used and reserved in a month."""

    sweep: str
    teams: tuple[str, ...]
    """The budgets that the sweep counts towards."""
    used: Amounts
    reserved: Amounts


@dataclass(frozen=True)
class MonthBudget:
    """A month at a commit."""

    base: str | None
    month: str
    currency: str | None
    budgets: tuple[Balance, ...]
    sweeps: tuple[SweepShare, ...]
    """Sweeps that used or reserved anything, by name."""
    unreadable: tuple[str, ...]
    """Batches without a readable lock, whose cost is unknown."""
    doubtful: tuple[str, ...]
    """Batches with times that cannot be."""
    reported: tuple[str, ...]
    """Batches with trials that are charged by what they reported."""


def month_budget(workspace: Workspace, *, base: str | None = None, month: str | None = None) -> MonthBudget:
    """Return the budgets of a month. Raises UsageError for an invalid month or commit."""
    repository, commit = workspace.repository, workspace.base_commit(base)
    parsed = at_commit.read_settings(repository, commit)
    settings = parsed if isinstance(parsed, Settings) else workspace.settings
    budgets = settings.teams.budgets
    specs, month = at_commit.SpecReader(repository, settings), costs.month_of(repository, commit, month)
    stored = batches.in_commit(repository, commit)
    ledger = costs.month_ledger(specs, commit, month, merged=stored)

    def total(charges: Iterable[Charge], sweep: str) -> Amounts:
        own = [charge for charge in charges if charge.sweep == sweep]
        return Amounts(sum(charge.gpu_hours for charge in own), sum(charge.money for charge in own))

    shares = tuple(
        SweepShare(
            sweep,
            tuple(team for team, budget in sorted(budgets.items()) if counts_towards(budget, sweep)),
            total(ledger.used, sweep),
            total(ledger.reserved, sweep),
        )
        for sweep in sorted({charge.sweep for charge in (*ledger.used, *ledger.reserved)})
    )
    return MonthBudget(
        commit,
        ledger.month,
        settings.teams.currency or None,
        balances(budgets, used=ledger.used, reserved=ledger.reserved),
        shares,
        ledger.unread,
        ledger.doubtful,
        ledger.reported,
    )


def _doubts(doubtful: Iterable[str]) -> Iterator[Problem]:
    message = (
        "a trial took more time than its attempts had, which is not charged, or reported a result in no time"
    )
    hint = "`sweep show` shows the trial; it is charged at most what it was allowed: its timeout for each attempt"
    for batch in doubtful:
        if named := split_batch_name(batch):  # only batches with records are charged
            file = f"{results_folder(named[0])}/{records_path(batch)}"
            yield Problem(file, 0, 0, "", message, "times-absurd", hint, Severity.WARNING)


def _tables(budget: MonthBudget) -> Iterator[RenderableType]:
    if not budget.budgets:
        yield "sweepledger.yaml has no budgets"
        return
    money = budget.currency or "money"
    teams = new_table(budget.month, "unit", "used", "reserved", "remaining", "limit")
    for balance in budget.budgets:
        unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else money
        amounts = (balance.used, balance.reserved, balance.remaining, balance.limit)
        style = "red" if balance.remaining < 0 else None
        teams.add_row(balance.team, unit, *(f"{amount:,.2f}" for amount in amounts), style=style)
    yield teams
    if budget.sweeps:
        shares = new_table("sweep", "GPU hours", "reserved", money, "reserved")
        for share in budget.sweeps:
            used, reserved = share.used, share.reserved
            amounts = (used.gpu_hours, reserved.gpu_hours, used.money, reserved.money)
            shares.add_row(share.sweep, *(f"{amount:,.2f}" for amount in amounts))
        yield ""
        yield shares
    for batch in budget.unreadable:
        yield Text(f"{batch} does not contain its resources: no cost is counted", "yellow")
    for batch in budget.reported:
        yield Text(f"{batch}: some trials were not observed, and are charged by what they reported", "dim")
