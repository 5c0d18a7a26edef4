"""What happens after the merge: local, collect, status."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer
from generator.cli.answer import Answer, Format, FormatOption

if TYPE_CHECKING:
    from generator.commands.local import Event

StateOption = Annotated[
    Path | None,
    typer.Option("--state", metavar="DIR", help="State folder of `sweep local`; default .sweepledger."),
]
RemoteOption = Annotated[
    str | None, typer.Option("--remote", metavar="NAME", help="The remote to follow; default: the settings'.")
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="The branch to follow; default: the settings'.")
]


def register(app: typer.Typer) -> None:
    """Add the commands that run and record."""
    app.command("local")(local)
    app.command("collect")(collect)
    app.command("status")(status)


def local(
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is active any more.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Most trials at once; default: what fits."),
    ] = None,
    without_gpu: Annotated[
        bool,
        typer.Option("--without-gpu", help="Run trials that ask for GPUs without; their records say so."),
    ] = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Play cluster and controller here: follow the branch, run the rendered Jobs, record the results.

    Trials run as processes of yours: this is no sandbox.
    """

    def work() -> Answer:
        from generator.commands import ledger
        from generator.commands import local as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        options = command.Options(
            url=workspace.remote_url(remote),
            branch=branch or workspace.settings.branch,
            followed=f"{remote or workspace.settings.remote}/{branch or workspace.settings.branch}",
            workspace=workspace,
            state=ledger.state_folder(workspace, state),
            once=once,
            jobs=jobs,
            without_gpu=without_gpu,
        )
        return Answer({"collected": _played(command.local(options), form)})

    answer.answer("local", form, work)


def _played(happening: "Iterable[Event]", form: Format) -> list[dict[str, Any]]:
    """Show what happens to the end; give what was collected."""
    from generator.cli.progress import Watch

    with Watch(answer.console(stderr=form is Format.JSON)).live() as watch:
        return [_collected(event.found) for event in watch.follow(happening)]


def collect(
    push: Annotated[
        bool, typer.Option("--push", help="Commit on the remote's branch instead of here.")
    ] = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Record what ended: one commit a sweep with records, summary, report and figure; archive the batch."""

    def work() -> Answer:
        from generator.cli import show
        from generator.commands import collect as command
        from generator.commands import ledger
        from generator.commands.workspace import Workspace
        from generator.engine.local.store import conditions

        workspace = Workspace.find(answer.here())
        folder = ledger.state_folder(workspace, state)
        target = command.Target(workspace.repository)
        if push:
            name = remote or workspace.settings.remote
            workspace.remote_url(name)
            target = command.Target(workspace.repository, name, branch or workspace.settings.branch)
        known = conditions(folder) if folder.is_dir() else None
        ended = {batch for batch, condition in (known or {}).items() if condition}
        found = command.collect(target, folder / "results", ended, alive=known)
        return Answer({"collected": [_collected(one) for one in found]}, show.collected(found))

    answer.answer("collect", form, work)


def _collected(found: Any) -> dict[str, Any]:
    summary = found.summary
    return {
        "sweep": summary.sweep,
        "batches": list(found.batches),
        "commit": found.commit,
        "corrupt": list(found.corrupt),
        "counts": {str(status): count for status, count in summary.counts.items()},
        "best": None if summary.winner is None else {"trial": summary.winner.trial, "value": summary.best},
    }


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One sweep, by name or spec; all if none.")
    ] = None,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Say where each sweep stands: planned (not merged yet), running, ok, failed, missing, best so far."""

    def work() -> Answer:
        from generator.cli import show
        from generator.commands import ledger
        from generator.commands import status as command
        from generator.commands.workspace import Workspace

        workspace = Workspace.find(answer.here())
        found = command.status(workspace, name, state=ledger.state_folder(workspace, state))
        sweeps = [
            {
                "name": one.sweep,
                "batches": one.batches,
                "active": list(one.active),
                "trials": one.trials,
                **{name: one.counts[name] for name in show.COUNTED},
                "best": None
                if one.best is None
                else {"trial": one.best.trial, "value": one.best.metric(one.metric)},
            }
            for one in found
        ]
        return Answer({"sweeps": sweeps}, show.tallies(found))

    answer.answer("status", form, work)
