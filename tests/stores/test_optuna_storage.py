"""Results in Optuna's storages, read with Optuna itself."""

import math
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from sweepledger.distributions.choice import Choice
from sweepledger.errors import ToolError
from sweepledger.stores import optuna_storage
from sweepledger.stores.contents import TRIAL_KEY
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.values import Value
from tests.stores.contents import a_trial, some_contents


def place_of(kind: str, folder: Path) -> str:
    return f"sqlite:///{folder}/study.db" if kind == "sqlite" else str(folder / "journal.log")


def read_study(place: str) -> optuna.Study:
    storage = optuna_storage._storage(place)  # noqa: SLF001 - the same place, opened by Optuna's own classes
    return optuna.load_study(study_name="peak", storage=storage)


@pytest.mark.parametrize(
    "kind", [pytest.param("sqlite", marks=pytest.mark.full_suite("loads SQLAlchemy")), "journal"]
)
def test_each_finished_trial_is_written_once_with_its_values_and_curve(kind: str, tmp_path: Path) -> None:
    place, first = place_of(kind, tmp_path), some_contents(2)

    changes = [optuna_storage.write(contents, place) for contents in (first, first, some_contents(4))]

    study = read_study(place)
    assert [(change.added, change.present) for change in changes] == [(2, 0), (0, 2), (2, 2)]
    assert [trial.user_attrs[TRIAL_KEY] for trial in study.trials] == [
        trial.id for trial in some_contents(4).trials
    ]
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "PRUNED", "FAIL"]
    assert study.best_trial.params == {"rate": 0.002, "width": 64, "kind": "b", "layers": "[1,2]"}
    assert study.best_trial.distributions["rate"] == optuna.distributions.FloatDistribution(
        1e-4, 1.0, log=True
    )
    curve = study.best_trial.intermediate_values
    assert (curve[0], math.isnan(curve[5]), curve[10]) == (0.1, True, 1.0)
    assert study.best_trial.duration is not None
    assert study.best_trial.duration.total_seconds() == 60


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ((1, True, 1.5), "[1, True, 1.5]"),
        ((True, 1.0, None), "[True, 1.0, None]"),
        (((1, 2), "[1,2]"), """['[1,2]', '"[1,2]"']"""),
        (((1, 2), '"[1,2]"', "a"), """['[1,2]', '"\\\\"[1,2]\\\\""', 'a']"""),
        (((True, None), "[true,null]"), """['[true,null]', '"[true,null]"']"""),
        (((1,), (1.5,), "1"), "['[1]', '[1.5]', '1']"),
    ],
    ids=str,
)
def test_each_value_is_stored_as_what_ran(values: tuple[Value, ...], stored: str, tmp_path: Path) -> None:
    trials = tuple(a_trial(number, parameters={"a": value}) for number, value in enumerate(values))
    contents = some_contents(trials=trials, domains={"a": Choice(values)})
    place = place_of("journal", tmp_path)

    optuna_storage.write(replace(contents, trials=trials[:1]), place)
    optuna_storage.write(contents, place)

    assert repr([trial.params["a"] for trial in read_study(place).trials]) == stored


def test_several_objectives_become_a_study_with_their_names(tmp_path: Path) -> None:
    metrics = (Metric("score", Goal.MAXIMIZE), Metric("loss", Goal.MINIMIZE))
    incomplete = a_trial(9, metrics={"score": 1.0})
    contents = some_contents(2, metrics=metrics, trials=(*some_contents(2).trials, incomplete))

    change = optuna_storage.write(contents, place_of("journal", tmp_path))

    study = read_study(place_of("journal", tmp_path))
    assert [trial.values for trial in study.best_trials] == [[1.0, 0.5]]
    assert study.metric_names == ["score", "loss"]
    assert change.remarks == ("1 finished trials without all objectives are written as failed",)


def test_a_study_with_other_objectives_is_refused_with_the_way_out(tmp_path: Path) -> None:
    place = place_of("journal", tmp_path)
    optuna_storage.write(some_contents(1), place)

    with pytest.raises(ToolError) as error:
        optuna_storage.write(some_contents(2, metrics=(Metric("score", Goal.MINIMIZE),)), place)

    assert error.value.hint is not None
    assert "name another storage" in error.value.hint
