"""`sweep import trials`: finished trials of another tool become foreign evidence that a search starts from."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from sweepledger import storage
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.rounds.evidence import evidence_file
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.exchange.evidence import optuna_study, table
from sweepledger.formats import evidence_jsonl
from sweepledger.formats.evidence_jsonl import (
    MAX_EVIDENCE_TRIALS,
    ForeignEvidence,
)
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader.yaml_edit import append_item
from sweepledger.search.encoding import encode_space
from sweepledger.structs.names import SPECS, is_sweep_name, suggest_sweep_name
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import MODEL_METHODS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import bytes_digest

READERS = {".csv": table.read_csv, ".jsonl": table.read_jsonl, ".ndjson": table.read_jsonl}
OPTUNA_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3", ".log", ".journal"})


@dataclass(frozen=True)
class WarmStart:
    """Foreign evidence that was written, and the spec that names it."""

    sweep: str
    name: str
    path: str
    evidence: ForeignEvidence
    outside: int
    """Finished trials that lack a parameter of the search, or have a value outside of its space: left out."""

    @property
    def ok(self) -> int:
        """The number of trials with all metrics."""
        return sum(trial.status is Status.OK for trial in self.evidence.trials)


def warm_start(
    workspace: Workspace, name: str, file: Path, *, evidence: str | None = None, study: str | None = None
) -> WarmStart:
    """Convert a file, write `sweeps/<evidence>.evidence.jsonl`, and name it under `start` in the spec.

    Raises UsageError for a sweep that is no search, a file that cannot be read, or without a usable trial.
    """
    (sweep,) = workspace.sweeps([name])
    if sweep.search is None or not sweep.search.method.is_sampler:
        raise UsageError(
            f"{sweep.name} has no model that learns from other trials",
            hint=f"use one of the methods {', '.join(sorted(MODEL_METHODS))}",
        )
    label = evidence or suggest_sweep_name(file.name.partition(".")[0])
    if label is None or not is_sweep_name(label):
        raise UsageError(f"{label or file.name!r} is no name", hint="name the evidence: --as old-study")
    if (workspace.root / SPECS / f"{label}.yaml").exists():
        raise UsageError(
            f"{label} is a sweep of this repository", hint="name the evidence otherwise: --as old-study"
        )
    converted, outside = _convert(file, sweep, study)
    path = evidence_file(label)
    spec = workspace.root / sweep.path
    edited = _with_start(spec.read_text(encoding="utf-8"), sweep, label)
    storage.write_file(workspace.root / path, evidence_jsonl.write(converted).encode())
    storage.write_file(spec, edited.encode())
    return WarmStart(sweep.name, label, path, converted, outside)


def _convert(file: Path, sweep: Sweep, study: str | None) -> tuple[ForeignEvidence, int]:
    form = file.suffix.lower()
    if not file.is_file():
        raise UsageError(f"no file {file}", hint="give an export, or a storage of Optuna")
    with storage.storage_errors(file):
        content = file.read_bytes()
    try:
        if form in READERS:
            source, trials = file.name, tuple(READERS[form](content, sweep))
        elif form in OPTUNA_SUFFIXES:
            with tempfile.TemporaryDirectory(prefix="sweep-study-") as folder:
                copy = Path(folder) / f"study{form}"
                storage.write_file(copy, content)
                study_name, found = optuna_study.study_trials(copy, sweep, study)
                source, trials = f"{file.name}: {study_name}", tuple(found)
        else:
            raise UsageError(
                f"{file.name}: unknown kind of file",
                hint=f"it must end in {', '.join(sorted({*READERS, *OPTUNA_SUFFIXES}))}",
            )
    except ForeignError as error:
        line = "" if error.line is None else f":{error.line}"
        raise UsageError(
            f"{file.name}{line}: {error}", hint="correct the file, or export it again"
        ) from error
    space = encode_space(sweep.search.space) if sweep.search else None
    # Other tools do not list what does not vary.
    complete = (
        tuple(replace(trial, configuration={**space.constants, **trial.configuration}) for trial in trials)
        if space
        else ()
    )
    usable = tuple(trial for trial in complete if space and space.encode(trial.configuration) is not None)
    if not any(trial.status is Status.OK for trial in usable):
        metrics = ", ".join(metric.name for metric in sweep.metrics)
        names = ", ".join(sweep.search.space.names) if sweep.search else ""
        raise UsageError(
            f"{file.name}: no finished trial has values in the space of {sweep.name}, and its metrics",
            hint=f"it needs columns for {names} and {metrics}",
        )
    if len(usable) > MAX_EVIDENCE_TRIALS:
        hint = "keep the best and a sample of the others"
        raise UsageError(
            f"{file.name}: must have at most {MAX_EVIDENCE_TRIALS} trials, got {len(usable)}", hint=hint
        )
    kind = "optuna" if form in OPTUNA_SUFFIXES else form.removeprefix(".")
    return ForeignEvidence(kind, source, bytes_digest(content), usable), len(trials) - len(usable)


def _with_start(text: str, sweep: Sweep, label: str) -> str:
    assert sweep.search is not None
    if label in sweep.search.start:
        return text
    try:
        return append_item(text, ("start",), label)
    except ValueError as error:
        raise RepositoryError(
            f"{sweep.path} cannot be changed automatically: {error}", hint=f"add it by hand: start: [{label}]"
        ) from error
