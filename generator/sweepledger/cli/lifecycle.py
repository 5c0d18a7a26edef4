"""Commands for merged batches: collect, next, cancel, pause, resume, scale, retry, rename, expire and submit."""

from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import response
from sweepledger.cli.options import (
    BatchOption,
    FormatOption,
    SweepArgument,
)
from sweepledger.cli.response import (
    SHORT_COMMIT,
    Format,
    Response,
)
from sweepledger.cli.text.values import count_text

if TYPE_CHECKING:
    from sweepledger.commands.cancel import BatchesChange
    from sweepledger.commands.repository.workspace import Workspace


def cancel(
    name: SweepArgument,
    batch: BatchOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Request the cancelled trials again after they are recorded.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Cancel running batches by a commit.

    It adds their names to the spec, and moves their overlays to the archive. The commit takes effect when it is pushed
    or merged.
    """

    def work() -> Response:
        from sweepledger.commands import cancel as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.structs.settings import Controller

        workspace = Workspace.find(response.current_folder())
        cancelled = command.cancel(workspace, name, batch=batch, replace=replace)
        batches, commit = ", ".join(cancelled.batches), cancelled.commit[:SHORT_COMMIT]
        lines = [
            f"cancelled {batches} ({count_text(cancelled.trials, 'trial')}) in {commit}",
            "next: push or merge the commit; the controller then ends the pods, and the collector records the rest"
            if workspace.settings.controller is not Controller.NONE
            else f"next: `sweep run {cancelled.sweep}` records the rest here; or push or merge the commit",
        ]
        if replace:
            lines.append(f"then: `sweep generate {cancelled.sweep}` requests the cancelled trials again")
        data = {
            "sweep": cancelled.sweep,
            "batches": list(cancelled.batches),
            "trials": cancelled.trials,
            "commit": cancelled.commit,
            "replaced": cancelled.is_replaced,
        }
        return Response(data, tuple(lines))

    response.respond("cancel", form, work)


def pause(name: SweepArgument, batch: BatchOption = None, form: FormatOption = Format.TEXT) -> None:
    """Pause running batches until they are resumed.

    It commits that none of their trials may run until `sweep cluster resume`. The commit takes effect when it is pushed
    or merged. A cluster ends the pods, and no attempt counts as failed.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import pause as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("paused", workspace, command(workspace, name, batch=batch))

    response.respond("cluster pause", form, work)


def resume(name: SweepArgument, batch: BatchOption = None, form: FormatOption = Format.TEXT) -> None:
    """Resume paused batches.

    It commits that their trials run again. The commit takes effect when it is pushed or merged.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import resume as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("resumed", workspace, command(workspace, name, batch=batch))

    response.respond("cluster resume", form, work)


def scale(
    name: SweepArgument,
    parallelism: Annotated[int, typer.Argument(min=1, help="How many trials of a batch run at once.")],
    batch: BatchOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Change the parallelism of running batches.

    It commits the number for batches of shape `indexed`. The commit takes effect when it is pushed or merged.
    `run.parallelism` in the spec decides for later batches.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import scale as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("scaled", workspace, command(workspace, name, parallelism, batch=batch))

    response.respond("cluster scale", form, work)


def _running_changed(verb: str, workspace: "Workspace", change: "BatchesChange") -> Response:
    from sweepledger.structs.settings import Controller

    controlled = workspace.settings.controller is not Controller.NONE
    batches, commit = ", ".join(change.batches), change.commit[:SHORT_COMMIT]
    lines = (
        f"{verb} {batches} ({count_text(change.trials, 'trial')}) in {commit}",
        "next: push or merge the commit; the controller applies it"
        if controlled
        else "next: `sweep run` and `sweep cluster local` obey within seconds once their branch has the commit",
    )
    data = {
        "sweep": change.sweep,
        "batches": list(change.batches),
        "trials": change.trials,
        "commit": change.commit,
    }
    return Response(data, lines)
