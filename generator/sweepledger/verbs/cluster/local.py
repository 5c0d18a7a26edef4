"""Follow the branch, and run its batches on this machine.

The trials of active batches run as processes, with your permissions, without a sandbox. Their results are
recorded.
"""

from sweepledger.cli.options import (
    BranchOption,
    FormatOption,
    RemoteOption,
    StateOption,
    WithoutGpuOption,
    flag,
    option,
)
from sweepledger.cli.response import Format, Response
from sweepledger.cli.text.progress import show_events
from sweepledger.operations import cluster_local as engine
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.state import create_state


def local(
    workspace: Workspace,
    once: bool = flag("--once", "Exit when no batch is active."),
    jobs: int | None = option("--jobs -j N", "Run at most N trials at once; default: as many as fit.", min=1),
    without_gpu: WithoutGpuOption = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> Response:
    options = engine.Options(
        url=workspace.remote_url(remote),
        branch=branch or workspace.settings.git.branch,
        followed=f"{remote or workspace.remote}/{branch or workspace.settings.git.branch}",
        workspace=workspace,
        state=create_state(workspace.repository, state),
        once=once,
        jobs=jobs,
        without_gpu=without_gpu,
    )
    return show_events(engine.local(options), form, is_remote=True)
