"""Run one trial of the work tree here, and record nothing."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import response
from sweepledger.cli.options import FormatOption, SweepArgument
from sweepledger.cli.response import EXIT_PROBLEMS, Format, Response, escape_control_characters
from sweepledger.cli.text.style import new_table, status_with_reason, styled_status
from sweepledger.cli.text.values import configuration_text, number_text
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.try_ import Tried, try_trial
from sweepledger.structs.record import Status


def try_(
    name: SweepArgument,
    trial: Annotated[
        int, typer.Option("--trial", metavar="N", help="Run trial N of `sweep plan`, counted from 0.")
    ] = 0,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the folder that the trial has written to, and show its path."),
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    def work() -> Response:
        workspace = Workspace.find(response.current_folder())
        tried = try_trial(workspace, name, trial, quiet=form is Format.JSON, keep=keep)
        code = 0 if tried.is_ok else EXIT_PROBLEMS
        return Response(tried.as_data(), tried_text(tried), tried.warnings, code)

    response.respond("try", form, work)


def tried_text(tried: Tried) -> tuple[RenderableType, ...]:
    """Return the status, configuration and metrics of a trial that `sweep try` ran."""
    record = tried.record
    status = status_with_reason(record.status, record.reason) if record else styled_status(Status.MISSING)
    head = Text.assemble((f"trial {tried.number} of {tried.of}: ", "bold"), status)
    table = new_table("metric", "value")
    for name, value in (record.metrics if record else {}).items():
        table.add_row(Text(name), number_text(value))
    parts: list[RenderableType] = [head, Text(configuration_text(tried.trial.assignment))]
    parts += [table] if table.row_count else []
    if record is not None and not record.status.is_success and record.error_line:
        parts.append(Text(escape_control_characters(record.error_line), "red"))
    if tried.folder is not None:
        parts.append(Text(f"its folder: {escape_control_characters(str(tried.folder))}"))
    return tuple(parts)
