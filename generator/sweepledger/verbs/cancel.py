"""Cancel running batches by a commit.

It adds their names to the spec, and moves their overlays to the archive. The commit takes effect when it is pushed
or merged.
"""

from typing import Annotated

import typer

from sweepledger.cli import response
from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import SHORT_COMMIT, Response
from sweepledger.cli.text.values import count_text
from sweepledger.commands import cancel as batches
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.structs.settings import Controller


def cancel(
    name: SweepArgument,
    batch: BatchOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Request the cancelled trials again after they are recorded.")
    ] = False,
) -> Response:
    workspace = Workspace.find(response.current_folder())
    cancelled = batches.cancel(workspace, name, batch=batch, replace=replace)
    trials, commit = count_text(cancelled.trials, "trial"), cancelled.commit[:SHORT_COMMIT]
    lines = [
        f"cancelled {', '.join(cancelled.batches)} ({trials}) in {commit}",
        "next: push or merge the commit; the controller then ends the pods, and the collector records the rest"
        if workspace.settings.controller is not Controller.NONE
        else f"next: `sweep run {cancelled.sweep}` records the rest here; or push or merge the commit",
    ]
    if replace:
        lines.append(f"then: `sweep generate {cancelled.sweep}` requests the cancelled trials again")
    return Response(cancelled, tuple(lines))
