"""Review sweeps before the merge.

It shows trials, coverage, forecast, cost, and changes since the base commit.
"""

from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from sweepledger.cli import response
from sweepledger.cli.options import BaseOption, MonthOption
from sweepledger.cli.response import EXIT_PROBLEMS, Format, Response, has_errors
from sweepledger.cli.text.plan import plan_text
from sweepledger.cli.text.plan_markdown import plan_comment
from sweepledger.commands.plan import plan_sweeps
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.plan import review_as_data


class PlanFormat(StrEnum):
    """Output formats of `sweep plan`; Markdown is for comments on pull requests."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def plan(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Sweeps to plan; default: all that a merge would change."),
    ] = None,
    base: BaseOption = None,
    month: MonthOption = None,
    form: Annotated[
        PlanFormat, typer.Option("--format", help="Print text, Markdown, or one JSON object.")
    ] = PlanFormat.TEXT,
) -> None:
    def work() -> Response:
        planned = plan_sweeps(Workspace.find(response.current_folder()), names or (), base=base, month=month)
        review_problems = (problem for review in planned.reviews for problem in review.problems)
        problems = tuple(sorted((*planned.problems, *review_problems)))
        code = EXIT_PROBLEMS * has_errors(problems)
        if form is PlanFormat.MARKDOWN:
            return Response({}, (Text(plan_comment(planned)),), problems, code)
        if form is PlanFormat.TEXT:
            return Response({}, plan_text(planned), problems, code)
        data = {
            "base": planned.base,
            "month": planned.month,
            "currency": planned.currency or None,
            "sweeps": [review_as_data(review) for review in planned.reviews],
            "unchanged": planned.unchanged,
        }
        return Response(data, problems=problems, exit_code=code)

    response.respond("plan", Format.JSON if form is PlanFormat.JSON else Format.TEXT, work)
