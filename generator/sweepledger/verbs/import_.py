"""Convert another tool's file to a spec, or trials to evidence.

It lists what could not be converted. With trials, FILE has finished trials: CSV, JSON Lines, or a storage of
Optuna (a SQLite database or a journal). They are written to sweeps/EVIDENCE.evidence.jsonl, marked as foreign, and
named under `start` in the spec of --name, a search that starts from them.
"""

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from sweepledger import search, spec
from sweepledger.cli import response
from sweepledger.cli.options import FormatOption, OutputOption
from sweepledger.cli.response import EXIT_PROBLEMS, Format, Response, has_errors
from sweepledger.cli.text.conversion import print_conversion
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.rounds.warm_start import WarmStart, warm_start
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.registry import IMPORTS, READERS
from sweepledger.exchange.spec_text import spec_text
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.problems import Problem
from sweepledger.safe_open import read_regular
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec
from sweepledger.storage import refuse_existing, storage_errors, write_file
from sweepledger.structs.names import SPECS, suggest_sweep_name
from sweepledger.structs.settings import Settings


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


LARGEST_IMPORT = 64 * 1024 * 1024
"""Maximum number of bytes of a file to import; each format has a smaller limit."""

DEFAULT_NAME = "imported"
"""The name of a sweep if neither its file nor the user names it."""

UNWRITTEN_FILE = "<imported>"
"""The file name in problems of a spec that is only printed."""


def import_(
    foreign: Annotated[
        ImportFormat, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(ImportFormat)}.")
    ],
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
    def work() -> Response:
        if foreign is ImportFormat.TRIALS:
            if name is None or output is not None:
                raise UsageError("trials need --name, the search that starts from them, and no --output")
            workspace = Workspace.find(response.current_folder())
            return _trials_response(warm_start(workspace, name, Path(file), evidence=evidence, study=study))
        if evidence is not None or study is not None:
            raise UsageError(f"--as and --study are for trials, got {foreign}")
        if file == "-":
            source = ForeignFile(sys.stdin.buffer.read(LARGEST_IMPORT + 1), "-")
        else:
            source = ForeignFile.read(Path(file))
        imported = import_spec(foreign, source, folder=response.current_folder(), name=name, output=output)
        if form is Format.TEXT:
            message = f"wrote {imported.path}\nnext: `sweep validate`" if imported.is_written else None
            print_conversion(imported.losses, imported.text, message)
        path = imported.path if imported.is_written else None
        data = {"spec": imported.text, "path": path, "losses": imported.losses}
        code = EXIT_PROBLEMS * has_errors(imported.problems)
        return Response(data, problems=imported.problems, exit_code=code)

    response.respond("import", form, work)


def _trials_response(written: WarmStart) -> Response:
    evidence = written.evidence
    data = {
        "sweep": written.sweep,
        "path": written.path,
        "foreign": {"format": evidence.format, "source": evidence.source, "digest": evidence.digest},
        "trials": len(evidence.trials),
        "ok": written.ok,
        "outside": written.outside,
    }
    outside = f"; {written.outside} outside of the search space left out" if written.outside else ""
    source = response.escape_control_characters(evidence.source)
    lines = (
        f"wrote {written.path}: {len(evidence.trials)} foreign trials of {source}, {written.ok} of them ok{outside}",
        "nobody can verify them: review the file like a spec",
        f"next: commit it with sweeps/{written.sweep}.yaml, then `sweep generate {written.sweep}`",
    )
    return Response(data, lines)


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


def import_spec(
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
    refuse_existing(output)
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
