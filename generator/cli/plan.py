"""`sweep plan`: the review of a sweep before anything is spent."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer
from generator.cli.answer import EXIT_PROBLEMS, Answer, BaseOption, Format, MonthOption, has_errors
from generator.cli.panels import AUTHOR

if TYPE_CHECKING:
    from rich.console import RenderableType

    from generator.commands.plan import Planned


class PlanFormat(StrEnum):
    """How to answer; a comment on a pull request wants Markdown."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", rich_help_panel=AUTHOR)(plan)


def plan(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Sweeps; if none, all that a merge would change."),
    ] = None,
    base: BaseOption = None,
    month: MonthOption = None,
    form: Annotated[
        PlanFormat, typer.Option("--format", help="How to answer: text, Markdown, or one JSON object.")
    ] = PlanFormat.TEXT,
) -> None:
    """Review sweeps before the merge: trials, coverage, cost, and the difference to what stands."""

    def work() -> Answer:
        from generator.commands import plan as command
        from generator.commands.workspace import Workspace

        found = command.plan(Workspace.find(answer.here()), names or (), base=base, month=month)
        told = (*found.problems, *(one for review in found.reviews for one in review.problems))
        problems, code = tuple(sorted(told)), EXIT_PROBLEMS * has_errors(told)
        if form is PlanFormat.JSON:
            return Answer(_data(found), problems=problems, exit_code=code)
        return Answer({}, _shown(found, form), problems, code)

    answer.answer("plan", Format.JSON if form is PlanFormat.JSON else Format.TEXT, work)


def _data(found: "Planned") -> dict[str, Any]:
    from generator.plan import as_data

    return {
        "base": found.base,
        "month": found.month,
        "currency": found.currency or None,
        "sweeps": [as_data(review) for review in found.reviews],
        "settled": list(found.settled),
    }


def _shown(found: "Planned", form: PlanFormat) -> "tuple[RenderableType, ...]":
    if form is PlanFormat.MARKDOWN:
        from rich.text import Text

        from generator.cli import plan_markdown

        return (Text(plan_markdown.planned(found)),)
    from generator.cli import plan_text

    return plan_text.planned(found)
