"""What a merge would start fits the budgets of the teams that it counts towards."""

from collections.abc import Iterator, Sequence

from generator.commands import recorded, spending
from generator.commands.checks.scene import Scene
from generator.commands.generate import Generated
from generator.commands.workspace import SETTINGS_FILE
from generator.plan import Balance, Unit, balances, counts, promise
from generator.problems import Problem
from generator.repo import files
from generator.repo.batches import StoredBatch
from generator.structs.settings import Generate, Settings

CODE = "budget-overdrawn"


def check(scene: Scene, planned: Sequence[Generated]) -> Iterator[Problem]:
    """Refuse new batches for which a budget has nothing left, by the settings that stand.

    What was recorded in the month counts, and the most that active batches can still take: whoever merges
    second is told what the first has taken.
    """
    settings = scene.settings if SETTINGS_FILE in scene.entries else scene.workspace.settings
    added = {batch.name for batch in scene.added}
    on_merge = settings.generate is Generate.ON_MERGE
    news = [one for one in planned if one.batch and (on_merge or one.batch.name in added)]
    if not settings.budgets or not news:
        return
    month = spending.month_of(scene.workspace.repository, scene.base, scene.month)
    for balance in _balances(scene, settings, news, month):
        if balance.is_exceeded:
            team = settings.budgets[balance.team]
            paths = (one.sweep.path for one in news if counts(team, one.sweep.name))
            yield _overdrawn(next(paths), balance, month, settings.currency)


def _balances(scene: Scene, settings: Settings, news: Sequence[Generated], month: str) -> tuple[Balance, ...]:
    here = {batch.name for batch in scene.present if batch.is_active}
    ledger = spending.ledger(
        scene.workspace.repository,
        scene.base,
        settings,
        month,
        standing=scene.standing,
        leaving={
            one.name: _used(scene, one, month)
            for one in scene.standing
            if one.is_active and one.name not in here
        },
    )
    asked = [
        promise(one.sweep.name, one.sweep.run, one.sweep.pool, one.batch.lock.trials)
        for one in news
        if one.batch
    ]
    return balances(settings.budgets, used=ledger.used, promised=ledger.promised, asked=asked)


def _used(scene: Scene, batch: StoredBatch, month: str) -> float:
    """Sum the seconds of the month that the change itself records of a batch."""
    path = scene.workspace.root / recorded.records_file(batch)
    return spending.seconds_in(files.read_file(path), month) if path.is_file() else 0.0


def _overdrawn(path: str, balance: Balance, month: str, currency: str) -> Problem:
    unit = "GPU hours" if balance.unit is Unit.GPU_HOURS else currency or "of money"
    message = (
        f"budget {balance.team} has {balance.limit:g} {unit} a month: {month} has used {balance.used:.4g}, "
        f"{balance.promised:.4g} are promised to active batches, this asks for {balance.asked:.4g} at most"
    )
    hint = "lower run.timeout or run.retries, try fewer values, or wait for results; `sweep budget` shows all"
    return Problem(path, 0, 0, "run", message, CODE, hint)
