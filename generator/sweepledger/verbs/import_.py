"""Convert another tool's file to a spec, or trials to evidence.

It lists what could not be converted. With trials, FILE has finished trials, and the end of its name says in which
form. They are written to sweeps/EVIDENCE.evidence.jsonl, marked as foreign, and named under `start` in the spec of
--name, a search that starts from them.
"""

import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

from sweepledger import search, spec
from sweepledger.cli import response
from sweepledger.cli.options import FormatOption, OutputOption, argument, format_argument, option
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.exchange.conversion import Exported, Imported
from sweepledger.exchange.registry import formats
from sweepledger.exchange.spec_text import spec_text
from sweepledger.formats import evidence_jsonl
from sweepledger.formats.evidence_jsonl import MAX_EVIDENCE_TRIALS, ForeignEvidence
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.operations.repository.spec_edit import automatic_edit
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.evidence import evidence_file
from sweepledger.problems import Problem
from sweepledger.reader.yaml_edit import set_value
from sweepledger.safe_open import read_regular
from sweepledger.search.encoding import encode_space
from sweepledger.storage import refuse_existing, storage_errors, write_file
from sweepledger.structs.methods import methods_with
from sweepledger.structs.names import SPECS, is_sweep_name, suggest_sweep_name
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import bytes_digest
from sweepledger.verbs.export import converted

TRIALS = "trials"
"""The format that is no spec, but what a search starts from."""
FORMATS = (*(name for name, each in formats().items() if each.read), TRIALS)
BY_SUFFIX = {suffix: each for each in formats().values() for suffix in each.suffixes}
"""Formats with finished trials, by the end of a file's name."""

LARGEST_IMPORT = 64 * 1024 * 1024
"""Maximum number of bytes of a file to import; each format has a smaller limit."""


UNWRITTEN_FILE = "<imported>"
"""The file name in problems of a spec that is only printed."""


def import_(
    foreign: str = format_argument(FORMATS),
    file: str = argument(
        "FILE", f"File to import; `-` reads standard input. Of trials: {', '.join(sorted(BY_SUFFIX))}."
    ),
    name: str | None = option(
        "--name NAME",
        "Name the sweep; default: the name in the file. Of trials: the search that starts from them.",
    ),
    output: OutputOption = None,
    evidence: str | None = option("--as EVIDENCE", "Of trials: name them; default: the name of the file."),
    study: str | None = option("--study STUDY", "Of trials: the study, if the file has several."),
    form: FormatOption = response.Format.TEXT,
) -> response.Response:
    if foreign == TRIALS:
        if name is None or output is not None:
            raise UsageError("trials need --name, the search that starts from them, and no --output")
        workspace = Workspace.find(response.current_folder())
        return warm_start(workspace, name, Path(file), evidence=evidence, study=study)
    if evidence is not None or study is not None:
        raise UsageError(f"--as and --study are for trials, got {foreign}")
    refuse_existing(output)
    content, folder = read_foreign(file), response.current_folder()
    imported, problems = import_spec(
        foreign, content, Path(file).as_posix(), folder=folder, name=name, output=output
    )
    return converted(form, "spec", imported, problems, output, then="\nnext: `sweep validate`")


def read_foreign(file: str) -> bytes:
    """Return a file of another tool. Raises UsageError if it does not exist, StorageError if it cannot be read."""
    if file == "-":
        return sys.stdin.buffer.read(LARGEST_IMPORT + 1)
    with storage_errors(Path(file)):
        content = read_regular(Path(file), LARGEST_IMPORT)
    if content is None:
        raise UsageError(f"{file} is no file", hint="`-` reads standard input")
    return content


def import_spec(
    format_name: str,
    content: bytes,
    source: str,
    *,
    folder: Path,
    name: str | None = None,
    output: Path | None = None,
) -> tuple[Exported, tuple[Problem, ...]]:
    """Convert a file to a spec, and check it; return the spec and its problems.

    `source` is the file's path as the user typed it, `output` the path of the spec. Raises SpecError, UsageError.
    """
    try:
        settings = Workspace.find(folder).settings
    except RepositoryError:
        settings = Settings()
    name = name or (output.stem if output else None)
    imported, text = _convert_spec(format_name, content, source, name)
    path = output.as_posix() if output else f"{SPECS}/{imported.spec['name']}.yaml"
    problems = _spec_problems(text, path, settings, content)
    if output is None:  # point into the text that is printed, or the source
        problems = tuple(
            replace(problem, file=UNWRITTEN_FILE if problem.file == path else source) for problem in problems
        )
    return Exported(text, imported.losses), problems


def _convert_spec(format_name: str, content: bytes, source: str, name: str | None) -> tuple[Imported, str]:
    stem = PurePosixPath(source).stem
    chosen = formats()[format_name]
    assert chosen.read is not None
    try:
        imported = chosen.read(content, name=name or suggest_sweep_name(stem) or "imported")
        if name:
            imported = replace(imported, spec={**imported.spec, "name": name})
        return imported, spec_text(imported, f"{PurePosixPath(source).name} ({format_name})")
    except ForeignError as error:
        line, column = (error.line, 1) if error.line else (0, 0)
        hint = error.hint or f"{format_name} is {chosen.summary}; correct what is named above in a copy of it"
        problem = Problem(source, line, column, "", str(error), code="foreign-file", hint=hint)
        raise SpecError([problem]) from error


