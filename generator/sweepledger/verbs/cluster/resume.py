"""Resume paused batches.

It commits that their trials run again. The commit takes effect when it is pushed or merged.
"""

from msgspec.structs import replace

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import Response
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.run_config import RunningState
from sweepledger.verbs.cluster.pause import change_running


def resume(workspace: Workspace, name: SweepArgument, batch: BatchOption = None) -> Response:
    def resumed(_: StoredBatch, state: RunningState) -> RunningState:
        return replace(state, paused=False, resumes=state.resumes + 1) if state.paused else state

    return change_running(workspace, name, batch, "resume", resumed)
