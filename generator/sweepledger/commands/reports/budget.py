"""`sweep budget`: what each team has used up in a month, was promised, and has left. Reads git alone."""

from collections import defaultdict
from dataclasses import dataclass

from generator.commands import committed, spending
from generator.commands.workspace import Workspace
from generator.plan import Balance, Charge, balances, counts
from generator.repo import batches
from generator.structs.settings import Settings


@dataclass(frozen=True)
class Share:
    """What one sweep has of a month."""

    sweep: str
    used: Charge
    promised: Charge
    teams: tuple[str, ...]
    """The budgets that it counts towards."""


@dataclass(frozen=True)
class Spending:
    """A month, as a commit has it."""

    base: str | None
    month: str
    currency: str
    balances: tuple[Balance, ...]
    shares: tuple[Share, ...]
    """Of sweeps that used up anything, or were promised it; by name."""
    unread: tuple[str, ...] = ()
    """Batches that do not say what they ask for, and are charged nothing."""


def budget(workspace: Workspace, *, base: str | None = None, month: str | None = None) -> Spending:
    """Show the ledger of a month. Raises UsageError for what is no month or no commit."""
    repository, commit = workspace.repository, workspace.standing(base)
    chosen = committed.settings(repository, commit)
    settings = chosen if isinstance(chosen, Settings) else workspace.settings
    found = spending.ledger(
        repository,
        commit,
        settings,
        spending.month_of(repository, commit, month),
        standing=batches.in_commit(repository, commit),
    )
    return Spending(
        commit,
        found.month,
        settings.currency,
        balances(settings.budgets, used=found.used, promised=found.promised),
        _shares(found, settings),
        found.unread,
    )


def _shares(found: spending.Ledger, settings: Settings) -> tuple[Share, ...]:
    used: dict[str, list[Charge]] = defaultdict(list)
    promised: dict[str, list[Charge]] = defaultdict(list)
    for charges, by_sweep in ((found.used, used), (found.promised, promised)):
        for one in charges:
            by_sweep[one.sweep].append(one)
    return tuple(
        Share(
            sweep,
            _total(sweep, used[sweep]),
            _total(sweep, promised[sweep]),
            tuple(team for team, one in sorted(settings.budgets.items()) if counts(one, sweep)),
        )
        for sweep in sorted({*used, *promised})
    )


def _total(sweep: str, charges: list[Charge]) -> Charge:
    return Charge(sweep, sum(one.gpu_hours for one in charges), sum(one.money for one in charges))
