"""`sweep cluster budget`: what each team has used and reserved in a month, and what remains. Reads only git."""

from collections import defaultdict
from dataclasses import dataclass

from sweepledger.commands.repository import at_commit, costs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.plan import Balance, Charge, balances, counts_towards
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.results.paths import records_path, results_folder
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.settings import Settings


@dataclass(frozen=True)
class SweepShare:
    """What one sweep has used and reserved in a month."""

    sweep: str
    used: Charge
    reserved: Charge
    teams: tuple[str, ...]
    """The budgets that the sweep counts towards."""


@dataclass(frozen=True)
class MonthBudget:
    """A month at a commit."""

    base: str | None
    month: str
    currency: str
    balances: tuple[Balance, ...]
    shares: tuple[SweepShare, ...]
    """Sweeps that used or reserved anything, by name."""
    unread: tuple[str, ...] = ()
    """Batches that cannot be read, and are not charged."""
    doubtful: tuple[str, ...] = ()
    """Batches whose trials took more time than they had, or reported a result in no time."""
    reported: tuple[str, ...] = ()
    """Batches with trials that were charged by what they reported, because nobody observed them."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return a warning for each batch with times that cannot be."""
        message = "a trial took more time than its attempts had, which is not charged, or reported a result in no time"
        hint = "`sweep show` shows the trial; it is charged at most what it was allowed: its timeout for each attempt"
        return tuple(
            Problem(_records_file(batch), 0, 0, "", message, "times-absurd", hint, Severity.WARNING)
            for batch in self.doubtful
        )


def budget(workspace: Workspace, *, base: str | None = None, month: str | None = None) -> MonthBudget:
    """Return the budgets of a month. Raises UsageError for an invalid month or commit."""
    repository, commit = workspace.repository, workspace.base_commit(base)
    parsed = at_commit.read_settings(repository, commit)
    settings = parsed if isinstance(parsed, Settings) else workspace.settings
    ledger = costs.month_ledger(
        repository,
        commit,
        settings,
        costs.month_of(repository, commit, month),
        merged=batches.in_commit(repository, commit),
    )
    return MonthBudget(
        commit,
        ledger.month,
        settings.currency,
        balances(settings.budgets, used=ledger.used, reserved=ledger.reserved),
        _shares(ledger, settings),
        ledger.unread,
        ledger.doubtful,
        ledger.reported,
    )


def _records_file(batch: str) -> str:
    named = split_batch_name(batch)
    assert named is not None, "only batches with records are charged"
    return f"{results_folder(named[0])}/{records_path(batch)}"


def _shares(ledger: costs.MonthLedger, settings: Settings) -> tuple[SweepShare, ...]:
    used: dict[str, list[Charge]] = defaultdict(list)
    reserved: dict[str, list[Charge]] = defaultdict(list)
    for charges, by_sweep in ((ledger.used, used), (ledger.reserved, reserved)):
        for entry in charges:
            by_sweep[entry.sweep].append(entry)
    return tuple(
        SweepShare(
            sweep,
            _total(sweep, used[sweep]),
            _total(sweep, reserved[sweep]),
            tuple(team for team, budget in sorted(settings.budgets.items()) if counts_towards(budget, sweep)),
        )
        for sweep in sorted({*used, *reserved})
    )


def _total(sweep: str, charges: list[Charge]) -> Charge:
    return Charge(sweep, sum(entry.gpu_hours for entry in charges), sum(entry.money for entry in charges))
