"""Commands for authors: new, validate, try, generate, import, export."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweepledger.cli import response
from sweepledger.cli.envelopes import generated_data
from sweepledger.cli.options import BaseOption, FormatOption, SweepArgument, SweepsArgument
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Format, Response, has_errors
from sweepledger.problems import Problem, escape_cell

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from sweepledger.commands.exchange import ForeignFile
    from sweepledger.commands.generate import Generation
    from sweepledger.commands.generation.next_batch import Generated
    from sweepledger.commands.repository.workspace import Workspace
    from sweepledger.exchange.conversion import Loss


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


class ImportFormat(StrEnum):
    """Formats of other tools that can be imported; trials are no spec, but what a search starts from."""

    WANDB = "wandb"
    KATIB = "katib"
    OPTIMIZATION_JOB = "optimization-job"
    HYDRA = "hydra"
    OPTUNA = "optuna"
    RAY = "ray"
    NVIDIA = "nvidia"
    CSV = "csv"
    JSONL = "jsonl"
    TRIALS = "trials"


class ExportFormat(StrEnum):
    """Formats of other tools that can be written."""

    WANDB = "wandb"
    KATIB = "katib"
    OPTIMIZATION_JOB = "optimization-job"
    HYDRA = "hydra"
    OPTUNA = "optuna"
    NVIDIA = "nvidia"
    CSV = "csv"
    JSONL = "jsonl"
    SLURM = "slurm"
    SHELL = "shell"


BATCH_FORMATS = (ExportFormat.SLURM, ExportFormat.SHELL)
"""Formats that a committed batch is converted to, instead of a spec."""

ImportFormatArgument = Annotated[
    ImportFormat, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(ImportFormat)}.")
]
ExportFormatArgument = Annotated[
    ExportFormat, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(ExportFormat)}.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", metavar="PATH", help="Write to this file, which must not exist."),
]


def import_(
    foreign: ImportFormatArgument,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to import; `-` reads standard input.")],
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name the sweep; default: the name in the file. Of trials: the search that starts from them.",
        ),
    ] = None,
    output: OutputOption = None,
    evidence: Annotated[
        str | None,
        typer.Option("--as", metavar="EVIDENCE", help="Of trials: name them; default: the name of the file."),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            "--study", metavar="STUDY", help="Of trials: study in a storage of Optuna that has several."
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Convert another tool's file to a spec, or trials to evidence.

    It lists what could not be converted. With trials, FILE has finished trials: CSV, JSON Lines, or a storage of
    Optuna (a SQLite database or a journal). They are written to sweeps/EVIDENCE.evidence.jsonl, marked as foreign, and
    named under `start` in the spec of --name, a search that starts from them.
    """

    def work() -> Response:
        from sweepledger.commands import exchange as command
        from sweepledger.errors import UsageError

        if foreign is ImportFormat.TRIALS:
            from sweepledger.commands.repository.workspace import Workspace

            if name is None or output is not None:
                raise UsageError("trials need --name, the search that starts from them, and no --output")
            workspace = Workspace.find(response.current_folder())
            return _import_trials(workspace, name, Path(file), evidence, study)
        if evidence is not None or study is not None:
            raise UsageError(f"--as and --study are for trials, got {foreign}")
        source = _read_standard_input() if file == "-" else command.ForeignFile.read(Path(file))
        imported = command.import_(
            foreign, source, folder=response.current_folder(), name=name, output=output
        )
        if form is Format.TEXT:
            message = f"wrote {imported.path}\nnext: `sweep validate`" if imported.is_written else None
            _print_losses(imported.losses)
            _print_file(imported.text, message)
        code = EXIT_PROBLEMS * has_errors(imported.problems)
        return Response(imported.as_data(), problems=imported.problems, exit_code=code)

    response.respond("import", form, work)


def _import_trials(
    workspace: "Workspace", name: str, file: Path, evidence: str | None, study: str | None
) -> Response:
    """Write finished trials of another tool next to the spec of the search that starts from them."""
    from dataclasses import asdict

    from sweepledger.commands import warm_start as command

    written = command.warm_start(workspace, name, file, evidence=evidence, study=study)
    count = len(written.evidence.trials)
    data = {
        "sweep": written.sweep,
        "path": written.path,
        "foreign": {
            key: value
            for key, value in asdict(written.evidence).items()
            if key in {"format", "source", "digest"}
        },
        "trials": count,
        "ok": written.ok,
        "outside": written.outside,
    }
    outside = f"; {written.outside} outside of the search space left out" if written.outside else ""
    source = response.escape_control_characters(written.evidence.source)
    lines = (
        f"wrote {written.path}: {count} foreign trials of {source}, {written.ok} of them ok{outside}",
        "nobody can verify them: review the file like a spec",
        f"next: commit it with sweeps/{written.sweep}.yaml, then `sweep generate {written.sweep}`",
    )
    return Response(data, lines)


def export(
    foreign: ExportFormatArgument,
    name: SweepArgument,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch", metavar="BATCH", help="For slurm and shell: the batch; default: the active one."
        ),
    ] = None,
    output: OutputOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Convert a sweep or a batch to another tool's file.

    It lists what could not be converted. With slurm and shell, its committed batch becomes a script that runs it, and
    `sweep cluster collect` records it.
    """

    def work() -> Response:
        from sweepledger.commands import exchange as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.errors import UsageError

        workspace = Workspace.find(response.current_folder())
        if foreign in BATCH_FORMATS:
            exported = command.export_batch(workspace, foreign, name, batch=batch, output=output)
        elif batch is not None:
            raise UsageError(f"--batch is for {', '.join(sorted(BATCH_FORMATS))}, got {foreign}")
        else:
            exported = command.export(workspace, foreign, name, output=output)
        if form is Format.TEXT:
            _print_losses(exported.losses)
            _print_file(exported.text, f"wrote {exported.path}" if exported.path else None)
        return Response(exported.as_data(), problems=exported.warnings)

    response.respond("export", form, work)


def _read_standard_input() -> "ForeignFile":
    from sweepledger.commands.exchange import LARGEST_IMPORT, ForeignFile

    return ForeignFile(sys.stdin.buffer.read(LARGEST_IMPORT + 1), "-")


def _print_file(text: str, message: str | None) -> None:
    """Print the message, or else the text of the file byte for byte, without markup or folding."""
    with response.ignore_broken_pipe():
        sys.stdout.flush()
        sys.stdout.buffer.write(f"{message}\n".encode() if message else text.encode())


def _print_losses(losses: "Sequence[Loss]") -> None:
    """Print what was not converted to standard error, so that standard output contains the file alone."""
    if not losses:
        return
    from rich.table import Table

    table = Table("not carried over", "instead, or why", box=None, pad_edge=False, title_justify="left")
    for loss in losses:
        table.add_row(_cell(loss.part), _cell(loss.reason))
    response.open_console(stderr=True).print(table)


def _cell(text: str) -> "Text":
    from rich.text import Text

    return Text(escape_cell(text))
