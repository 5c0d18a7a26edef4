"""Follow the branch, and run its batches on this machine.

The trials of active batches run as processes, with your permissions, without a sandbox. Their results are
recorded.
"""

from typing import Annotated

import typer

from sweepledger.cli.options import BranchOption, FormatOption, RemoteOption, StateOption, WithoutGpuOption
from sweepledger.cli.response import Format, Response, current_folder
from sweepledger.cli.text.progress import show_events
from sweepledger.commands import local as engine
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.repo.state import create_state


def local(
    once: Annotated[bool, typer.Option("--once", help="Exit when no batch is active.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, metavar="N", help="Run at most N trials at once; default: as many as fit."
        ),
    ] = None,
    without_gpu: WithoutGpuOption = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    form: FormatOption = Format.TEXT,
) -> Response:
    workspace = Workspace.find(current_folder())
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
