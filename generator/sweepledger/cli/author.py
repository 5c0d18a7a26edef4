"""Commands for authors: new, validate, try, generate, import, export."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweepledger.cli import response
from sweepledger.cli.envelopes import generated_data
from sweepledger.cli.options import BaseOption, FormatOption, SweepArgument, SweepsArgument
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Format, Response
from sweepledger.problems import Problem

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.generate import Generation
    from sweepledger.commands.generation.next_batch import Generated
    from sweepledger.commands.repository.workspace import Workspace


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
    form: FormatOption = Format.TEXT,
) -> None:
    """Write a commented starter spec to sweeps/NAME.yaml.

    With --command, any git repository will do: the settings are written, too, if it has none.
    """

    def work() -> Response:
        import shlex

        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.commands.scaffold import init as command
        from sweepledger.errors import UsageError
        from sweepledger.spec.starter import Starter
        from sweepledger.structs.metric import Goal

        workspace = Workspace.find(response.current_folder())
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
        paths = [workspace.display_path(path) for path in command.new(workspace, name, starter)]
        then = f"edit it, then `sweep try {name}`" if starter is None else f"`sweep run {name}`"
        return Response({"paths": paths}, (f"wrote {', '.join(paths)}\nnext: {then}",))

    response.respond("new", form, work)


def try_(
    name: SweepArgument,
    trial: Annotated[
        int, typer.Option("--trial", metavar="N", help="Run trial N of `sweep plan`, counted from 0.")
    ] = 0,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the folder that the trial has written to, and show its path."),
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Run one trial of the work tree here, and record nothing."""

    def work() -> Response:
        from sweepledger.cli.text import author
        from sweepledger.commands import try_ as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        tried = command.try_(workspace, name, trial, quiet=form is Format.JSON, keep=keep)
        code = 0 if tried.is_ok else EXIT_PROBLEMS
        return Response(tried.as_data(), author.tried_text(tried), tried.warnings, code)

    response.respond("try", form, work)


def generate(
    names: SweepsArgument = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 5 if a batch is missing.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 5 if anything was written, for hooks.")
    ] = False,
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Request all trials of the named sweeps again if code, image or data changed."
        ),
    ] = False,
    push: Annotated[
        bool,
        typer.Option("--push", help="Commit on the branch; requires `generate: on-merge` in the settings."),
    ] = False,
    base: BaseOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the next batch of each sweep: trials that no batch has.

    If you name no sweep, those of valid specs are written, and the problems of the others are reported.
    """

    def work() -> Response:
        from sweepledger.cli.text import author
        from sweepledger.commands import generate as command
        from sweepledger.commands.repository.workspace import NO_SPECS, Workspace
        from sweepledger.errors import UsageError

        if push and (check_only or exit_code or update or base is not None):
            raise UsageError("--push cannot be combined with --check, --exit-code, --update or --base")
        if update and not names:
            raise UsageError("--update needs the names of sweeps: all of their trials run again")
        workspace = Workspace.find(response.current_folder())
        if push:
            return _push_batches(workspace, names or ())
        if names:
            generated = command.generate(workspace, names, check=check_only, base=base, update=update)
            made = command.Generation(generated)
        else:
            made = command.generate_changed(workspace, check=check_only, base=base)
        has_drift = (check_only or exit_code) and any(item.is_pending for item in made.generated)
        text = (
            *author.generated_text(made.generated, check=check_only),
            *author.settled_text(made.settled),
            *([] if workspace.spec_paths() else [NO_SPECS]),
        )
        data = {**generated_data(made.generated), "unchanged": sorted(path.stem for path in made.settled)}
        unread = () if names else workspace.unread_specs()
        return _generation_response(made, data, text, unread, EXIT_DRIFT * has_drift)

    response.respond("generate", form, work)


def _push_batches(workspace: "Workspace", names: "Iterable[str]") -> Response:
    from sweepledger.cli.text import author
    from sweepledger.commands import generate

    made, commit = generate.push_batches(workspace, names)
    is_complete = not made.problems and not made.failures
    nothing = "nothing to commit" + (": every trial is in a batch" if is_complete else "")
    last_line = f"committed as {commit}" if commit else nothing
    data = {**generated_data(made.generated), "commit": commit}
    text = (*author.generated_text(made.generated, check=False), last_line)
    return _generation_response(made, data, text)


def _generation_response(
    made: "Generation",
    data: "Mapping[str, Any]",
    text: "tuple[RenderableType, ...]",
    unread: tuple[Problem, ...] = (),
    code: int = 0,
) -> Response:
    """Return the batches that were made, and the problems of the specs that have none; these decide the exit code."""
    problems = (*made.problems, *_warnings(made.generated), *unread)
    if made.problems:
        code = EXIT_PROBLEMS
    elif made.failures:
        code = min(failure.exit_code for failure in made.failures)
    return Response(data, text, problems, code, made.failures)


def _warnings(generated: "Iterable[Generated]") -> tuple[Problem, ...]:
    return tuple(sorted(warning for item in generated for warning in item.warnings))
