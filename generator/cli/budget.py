"""`sweep budget`: the ledger of a month."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from generator.cli import answer
from generator.cli.answer import Answer, BaseOption, Format, FormatOption, MonthOption
from generator.cli.panels import READ

if TYPE_CHECKING:
    from rich.console import RenderableType

    from generator.commands.budget import Spending
    from generator.plan import Charge


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("budget", rich_help_panel=READ)(budget)


def budget(base: BaseOption = None, month: MonthOption = None, form: FormatOption = Format.TEXT) -> None:
    """Show what each team has used up this month, was promised, and has left."""

    def work() -> Answer:
        from generator.commands import budget as command
        from generator.commands.workspace import Workspace

        found = command.budget(Workspace.find(answer.here()), base=base, month=month)
        return Answer(_data(found), tuple(_shown(found)))

    answer.answer("budget", form, work)


def _data(found: "Spending") -> dict[str, Any]:
    from generator.plan import balance_as_data

    return {
        "base": found.base,
        "month": found.month,
        "currency": found.currency or None,
        "budgets": [balance_as_data(one) for one in found.balances],
        "sweeps": [
            {
                "sweep": one.sweep,
                "teams": list(one.teams),
                "used": _charge(one.used),
                "promised": _charge(one.promised),
            }
            for one in found.shares
        ],
        "unread": list(found.unread),
    }


def _charge(found: "Charge") -> dict[str, float]:
    return {"gpu_hours": found.gpu_hours, "money": found.money}


def _shown(found: "Spending") -> "Iterator[RenderableType]":
    from rich.text import Text

    from generator.cli.show import grid
    from generator.plan import Unit

    if not found.balances:
        yield Text("sweepledger.yaml has no budgets")
        return
    money = found.currency or "money"
    teams = grid(found.month, "in", "used", "promised", "left", "of")
    for one in found.balances:
        unit = "GPU hours" if one.unit is Unit.GPU_HOURS else money
        amounts = (one.used, one.promised, one.left, one.limit)
        teams.add_row(one.team, unit, *map(_amount, amounts), style="red" if one.left < 0 else None)
    yield teams
    if found.shares:
        shares = grid("sweep", "GPU hours", "and promised", money, "and promised")
        for share in found.shares:
            used, promised = share.used, share.promised
            amounts = (used.gpu_hours, promised.gpu_hours, used.money, promised.money)
            shares.add_row(share.sweep, *map(_amount, amounts))
        yield Text("")
        yield shares
    for name in found.unread:
        yield Text(f"{name} does not say what it asks for: it is charged nothing", "yellow")


def _amount(found: float) -> str:
    return f"{found:,.2f}"
