"""Write a commented starter spec to sweeps/NAME.yaml.

With --command, any git repository will do: the settings are written, too, if it has none. Without arguments, it asks
for them on a terminal.
"""

import shlex
import sys
from pathlib import PurePath

import typer

from sweepledger.cli.options import argument, flag, option
from sweepledger.cli.response import Response, current_folder
from sweepledger.errors import UsageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold.command_line import split
from sweepledger.operations.scaffold.init import new_spec
from sweepledger.operations.scaffold.starter import Starter
from sweepledger.structs.metric import DEFAULT_METRIC, Goal, usual_goal
from sweepledger.structs.names import suggest_sweep_name


def new(
    name: str | None = argument("[NAME]", "Name of the sweep.", show_default=False),
    command_line: str | None = option("--command COMMAND", "Command of a trial, such as 'python train.py'."),
    parameters: list[str] | None = option(
        "--param NAME=V,V", "Values of a parameter, or a range NAME=LOW..HIGH to search; can be repeated."
    ),
    metric: str = option(
        "--metric NAME", "Metric that the command prints as NAME=number.", default=DEFAULT_METRIC
    ),
    minimize: bool = flag(
        "--minimize", "Search for the lowest value, as for a metric such as loss or error."
    ),
    method: str | None = option("--method METHOD", "How trials are chosen, such as grid or tpe."),
    trials: int | None = option("--trials N", "Number of trials of a search or a sample.", min=1),
    pattern: str | None = option("--pattern REGEX", "Lines with the metric; the first group is its value."),
    metric_path: str | None = option(
        "--metric-path GLOB", "File that the command writes the metric to: CSV, JSON, or events."
    ),
) -> Response:
    workspace = Workspace.find(current_folder())
    options = (parameters, minimize, method, trials, pattern, metric_path)
    if name is None:
        if not sys.stdin.isatty() or command_line is not None or any(options):
            raise UsageError("Missing argument 'NAME'.", hint="sweep new --help")
        name, command_line, parameters, metric = _ask()
    if command_line is None and any(options):
        raise UsageError("--param and what follows it need --command", hint="--command 'python train.py'")
    starter = None
    if command_line is not None:
        goal = Goal.MINIMIZE if minimize else usual_goal(metric)
        starter = Starter(
            split(command_line), tuple(parameters or ()), metric, goal, method, trials, pattern, metric_path
        )
    written, warnings = new_spec(workspace, name, starter)
    paths = [workspace.display_path(path) for path in written]
    then = "edit it, then `sweep try {}`" if starter is None else "`sweep try {0}`, then `sweep run {0}`"
    return Response({"paths": paths}, (f"wrote {', '.join(paths)}\nnext: {then.format(name)}",), warnings)


def _ask() -> tuple[str, str, list[str], str]:
    command = typer.prompt("Command of a trial, such as python train.py", err=True)
    typer.echo(
        "Parameters, one per line: NAME=VALUE,VALUE or a range NAME=LOW..HIGH; an empty line ends.", err=True
    )
    parameters: list[str] = []
    while answer := typer.prompt("", default="", show_default=False, prompt_suffix="  ", err=True):
        parameters.append(answer)
    metric = typer.prompt("Metric that it reports", default=DEFAULT_METRIC, err=True)
    stems = [PurePath(word).stem for word in shlex.split(command) if word.endswith(".py")]
    suggested = (suggest_sweep_name(stems[0]) if stems else None) or "first"
    return typer.prompt("Name of the sweep", default=suggested, err=True), command, parameters, metric
