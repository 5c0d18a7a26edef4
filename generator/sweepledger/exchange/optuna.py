"""Optuna: reads the search space and the finished trials from the storage of a study, through Optuna itself."""

import logging
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.exchange.conversion import ForeignFormat, Imported, LossList
from sweepledger.exchange.fields import exact_number, show_value
from sweepledger.exchange.optuna_script import write
from sweepledger.exchange.spec_parts import (
    CODE_DIR,
    PROGRAM,
    ForeignSearch,
    listed_keys,
    parameter_names,
    range_keys,
    run_keys,
    search_spec,
)
from sweepledger.exchange.trials import configuration_of
from sweepledger.formats.evidence_jsonl import ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError, require_size
from sweepledger.structs.names import suggest_sweep_name
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep

TOOL = "Optuna"
SQLITE = b"SQLite format 3\0"
WAL = slice(18, 20), b"\2\2"
"""Bytes of an SQLite file whose last writes may be in the file beside it."""
NOT_TABLES = "SELECT count(*) FROM sqlite_master WHERE coalesce(rootpage, 0) = 0"
"""Views, triggers and virtual tables, which can be programs that never end."""
MAX_BYTES = 64 * 1024 * 1024
MOST_SHOWN = 5
"""Studies that a refusal names."""
STATES = {"COMPLETE": Status.OK, "PRUNED": Status.PRUNED, "FAIL": Status.FAILED}


def _load(content: bytes, choose: Callable[[list[str]], str]) -> tuple[str, tuple[str, ...], Sequence[Any]]:
    """Return the name, directions and trials of the study that is chosen in a storage.

    Raises ForeignError, ToolError without Optuna.
    """
    require_size(content, MAX_BYTES)
    try:
        optuna: Any = import_module("optuna")
    except ImportError as error:
        raise ToolError.missing_library("a study is read by Optuna", extra="adaptive") from error
    level = logging.root.manager.disable
    logging.disable()  # what libraries log of old storages
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            tempfile.TemporaryDirectory(prefix="sweep-study-") as folder,
        ):
            copy = Path(folder, "study")  # which Optuna may change
            copy.write_bytes(content)
            if content.startswith(SQLITE):
                storage = _database(optuna, copy)
            else:
                backend = import_module("optuna.storages.journal").JournalFileBackend(str(copy))
                storage = optuna.storages.JournalStorage(backend)
            name = choose(optuna.get_all_study_names(storage))
            study = optuna.load_study(study_name=name, storage=storage)
            directions = tuple(direction.name.lower() for direction in study.directions)
            return name, directions, study.get_trials(deepcopy=False)
    except ForeignError:
        raise
    except Exception as error:  # the storage's libraries raise what they want
        reason = " ".join(str(error).split())[:200]
        hint = "other programs have SQLite files and journals, too: name the one of your study's storage"
        raise ForeignError(f"Optuna cannot read it: {reason}", hint=hint) from error
    finally:
        logging.disable(level)


