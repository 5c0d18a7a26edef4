"""Write a commented starter spec to sweeps/NAME.yaml.

With --command, any git repository will do: the settings are written, too, if it has none.
"""

from typing import Annotated

import typer

from sweepledger.cli.options import SweepArgument
from sweepledger.cli.response import Response, current_folder
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.scaffold.command_line import split
from sweepledger.commands.scaffold.init import new_spec
from sweepledger.errors import UsageError
from sweepledger.spec.starter import Starter
from sweepledger.structs.metric import Goal, usual_goal


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
        bool,
        typer.Option(
            "--minimize", help="Search for the lowest value, as for a metric such as loss or error."
        ),
    ] = False,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="METHOD", help="How trials are chosen, such as grid or tpe."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", min=1, metavar="N", help="Number of trials of a search or a sample."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern", metavar="REGEX", help="Lines with the metric; the first group is its value."
        ),
    ] = None,
    metric_path: Annotated[
        str | None,
        typer.Option(
            "--metric-path",
            metavar="GLOB",
            help="File that the command writes the metric to: CSV, JSON, or events.",
        ),
    ] = None,
) -> Response:
    workspace = Workspace.find(current_folder())
    options = (parameters, minimize, method, trials, pattern, metric_path)
    if command_line is None and any(options):
        raise UsageError("--param and what follows it need --command", hint="--command 'python train.py'")
    starter = None
    if command_line is not None:
        goal = Goal.MINIMIZE if minimize else usual_goal(metric)
        starter = Starter(
            split(command_line), tuple(parameters or ()), metric, goal, method, trials, pattern, metric_path
        )
    made = new_spec(workspace, name, starter)
    paths = [workspace.display_path(path) for path in made.paths]
    then = "edit it, then `sweep try {}`" if starter is None else "`sweep try {0}`, then `sweep run {0}`"
    return Response(
        {"paths": paths}, (f"wrote {', '.join(paths)}\nnext: {then.format(name)}",), made.warnings
    )
