"""Change the parallelism of running batches.

It commits the number for batches of shape `indexed`. The commit takes effect when it is pushed or merged.
`run.parallelism` in the spec decides for later batches.
"""

from msgspec.structs import replace

from sweepledger.cli.options import BatchOption, SweepArgument, argument
from sweepledger.cli.response import Response
from sweepledger.operations.generation.spec_change import repeats_trials
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.run_config import RunningState
from sweepledger.verbs.cluster.pause import change_running


def scale(
    workspace: Workspace,
    name: SweepArgument,
    parallelism: int = argument("PARALLELISM", "How many trials of a batch run at once.", min=1),
    batch: BatchOption = None,
) -> Response:
    def scaled(stored: StoredBatch, state: RunningState) -> RunningState:
        new = replace(state, parallelism=parallelism)
        # Fewer trials at once end some that run, which counts as a resume.
        return replace(new, resumes=state.resumes + repeats_trials(stored, state, new))

    return change_running(workspace, name, batch, "scale", scaled)
