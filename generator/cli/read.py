"""What git remembers: results, logs, log, show."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer, completing
from generator.cli.answer import Answer, Format, FormatOption
from generator.cli.by_pod import ByPodOption, ImageOption, PatienceOption, reading_pod
from generator.cli.panels import READ
from generator.cli.run import ContextOption, StateOption

if TYPE_CHECKING:
    from generator.commands.results import Listed
    from generator.formats.summary import SummaryRow

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
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="csv|json|parquet", help="Every column, for other programs."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="With --output: a file instead of stdout.")
    ] = None,
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
            if output is not None:
                raise
            return answer.idle(idle, {"sweep": name, "sorted_by": sort, "trials": []})
        if output is not None:
            return _written(found, output, to)
        rows = [_row(found, row, why) for row, why in zip(found.rows, found.barred, strict=True)]
        return Answer({"sweep": found.sweep, "sorted_by": found.by, "trials": rows}, shown.listed(found))

    answer.answer("results", form, work)


def _row(found: "Listed", row: "SummaryRow", why: str | None) -> dict[str, Any]:
    return {
        "trial": row.trial,
        "batch": row.batch,
        "index": row.index,
        "status": str(row.status),
        "reason": row.reason,
        "params": dict(row.assignment),
        "metrics": dict(row.metrics),
        "seconds": row.seconds,
        "not_ranked": why,
        # Only where there are several metrics.
        **({"front": row.trial in found.front and why is None} if found.others else {}),
    }


def _written(found: "Listed", output: str, to: Path | None) -> Answer:
    """Write trials for other programs; the answer itself says nothing where they went to standard output."""
    from generator.commands import results as command
    from generator.commands.workspace import Workspace
    from generator.errors import UsageError
    from generator.repo import files

    if output not in set(command.Output):
        raise UsageError(f"--output must be one of {', '.join(command.Output)}, got {output!r}")
    form = command.Output(output)
    if to is None and form is command.Output.PARQUET and sys.stdout.isatty():
        raise UsageError("parquet is not for a terminal", hint="name a file by --to, or redirect the output")
    content = command.written(Workspace.find(answer.here()), found, form)
    if to is not None:
        files.write_file(to.absolute(), content)
        return Answer({"sweep": found.sweep, "trials": len(found.rows), "file": str(to)}, (f"wrote {to}",))
    with answer.while_read():
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return Answer({"sweep": found.sweep, "trials": len(found.rows)})


def logs(
    trial: Trial,
    state: StateOption = None,
    by_pod: ByPodOption = False,
    context: ContextOption = None,
    image: ImageOption = None,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show what a trial printed, every attempt of it: head and tail, as kept beside its record."""

    def work() -> Answer:
        from generator.cli import show as shown
        from generator.commands import ledger
        from generator.commands import logs as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        if by_pod:
            pod = reading_pod(workspace, context, image, patience)
            found = command.logs_by_pod(workspace, trial, pod)
        else:
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
