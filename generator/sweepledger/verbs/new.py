"""Write a commented starter spec to sweeps/NAME.yaml.

With --command, any git repository will do: the settings are written, too, if it has none.
"""

import shlex
from typing import Annotated

import typer

from sweepledger.cli.options import SweepArgument
from sweepledger.cli.response import Response, current_folder
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.scaffold.init import new_spec
from sweepledger.errors import UsageError
from sweepledger.spec.starter import Starter
from sweepledger.structs.metric import Goal


def new(
    name: SweepArgument,
    command_line: Annotated[
        str | None,
        typer.Option("--command", metavar="COMMAND", help="Command of a trial, such as 'python train.py'."),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="NAME=V,V",
            help="Values of a parameter, or a range NAME=LOW..HIGH to search; can be repeated.",
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME", help="Metric that the command prints as NAME=number.")
    ] = "score",
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Search for the lowest value of the metric.")
    ] = False,
) -> Response:
    workspace = Workspace.find(current_folder())
    if command_line is None and (parameters or minimize):
        raise UsageError("--param and --minimize need --command", hint="--command 'python train.py'")
    starter = None
    if command_line is not None:
        try:
            words = tuple(shlex.split(command_line))
        except ValueError as error:
            raise UsageError(f"--command cannot be split into words: {str(error).lower()}") from error
        goal = Goal.MINIMIZE if minimize else Goal.MAXIMIZE
        starter = Starter(words, tuple(parameters or ()), metric, goal)
    paths = [workspace.display_path(path) for path in new_spec(workspace, name, starter)]
    then = f"edit it, then `sweep try {name}`" if starter is None else f"`sweep run {name}`"
    return Response({"paths": paths}, (f"wrote {', '.join(paths)}\nnext: {then}",))
