"""Finished trials of a study in Optuna's storage: a SQLite database or a journal file, read by Optuna itself."""

import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.exchange.evidence.space_values import configuration_of
from sweepledger.formats.evidence_jsonl import ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep

SQLITE = b"SQLite format 3\0"
STATES = {"COMPLETE": Status.OK, "PRUNED": Status.PRUNED, "FAIL": Status.FAILED}


def read_trials(content: bytes, sweep: Sweep, study: str | None) -> tuple[str, Iterator[ForeignTrial]]:
    """Return the name of a study, and its finished trials.

    Raises ForeignError for a file that Optuna cannot read, or several studies without a name; ToolError without Optuna.
    """
    with tempfile.TemporaryDirectory(prefix="sweep-study-") as folder:
        copy = Path(folder, "study")  # Optuna may change it
        copy.write_bytes(content)
        name, trials = _study_trials(copy, sweep, study)
        return name, iter(tuple(trials))


def _study_trials(file: Path, sweep: Sweep, study: str | None) -> tuple[str, Iterator[ForeignTrial]]:
    try:
        optuna: Any = importlib.import_module("optuna")
    except ImportError as error:
        raise ToolError.missing_library("a study is read by Optuna", extra="adaptive") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        loaded = _load(optuna, file, study)
    except ForeignError:
        raise
    except Exception as error:  # the storage's libraries raise what they want
        raise ForeignError(f"Optuna cannot read it: {' '.join(str(error).split())[:200]}") from error
    if len(loaded.directions) != len(sweep.metrics):
        raise ForeignError(
            f"the study has {len(loaded.directions)} objective(s), but the sweep has {len(sweep.metrics)} metric(s)"
        )
    for direction, metric in zip(loaded.directions, sweep.metrics, strict=True):
        if direction.name != metric.goal.name:
            raise ForeignError(
                f"the study's goal is {direction.name.lower()}, but that of {metric.name} is {metric.goal}"
            )
    return str(loaded.study_name), _trials(loaded, sweep)


def _load(optuna: Any, file: Path, study: str | None) -> Any:
    if file.read_bytes()[: len(SQLITE)] == SQLITE:
        storage: Any = optuna.storages.RDBStorage(f"sqlite:///{file}")
    else:
        journal = importlib.import_module("optuna.storages.journal")
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(file)))
    names = optuna.get_all_study_names(storage)
    if study is None and len(names) != 1:
        raise ForeignError(f"has {len(names)} studies, so --study must name one: {', '.join(names)}")
    if study is not None and study not in names:
        raise ForeignError(f"has no study {study!r}; it has {', '.join(names)}")
    return optuna.load_study(study_name=study or names[0], storage=storage)


def _trials(study: Any, sweep: Sweep) -> Iterator[ForeignTrial]:
    assert sweep.search is not None
    parameters = sweep.search.space.parameters
    names = [metric.name for metric in sweep.metrics]
    for trial in study.get_trials(deepcopy=False):
        status = STATES.get(trial.state.name)
        if status is None:
            continue
        values = trial.values or ()
        if not values and status is Status.PRUNED and trial.intermediate_values:
            values = (trial.intermediate_values[max(trial.intermediate_values)],)
        finite = [value for value in values if value is not None and abs(value) < float("inf")]
        metrics = dict(zip(names, values, strict=True)) if len(finite) == len(names) else {}
        if status is Status.OK and not metrics:
            status = Status.DIVERGED
        yield ForeignTrial(configuration_of(parameters, trial.params.__getitem__), metrics, status)