def _spec_problems(text: str, path: str, settings: Settings, content: bytes) -> tuple[Problem, ...]:
    def beside(name: str) -> bytes | None:
        """Return the source as the content of a table that is too large for the spec; None for other files."""
        return content if name.endswith(".csv") else None

    parsed = spec.parse(text.encode(), path, settings, beside=beside)
    if not isinstance(parsed, spec.ParsedSpec):
        return parsed
    expansion = search.explore(parsed.sweep, parsed.source)
    problems = expansion.warnings if isinstance(expansion, search.Expansion) else expansion
    return tuple(sorted([*parsed.warnings, *problems]))


def warm_start(
    workspace: Workspace, name: str, file: Path, *, evidence: str | None = None, study: str | None = None
) -> response.Response:
    """Convert a file, write `sweeps/<evidence>.evidence.jsonl`, and name it under `start` in the spec.

    Raises UsageError for a sweep that is no search, a file that cannot be read, or without a usable trial.
    """
    (sweep,) = workspace.sweeps([name])
    if sweep.search is None or not sweep.search.method.has_model:
        raise UsageError(
            f"{sweep.name} has no model that learns from other trials",
            hint=f"use one of the methods {', '.join(methods_with(lambda method: method.has_model))}",
        )
    label = evidence or suggest_sweep_name(file.name.partition(".")[0])
    if label is None or not is_sweep_name(label):
        raise UsageError(f"{label or file.name!r} is no name", hint="name the evidence: --as old-study")
    if (workspace.root / SPECS / f"{label}.yaml").exists():
        hint = "name the evidence otherwise: --as old-study"
        raise UsageError(f"{label} is a sweep of this repository", hint=hint)
    converted, outside = _convert(file, sweep, sweep.search, study)
    path = evidence_file(label)
    spec_file = workspace.root / sweep.path
    edited = spec_file.read_text(encoding="utf-8")
    if label not in sweep.search.start:
        with automatic_edit(sweep.path, f"add it by hand: start: [{label}]"):
            edited = set_value(edited, ("start",), label, append=True)
    write_file(workspace.root / path, evidence_jsonl.write(converted).encode())
    write_file(spec_file, edited.encode())
    source, trials = response.escape_control_characters(converted.source), len(converted.trials)
    ok = sum(trial.status is Status.OK for trial in converted.trials)
    left_out = f"; {outside} outside of the search space left out" if outside else ""
    data = {
        "sweep": sweep.name,
        "path": path,
        "foreign": {"format": converted.format, "source": converted.source, "digest": converted.digest},
        "trials": trials,
        "ok": ok,
        "outside": outside,
    }
    lines = (
        f"wrote {path}: {trials} foreign trials of {source}, {ok} of them ok{left_out}",
        "nobody can verify them: review the file like a spec",
        f"next: commit it with sweeps/{sweep.name}.yaml, then `sweep generate {sweep.name}`",
    )
    return response.Response(data, lines)


def _convert(
    file: Path, sweep: Sweep, method: AdaptiveSearch, study: str | None
) -> tuple[ForeignEvidence, int]:
    """Return the evidence, and the number of finished trials without a parameter or outside the search space."""
    if not file.is_file():
        raise UsageError(f"no file {file}", hint="give an export, or a storage of trials")
    form = BY_SUFFIX.get(file.suffix.lower())
    if form is None or form.trials is None:
        hint = f"it must end in {', '.join(sorted(BY_SUFFIX))}"
        raise UsageError(f"{file.name}: unknown kind of file", hint=hint)
    with storage_errors(file):
        content = file.read_bytes()
    try:
        study_name, found = form.trials(content, sweep, study)
        trials = tuple(found)
    except ForeignError as error:
        line = "" if error.line is None else f":{error.line}"
        hint = "correct the file, or export it again"
        raise UsageError(f"{file.name}{line}: {error}", hint=hint) from error
    space = encode_space(method.space)
    # Other tools do not list what does not vary.
    complete = (replace(trial, configuration={**space.constants, **trial.configuration}) for trial in trials)
    usable = tuple(trial for trial in complete if space.encode(trial.configuration) is not None)
    if not any(trial.status is Status.OK for trial in usable):
        metrics = ", ".join(metric.name for metric in sweep.metrics)
        names = ", ".join(method.space.names)
        raise UsageError(
            f"{file.name}: no finished trial has values in the space of {sweep.name}, and its metrics",
            hint=f"it needs columns for {names} and {metrics}",
        )
    if len(usable) > MAX_EVIDENCE_TRIALS:
        text = f"{file.name}: must have at most {MAX_EVIDENCE_TRIALS} trials, got {len(usable)}"
        raise UsageError(text, hint="keep the best and a sample of the others")
    source = file.name if study_name is None else f"{file.name}: {study_name}"
    return ForeignEvidence(form.name, source, bytes_digest(content), usable), len(trials) - len(usable)
