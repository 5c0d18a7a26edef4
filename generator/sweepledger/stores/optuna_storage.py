"""Optuna: a study for each sweep, in a database or a journal, which its dashboard opens.

A trial is added as a whole, in one transaction or one line, so an interruption leaves no incomplete trial.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.stores.contents import (
    TRIAL_KEY,
    VERSION_KEY,
    FinishedTrial,
    StoreChange,
    StoreKind,
    SweepContents,
    library,
    seconds,
)
from sweepledger.structs.domain import NumberRange
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value, canonical_json, is_number

EXTRA = "adaptive"


def write(contents: SweepContents, place: str) -> StoreChange:
    """Add the trials that the study lacks; `place` is the URL of a database, or the path of a journal.

    Raises ToolError.
    """
    optuna: Any = library("optuna", extra=EXTRA)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            study_name=contents.sweep,
            storage=_storage(place),
            directions=[str(metric.goal) for metric in contents.metrics],
            load_if_exists=True,
        )
        _require_directions(study, contents)
        added, failed = _add(optuna, study, contents)
        study.set_user_attr(VERSION_KEY, contents.version)
    except (optuna.exceptions.OptunaError, ValueError, OSError, ImportError) as error:
        raise ToolError(
            f"Optuna's storage {place}: {error}",
            hint="a study keeps its objectives and the values of its categories: name another storage if they changed",
        ) from error
    remarks = [f"{failed} finished trials without all objectives are written as failed"] if failed else []
    return StoreChange(added, len(contents.trials) - added, tuple(remarks))


def version(sweep: str, place: str) -> str | None:
    """Return the version of a sweep's results in the storage; None if some may be missing. Raises ToolError."""
    optuna: Any = library("optuna", extra=EXTRA)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        attributes = optuna.load_study(study_name=sweep, storage=_storage(place)).user_attrs
    except KeyError:
        return None
    except (optuna.exceptions.OptunaError, ValueError, OSError, ImportError) as error:
        raise ToolError(f"Optuna's storage {place}: {error}", hint="check the URL and try again") from error
    known = attributes.get(VERSION_KEY)
    return known if isinstance(known, str) else None


def _storage(place: str) -> Any:
    if "://" in place:
        return place
    journal: Any = library("optuna.storages.journal", extra=EXTRA)
    storages: Any = library("optuna.storages", extra=EXTRA)
    return storages.JournalStorage(journal.JournalFileBackend(place))


def _require_directions(study: Any, contents: SweepContents) -> None:
    """Refuse a study with other objectives, which Optuna would not notice. Raises ValueError."""
    goals = [str(metric.goal) for metric in contents.metrics]
    present = [direction.name.lower() for direction in study.directions]
    if present != goals:
        raise ValueError(
            f"its study {contents.sweep} must {' and '.join(goals)}, got {' and '.join(present)}"
        )


def _add(optuna: Any, study: Any, contents: SweepContents) -> tuple[int, int]:
    """Add the missing trials; return their number, and how many `ok` trials are written as failed."""
    storage, identity = study._storage, study._study_id  # noqa: SLF001 - add_trial makes a copy of all trials
    known = {trial.user_attrs.get(TRIAL_KEY) for trial in study.get_trials(deepcopy=False)}
    missing = [trial for trial in contents.trials if trial.id not in known]
    names = {name for trial in missing for name in trial.parameters}
    domains = {name: _distribution(optuna, name, contents) for name in sorted(names)}
    if len(contents.metrics) > 1 and not known:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names([metric.name for metric in contents.metrics])
    failed = 0
    for trial in missing:
        frozen = _frozen(optuna, trial, contents, domains)
        failed += trial.status is Status.OK and frozen.state == optuna.trial.TrialState.FAIL
        storage.create_new_trial(identity, template_trial=frozen)
    return len(missing), failed


