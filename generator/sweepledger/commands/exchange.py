"""`sweep import` and `sweep export`: convert other tools' files to specs and back, and batches to scripts."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from sweepledger import search, spec
from sweepledger.commands.local import DesiredState, RefusedBatch
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine.local import batch_script
from sweepledger.engine.local.batch_script import PreparedBatch
from sweepledger.engine.local.volumes import StateFolders, write_files
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.registry import IMPORTS, READERS, WRITERS
from sweepledger.exchange.spec_text import spec_text
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Mirror
from sweepledger.repo.state import create_state
from sweepledger.safe_open import read_regular
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec
from sweepledger.storage import output_path, storage_errors, write_file
from sweepledger.structs.names import SPECS, suggest_sweep_name
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.settings import Settings

LARGEST_IMPORT = 64 * 1024 * 1024
"""Maximum number of bytes of a file to import; each format has a smaller limit."""

DEFAULT_NAME = "imported"
"""The name of a sweep if neither its file nor the user names it."""

UNWRITTEN_FILE = "<imported>"
"""The file name in problems of a spec that is only printed."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file of another tool."""

    content: bytes
    name: str
    """The path as the user would type it; `-` is standard input."""

    @classmethod
    def read(cls, path: Path) -> "ForeignFile":
        """Read a file. Raises UsageError if it does not exist, StorageError if it cannot be read."""
        with storage_errors(path):
            content = read_regular(path, LARGEST_IMPORT)
        if content is None:
            raise UsageError(f"{path} is no file", hint="`-` reads standard input")
        return cls(content, path.as_posix())


@dataclass(frozen=True, slots=True)
class ImportedSpec:
    """A spec converted from a foreign file."""

    text: str
    losses: tuple[Loss, ...]
    problems: tuple[Problem, ...]
    """Problems of the spec, which is returned nevertheless, so that the user can fix it."""
    path: str
    """The path to which it was written, or would be written."""
    is_written: bool

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "spec": self.text,
            "path": self.path if self.is_written else None,
            "losses": list(map(asdict, self.losses)),
        }


def import_(
    format_name: str,
    source: ForeignFile,
    *,
    folder: Path,
    name: str | None = None,
    output: Path | None = None,
) -> ImportedSpec:
    """Convert a file to a spec, check it, and write it if an output is given.

    Raises SpecError, UsageError, StorageError if the output cannot be written.
    """
    try:
        settings = Workspace.find(folder).settings
    except RepositoryError:
        settings = Settings()
    _require_new(output)
    imported, text = _read_foreign(format_name, source, name or (output.stem if output else None))
    path = output.as_posix() if output else f"{SPECS}/{imported.spec['name']}.yaml"
    problems = _spec_problems(text, path, settings, source)
    if output is None:
        # Point into the text that is printed, or the source, instead of a file that does not exist.
        problems = tuple(
            replace(problem, file=UNWRITTEN_FILE if problem.file == path else source.name)
            for problem in problems
        )
    else:
        write_file(output, text.encode())
    return ImportedSpec(text, imported.losses, problems, path, is_written=output is not None)


def _require_new(output: Path | None) -> None:
    """Refuse an output file that exists, or that is reached through a link. Raises UsageError, StorageError."""
    if output is None:
        return
    if os.path.lexists(output):
        raise UsageError(
            f"{output} exists and is not overwritten", hint="choose another --output, or remove it"
        )
    output_path(output)


def _read_foreign(format_name: str, source: ForeignFile, name: str | None) -> tuple[Imported, str]:
    """Return a spec and its text."""
    stem = PurePosixPath(source.name).stem
    try:
        imported = READERS[format_name](source.content, name=name or suggest_sweep_name(stem) or DEFAULT_NAME)
        if name:
            imported = replace(imported, spec={**imported.spec, "name": name})
        return imported, spec_text(imported, f"{PurePosixPath(source.name).name} ({format_name})")
    except ForeignError as error:
        line, column = (error.line, 1) if error.line else (0, 0)
        hint = (
            error.hint
            or f"{format_name} is {IMPORTS[format_name]}; correct what is named above in a copy of it"
        )
        problem = Problem(source.name, line, column, "", str(error), code="foreign-file", hint=hint)
        raise SpecError([problem]) from error


def _spec_problems(text: str, path: str, settings: Settings, source: ForeignFile) -> tuple[Problem, ...]:
    def beside(name: str) -> bytes | None:
        """A table too large for a spec goes beside it: the source itself, as yet under another name."""
        return source.content if name.endswith(".csv") else None

    parsed = spec.parse(text.encode(), path, settings, beside=beside)
    if not isinstance(parsed, ParsedSpec):
        return parsed
    expansion = search.explore(parsed.sweep, parsed.source)
    problems = expansion.warnings if isinstance(expansion, Expansion) else expansion
    return tuple(sorted([*parsed.warnings, *problems]))


@dataclass(frozen=True, slots=True)
class ExportedSweep:
    """A file of another tool."""

    text: str
    losses: tuple[Loss, ...]
    warnings: tuple[Problem, ...]
    path: str | None
    """The path to which it was written; None if it was printed."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"text": self.text, "path": self.path, "losses": list(map(asdict, self.losses))}


SEARCH_FORMATS = frozenset({"katib", "optimization-job", "optuna", "wandb"})
"""Formats of tools that run the search themselves."""


def export(workspace: Workspace, format_name: str, name: str, *, output: Path | None = None) -> ExportedSweep:
    """Convert a sweep to the format of another tool. Raises SpecError, UsageError."""
    _require_new(output)
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
    _require_new(output)
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
        stored.sweep,
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