def _database(optuna: Any, file: Path) -> Any:
    with closing(sqlite3.connect(file)) as database:
        if database.execute(NOT_TABLES).fetchone() != (0,):
            raise ForeignError(
                "must be Optuna's SQLite storage, which has tables alone, got a view or a trigger"
            )
    storage = optuna.storages.RDBStorage(f"sqlite:///{file}", skip_compatibility_check=True)
    if storage.get_current_version() != storage.get_head_version():
        storage.upgrade()
    return storage


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for the study of this name, or for the only study of a storage. Raises ForeignError."""
    own, directions, trials = _load(content, lambda names: _chosen(names, name))
    losses = LossList()
    if content.startswith(SQLITE) and content[WAL[0]] == WAL[1]:
        losses.add("write-ahead log", "trials that are still in the file beside it, NAME-wal, are not read")
    found: dict[str, list[Any]] = {}
    for trial in trials:
        for foreign, distribution in trial.distributions.items():
            found.setdefault(foreign, []).append(distribution)
    names = parameter_names(found, losses)
    parameters = {
        names[foreign]: _domain(foreign, used, len(trials), losses) for foreign, used in found.items()
    }
    if not parameters:
        raise ForeignError(
            f"the study {own!r} has no trials with parameters, and Optuna stores spaces only there",
            hint="run one trial first",
        )
    losses.add("sampler", "is not in a storage; written as tpe, Optuna's default")
    for place, goal in enumerate(directions[1:], start=2):
        losses.add(f"direction {place}: {goal}", "one objective is written; add `other_metrics` for several")
    search = ForeignSearch(TOOL, "tpe", parameters, goal=directions[0], cap=len(trials))
    spec = search_spec(search, suggest_sweep_name(own) or name, losses)
    losses.add(f"{len(trials)} trials", "their results stay in the storage")
    losses.add("program", f"is not in a storage; written as {CODE_DIR}/{PROGRAM}: write your program")
    spec |= {"program": PROGRAM} | run_keys(search, {"code": {"path": CODE_DIR}})
    return Imported(spec, tuple(losses))


def _chosen(studies: list[str], name: str) -> str:
    """Return the study with a name, which may have the form of a sweep's name. Raises ForeignError."""
    chosen = [each for each in studies if name in {each, suggest_sweep_name(each)}] or studies
    if not chosen:
        raise ForeignError("must have one study, got none", hint="a storage has one when a trial has run")
    if len(chosen) > 1 and name not in chosen:
        shown = ", ".join(map(show_value, studies[:MOST_SHOWN])) + (
            " and more" if studies[MOST_SHOWN:] else ""
        )
        first = suggest_sweep_name(studies[0]) or "NAME"
        raise ForeignError(
            f"must have one study, got {shown}",
            hint=f"choose one by its name in the form of a sweep's, for example `--name {first}`",
        )
    return name if name in chosen else chosen[0]


def _domain(parameter: str, used: list[Any], trials: int, losses: LossList) -> dict[str, Any]:
    """Return the keys of a parameter from its latest distribution. Raises ForeignError."""
    count = len({repr(distribution) for distribution in used})
    if count > 1:
        why = f"has {count} distributions in the trials; the last is written"
        losses.add(f"parameter {parameter}", why)
    if len(used) < trials:
        why = f"only {len(used)} of {trials} trials have it; write `when` if it is conditional"
        losses.add(f"parameter {parameter}", why)
    distribution, where = used[-1], f"distribution of {parameter}"
    if hasattr(distribution, "choices"):
        return listed_keys(distribution.choices, f"{where}.choices", losses)
    low, high, step = (
        None if (number := getattr(distribution, key)) is None else exact_number(number, f"{where}.{key}")
        for key in ("low", "high", "step")
    )
    assert low is not None
    assert high is not None
    is_whole = isinstance(distribution.low, int)
    return range_keys(low, high, is_log=distribution.log, is_whole=is_whole, step=step)


def read_trials(content: bytes, sweep: Sweep, study: str | None) -> tuple[str, Iterator[ForeignTrial]]:
    """Return the name of a study, and its finished trials.

    Raises ForeignError for a file that Optuna cannot read, or several studies without a name; ToolError without Optuna.
    """

    def choose(names: list[str]) -> str:
        if study is None and len(names) != 1:
            raise ForeignError(f"has {len(names)} studies, so --study must name one: {', '.join(names)}")
        if study is not None and study not in names:
            raise ForeignError(f"has no study {study!r}; it has {', '.join(names)}")
        return study or names[0]

    name, directions, stored = _load(content, choose)
    if len(directions) != len(sweep.metrics):
        raise ForeignError(
            f"the study has {len(directions)} objective(s), but the sweep has {len(sweep.metrics)} metric(s)"
        )
    for direction, metric in zip(directions, sweep.metrics, strict=True):
        if direction != str(metric.goal):
            raise ForeignError(f"the study's goal is {direction}, but that of {metric.name} is {metric.goal}")
    return name, _trials(stored, sweep)


def _trials(trials: Sequence[Any], sweep: Sweep) -> Iterator[ForeignTrial]:
    assert sweep.search is not None
    parameters = sweep.search.space.parameters
    names = [metric.name for metric in sweep.metrics]
    for trial in trials:
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


FORMAT = ForeignFormat(
    "optuna",
    "a storage of Optuna: an SQLite file or a journal",
    read=read,
    write=write,
    is_search=True,
    trials=read_trials,
    suffixes=(".db", ".sqlite", ".sqlite3", ".log", ".journal"),
)
