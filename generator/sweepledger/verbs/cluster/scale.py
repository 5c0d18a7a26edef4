"""Change the parallelism of running batches.

It commits the number for batches of shape `indexed`. The commit takes effect when it is pushed or merged.
`run.parallelism` in the spec decides for later batches.
"""

from sweepledger.cli.options import BatchOption, SweepArgument, argument
from sweepledger.cli.response import Response
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.verbs.cluster.pause import change_response, scale_batches


def scale(
    workspace: Workspace,
    name: SweepArgument,
    parallelism: int = argument("PARALLELISM", "How many trials of a batch run at once.", min=1),
    batch: BatchOption = None,
) -> Response:
    return change_response("scaled", workspace, scale_batches(workspace, name, parallelism, batch=batch))
