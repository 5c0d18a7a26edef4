"""What git remembers: results, logs, log, show."""

from typing import Annotated

import typer

from generator.cli import answer, completing
from generator.cli.answer import Answer, Format, FormatOption
from generator.cli.panels import READ
from generator.cli.run import StateOption

Trial = Annotated[
    str,
    typer.Argument(
        metavar="TRIAL",
        help="A trial's id or the beginning of it; or SWEEP/TRIAL.",
        autocompletion=completing.trials,
    ),
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The sweep's name, or its spec.", autocompletion=completing.sweeps),
]
OptionalName = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="One sweep, by name or spec; all if none.", autocompletion=completing.sweeps
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands that only read."""
    app.command("results", rich_help_panel=READ)(results)
    app.command("logs", rich_help_panel=READ)(logs)
    app.command("log", rich_help_panel=READ)(log)
    app.command("show", rich_help_panel=READ)(show)


def results(
    name: Name,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="METRIC", help="A metric, or seconds; default: the sweep's own metric."
        ),
    ] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, metavar="K", help="Only the first K.")] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show a sweep's recorded trials, best first."""

    def work() -> Answer:
        from generator.cli import show as shown
        from generator.commands import results as command
        from generator.commands.workspace import Workspace
        from generator.errors import IdleError

        try:
            found = command.results(Workspace.find(answer.here()), name, by=sort, top=top)
        except IdleError as idle:
            return answer.idle(idle, {"sweep": name, "sorted_by": sort, "trials": []})
        rows = [
            {
                "trial": row.trial,
                "batch": row.batch,
                "index": row.index,
                "status": str(row.status),
                "reason": row.reason,
                "params": dict(row.assignment),
                "metrics": dict(row.metrics),
                "seconds": row.seconds,
            }
            for row in found.rows
        ]
        return Answer({"sweep": found.sweep, "sorted_by": found.by, "trials": rows}, shown.listed(found))

    answer.answer("results", form, work)


def logs(trial: Trial, state: StateOption = None, form: FormatOption = Format.TEXT) -> None:
    """Show what a trial printed, every attempt of it."""

    def work() -> Answer:
        from generator.cli import show as shown
        from generator.commands import ledger
        from generator.commands import logs as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        found = command.logs(workspace, trial, state=ledger.state_folder(workspace, state))
        attempts = [{"uid": one.uid, "stdout": one.out, "stderr": one.err} for one in found.attempts]
        return Answer({"trial": found.trial, "batch": found.batch, "attempts": attempts}, shown.kept(found))

    answer.answer("logs", form, work)


def log(
    name: OptionalName = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Tell the history of sweeps from git: specs, batches, results, the best metric and its change."""

    def work() -> Answer:
        from generator.cli import log_text
        from generator.commands import log as command
        from generator.commands.workspace import Workspace

        told = command.log(Workspace.find(answer.here()), name)
        entries = [
            {
                "sweep": one.sweep,
                "kind": one.kind,
                "commit": one.commit.id,
                "author": one.commit.author,
                "date": one.commit.date,
                "text": one.text,
                "best": one.best,
                "change": one.change,
            }
            for one in told.entries
        ]
        return Answer({"entries": entries}, log_text.history(told.entries, told.sweep))

    answer.answer("log", form, work)


def show(trial: Trial, form: FormatOption = Format.TEXT) -> None:
    """Show one trial: its values, its result, its provenance, the commits that made it."""

    def work() -> Answer:
        from generator.cli import show as shown
        from generator.commands import show as command
        from generator.commands.workspace import Workspace

        found = command.show(Workspace.find(answer.here()), trial)
        return Answer(found.as_data(), shown.shown(found))

    answer.answer("show", form, work)
