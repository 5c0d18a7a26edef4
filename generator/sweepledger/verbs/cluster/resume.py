"""Resume paused batches.

It commits that their trials run again. The commit takes effect when it is pushed or merged.
"""

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import Response, current_folder
from sweepledger.commands import cancel as batches
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.verbs.cluster.pause import change_response


def resume(name: SweepArgument, batch: BatchOption = None) -> Response:
    workspace = Workspace.find(current_folder())
    return change_response("resumed", workspace, batches.resume(workspace, name, batch=batch))
