"""Pause running batches until they are resumed.

It commits that none of their trials may run until `sweep cluster resume`. The commit takes effect when it is pushed
or merged. A cluster ends the pods, and no attempt counts as failed.
"""

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import SHORT_COMMIT, Response, current_folder
from sweepledger.cli.text.values import count_text
from sweepledger.commands import cancel as batches
from sweepledger.commands.cancel import BatchesChange
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.structs.settings import Controller


def pause(name: SweepArgument, batch: BatchOption = None) -> Response:
    workspace = Workspace.find(current_folder())
    return change_response("paused", workspace, batches.pause(workspace, name, batch=batch))


def change_response(verb: str, workspace: Workspace, change: BatchesChange) -> Response:
    """Return what a commit says of batches that run, and when it takes effect."""
    trials, commit = count_text(change.trials, "trial"), change.commit[:SHORT_COMMIT]
    lines = (
        f"{verb} {', '.join(change.batches)} ({trials}) in {commit}",
        "next: push or merge the commit; the controller applies it"
        if workspace.settings.controller is not Controller.NONE
        else "next: `sweep run` and `sweep cluster local` obey within seconds once their branch has the commit",
    )
    return Response(change, lines)
