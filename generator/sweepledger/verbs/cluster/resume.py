"""Resume paused batches.

It commits that their trials run again. The commit takes effect when it is pushed or merged.
"""

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import Response
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.verbs.cluster.pause import change_response, resume_batches


def resume(workspace: Workspace, name: SweepArgument, batch: BatchOption = None) -> Response:
    return change_response("resumed", workspace, resume_batches(workspace, name, batch=batch))
