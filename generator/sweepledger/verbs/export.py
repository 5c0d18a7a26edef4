"""Convert a sweep or a batch to another tool's file.

It lists what could not be converted. With slurm and shell, its committed batch becomes a script that runs it, and
`sweep cluster collect` records it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from sweepledger import search
from sweepledger.cli import response
from sweepledger.cli.options import FormatOption, OutputOption, SweepArgument
from sweepledger.cli.response import Format, Response
from sweepledger.cli.text.conversion import print_conversion
from sweepledger.commands.local import DesiredState, RefusedBatch
from sweepledger.commands.repository import batch_script
from sweepledger.commands.repository.batch_script import PreparedBatch
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.local.volumes import StateFolders, write_files
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.registry import WRITERS
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Mirror
from sweepledger.repo.state import create_state
from sweepledger.search import Expansion
from sweepledger.storage import refuse_existing, write_file
from sweepledger.structs.program import LOCAL_IMAGE


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


def export(
    foreign: Annotated[
        ExportFormat, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(ExportFormat)}.")
    ],
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
    def work() -> Response:
        workspace = Workspace.find(response.current_folder())
        if foreign in BATCH_FORMATS:
            exported = export_batch(workspace, foreign, name, batch=batch, output=output)
        elif batch is not None:
            raise UsageError(f"--batch is for {', '.join(sorted(BATCH_FORMATS))}, got {foreign}")
        else:
            exported = export_sweep(workspace, foreign, name, output=output)
        if form is Format.TEXT:
            message = f"wrote {exported.path}" if exported.path else None
            print_conversion(exported.losses, exported.text, message)
        data = {"text": exported.text, "path": exported.path, "losses": exported.losses}
        return Response(data, problems=exported.warnings)

    response.respond("export", form, work)


@dataclass(frozen=True, slots=True)
class ExportedSweep:
    """A file of another tool."""

    text: str
    losses: tuple[Loss, ...]
    warnings: tuple[Problem, ...]
    path: str | None
    """The path to which it was written; None if it was printed."""


SEARCH_FORMATS = frozenset({"katib", "optimization-job", "optuna", "wandb"})
"""Formats of tools that run the search themselves."""


def export_sweep(
    workspace: Workspace, format_name: str, name: str, *, output: Path | None = None
) -> ExportedSweep:
    """Convert a sweep to the format of another tool. Raises SpecError, UsageError."""
    refuse_existing(output)
    (parsed,) = workspace.specs([name])
    sweep = parsed.sweep
    if sweep.search is not None and format_name not in SEARCH_FORMATS:
        raise UsageError(
            f"{name} is an adaptive search, and {format_name} lists known configurations",
            hint=f"export {' or '.join(sorted(SEARCH_FORMATS))}; `sweep results --output csv` has what ran",
        )
    expansion = search.explore(sweep, parsed.source)
    if not isinstance(expansion, Expansion):
        raise SpecError(expansion)
    exported = WRITERS[format_name](sweep, expansion.configurations)
    if output is not None:
        write_file(output, exported.text.encode())
    warnings = tuple(sorted([*parsed.warnings, *expansion.warnings]))
    return ExportedSweep(exported.text, exported.losses, warnings, output.as_posix() if output else None)


SCRIPTS: Mapping[str, Callable[[PreparedBatch], str]] = {
    "slurm": batch_script.slurm_script,
    "shell": batch_script.shell_script,
}
"""Formats of scripts that run a batch."""


def export_batch(
    workspace: Workspace, format_name: str, name: str, *, batch: str | None = None, output: Path | None = None
) -> ExportedSweep:
    """Convert the committed, active batch of a sweep to a script and its files in the state folder.

    The script runs the trials that the batch's own Jobs would run: the same launcher, rows and ids. Raises SpecError
    if a script cannot run the batch, UsageError, RepositoryError, StorageError, ToolError.
    """
    refuse_existing(output)
    stored = _active_batch(workspace, name, batch)
    if stored.lock.run.pack is not None:
        raise UsageError(
            f"the pods of {stored.name} run several trials, and {format_name} starts each of its own",
            hint="delete run.pack, `sweep cancel` the batch with --replace, and export the new one",
        )
    prepared = _prepare(workspace, stored)
    text = SCRIPTS[format_name](prepared)
    if output is not None:
        write_file(output, text.encode())
    path = output.as_posix() if output else None
    return ExportedSweep(text, tuple(_losses(stored, prepared)), (), path)


def _active_batch(workspace: Workspace, name: str, batch: str | None) -> StoredBatch:
    repository = workspace.repository
    committed = batches.of_sweep_in_commit(repository, repository.commit("HEAD"), name)
    active = [stored for stored in committed if stored.is_active]
    chosen = [stored for stored in active if batch in {None, stored.name}]
    if len(chosen) == 1:
        return chosen[0].vetted()
    if chosen:
        listed = ", ".join(stored.name for stored in chosen)
        raise RepositoryError(
            f"{name} has {len(chosen)} active batches: {listed}", hint="choose one by --batch"
        )
    wanted = batch or f"batch of {name}"
    raise RepositoryError(
        f"no active {wanted} is committed",
        hint=f"`sweep generate {name}`, commit what it writes, and export again",
    )


def _prepare(workspace: Workspace, stored: StoredBatch) -> PreparedBatch:
    """Check a batch, and put its code, dataset and tables into the state folder. Raises SpecError."""
    repository = workspace.repository
    commit = repository.commit("HEAD")
    assert commit is not None, "the batch is in a commit"
    state = create_state(repository).resolve()
    mirror = Mirror(state, str(repository.folder), repository.branch() or workspace.settings.branch)
    mirror.borrow(repository)
    desired = DesiredState(repository, mirror, state, work_tree=repository).desired(commit, stored)
    if isinstance(desired, RefusedBatch):
        raise SpecError(desired.problems)
    write_files(StateFolders(state), desired.batch)
    code = desired.code.resolve()
    return PreparedBatch(
        desired.batch,
        code=PurePosixPath(code.relative_to(state)),
        max_disruptions=stored.lock.run.max_disruptions,
        data=None if desired.data is None else PurePosixPath(desired.data.resolve().relative_to(state)),
        python_path=tuple(PurePosixPath(path.resolve().relative_to(code)) for path in desired.python_path),
    )


def _losses(stored: StoredBatch, prepared: PreparedBatch) -> Iterator[Loss]:
    """Yield what a cluster does for a batch and a script does not."""
    lock, most = stored.lock, prepared.batch.max_failed
    if lock.program.image != LOCAL_IMAGE:
        yield Loss(
            f"image: {lock.program.image}",
            "no container is started: trials use the programs on PATH, and their records say process",
        )
    if lock.run.pool:
        yield Loss(f"pool: {lock.run.pool}", "nodes, queues and prices are those of the script's own options")
    if most is not None and most < lock.trials:
        yield Loss(f"max_failed: {most}", "failed trials stop no others")
    yield Loss("network and rights", "trials have those of the user who starts the script")
