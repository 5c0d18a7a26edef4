"""Change the parallelism of running batches.

It commits the number for batches of shape `indexed`. The commit takes effect when it is pushed or merged.
`run.parallelism` in the spec decides for later batches.
"""

from typing import Annotated

import typer

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import Response, current_folder
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.verbs.cluster.pause import change_response, scale_batches


def scale(
    name: SweepArgument,
    parallelism: Annotated[int, typer.Argument(min=1, help="How many trials of a batch run at once.")],
    batch: BatchOption = None,
) -> Response:
    workspace = Workspace.find(current_folder())
    return change_response("scaled", workspace, scale_batches(workspace, name, parallelism, batch=batch))