def _frozen(
    optuna: Any, trial: FinishedTrial, contents: SweepContents, domains: Mapping[str, "_Domain"]
) -> Any:
    values = [trial.metrics.get(metric.name) for metric in contents.metrics]
    states = optuna.trial.TrialState
    state = {Status.OK: states.COMPLETE, Status.PRUNED: states.PRUNED}.get(trial.status, states.FAIL)
    if state == states.COMPLETE and None in values:
        state = states.FAIL
    is_single = len(values) == 1
    parameters = {
        name: domains[name].value(value) for name, value in trial.parameters.items() if name in domains
    }
    return optuna.trial.FrozenTrial(
        number=-1,  # the storage counts
        trial_id=-1,
        state=state,
        value=None,
        values=values if state == states.COMPLETE else None,
        datetime_start=_time(seconds(trial.started)),
        datetime_complete=_time(seconds(trial.finished)),
        params=parameters,
        distributions={name: domains[name].distribution for name in parameters},
        user_attrs={**trial.labels, **{f"metrics.{name}": value for name, value in trial.metrics.items()}},
        system_attrs={},
        # Optuna has intermediate values only where there is one objective.
        intermediate_values={
            step: math.nan if value is None else value
            for step, value in trial.curves.get(contents.metrics[0].of_curve, ())
            if is_single
        },
    )


def _time(seconds: float) -> datetime:
    """Return a local time, as in Optuna's own trials."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class _Domain:
    """The distribution of a parameter, and its categories by the JSON of their values."""

    distribution: Any
    categories: Mapping[str, Any] | None = None

    def value(self, value: Value) -> Any:
        """Return a value in the type of its distribution: numbers of a float parameter are floats."""
        if self.categories is not None:
            return _Category(self.categories[canonical_json(value)])
        assert is_number(value)
        return int(value) if type(self.distribution).__name__ == "IntDistribution" else float(value)


class _Category:
    """A category that equals only itself: Optuna looks categories up by Python's equality, in which true is 1."""

    def __init__(self, category: Any) -> None:
        self.category = category

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self.category) and other == self.category

    def __hash__(self) -> int:
        return hash(self.category)

    def __repr__(self) -> str:
        return repr(self.category)


JSON_STARTS = ("[", "{", '"')


def _distribution(optuna: Any, name: str, contents: SweepContents) -> _Domain:
    """Return the distribution of a parameter: bounds for numbers, categories for all other values.

    A study accepts other bounds later, but no other categories, so the categories are all values of the spec.
    """
    domain = contents.domains.get(name)
    ran = [trial.parameters[name] for trial in contents.trials if name in trial.parameters]
    shape = None if domain is None else domain.shape
    values = [*(() if domain is None else domain.listed), *ran]
    if all(map(is_number, values)):
        numbers = [*(float(value) for value in values), *(() if shape is None else map(float, shape.ends))]  # type: ignore[arg-type]
        low, high = min(numbers), max(numbers)
        is_whole = all(map(float.is_integer, numbers)) and (
            domain is None or domain.listed or domain.is_whole
        )
        is_log = low > 0 and isinstance(shape, NumberRange) and shape.is_log
        if is_whole and not any(isinstance(value, float) for value in values):
            return _Domain(optuna.distributions.IntDistribution(int(low), int(high), log=is_log))
        return _Domain(optuna.distributions.FloatDistribution(low, high, log=is_log))
    has_lists = any(isinstance(value, list | tuple) for value in values)
    # JSON tells 1 from true, which Python's equality does not.
    categories: dict[str, Any] = {}
    for value in values:
        # Lists are JSON text as categories, and so are texts that could be taken for one.
        is_json = isinstance(value, list | tuple) or (
            has_lists and isinstance(value, str) and value.startswith(JSON_STARTS)
        )
        categories.setdefault(canonical_json(value), canonical_json(value) if is_json else value)
    distribution = optuna.distributions.CategoricalDistribution(tuple(categories.values()))
    return _Domain(distribution, categories)


STORE = StoreKind("optuna", "sqlite:///optuna.db", write, version)
