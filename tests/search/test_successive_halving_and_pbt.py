"""Halving, hyperband, asha and pbt: which trials continue, with which resource and parent."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sweepledger.search.adaptive import Observation, Round, SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.search.searches import a_search, an_observation, loss, recorded, searched

EPOCHS = {"parameter": "epochs", "min": 1, "max": 27, "eta": 3}
GOING_ON = ("halving", "hyperband", "asha", "pbt")


def a_climb(method: str, **changes: Any) -> Sweep:
    return a_search(**{"method": method, "rounds": {"size": 27, "max": 9}, "resource": EPOCHS, **changes})


def epochs(trials: Sequence[Observation]) -> list[list[int]]:
    results: dict[int, list[int]] = {}
    for observation in trials:
        results.setdefault(observation.round or 0, []).append(int(str(observation.configuration["epochs"])))
    return [sorted(results[number]) for number in sorted(results)]


def values(assignment: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in assignment.items() if name != "epochs"}


def test_a_search_ends_after_its_last_rung() -> None:
    sweep = a_climb("halving")

    outcome = next_round(sweep, searched(sweep, loss, 4), number=5)

    assert isinstance(outcome, SearchEnd)
    assert outcome.reason == "last-rung"


@pytest.mark.parametrize("method", GOING_ON)
def test_with_a_metric_to_maximize_the_largest_values_are_promoted(method: str) -> None:
    sweep = a_climb(method, metric={"name": "accuracy", "goal": "maximize"})

    trials = searched(sweep, lambda item: -loss(item), 2)

    of_first = {observation.id: observation.values or () for observation in trials if observation.round == 1}
    gone = {observation.parent for observation in trials if observation.round == 2 and observation.parent}
    assert max(of_first, key=lambda name: of_first[name]) in gone
    assert min(of_first, key=lambda name: of_first[name]) not in gone


@pytest.mark.parametrize("method", GOING_ON)
@pytest.mark.parametrize("status", [Status.FAILED, Status.MISSING])
def test_only_ok_trials_are_promoted(method: str, status: Status) -> None:
    sweep = a_climb(method, rounds={"size": 6, "max": 9})
    first = next_round(sweep, (), number=1)
    assert isinstance(first, Round)
    known = recorded(first, loss)
    broken = [
        an_observation(observation.configuration, observation.values, status=status)
        for observation in known[:2]
    ]

    outcome = next_round(sweep, [*broken, *known[2:]], number=2)

    assert isinstance(outcome, Round)
    assert not {suggestion.parent for suggestion in outcome.suggestions} & {
        observation.id for observation in broken
    }


def test_a_population_without_ok_members_ends_the_search() -> None:
    sweep = a_climb("pbt", rounds={"size": 4})
    first = next_round(sweep, (), number=1)
    assert isinstance(first, Round)

    outcome = next_round(sweep, recorded(first, lambda _: None), number=2)

    assert isinstance(outcome, SearchEnd)
    assert outcome.reason == "exhausted"


@pytest.mark.parametrize("method", GOING_ON)
def test_configurations_are_legal_on_every_rung(method: str) -> None:
    sweep = a_climb(
        method,
        rounds={"size": 12, "max": 4},
        constraints=["width * depth <= 512"],
        parameters={
            "optimizer": {"values": ["adam", "sgd"]},
            "momentum": {"min": 0.0, "max": 0.99, "when": {"optimizer": "sgd"}},
            "width": {"values": [32, 64, 128, 256]},
            "depth": {"min": 1, "max": 8},
        },
    )

    trials = searched(sweep, lambda item: float(item["depth"]), 4)

    assert len({canonical_json(trial.configuration) for trial in trials}) == len(trials)
    for observation in trials:
        assert (
            int(str(observation.configuration["width"])) * int(str(observation.configuration["depth"])) <= 512
        )
        assert ("momentum" in observation.configuration) is (observation.configuration["optimizer"] == "sgd")


@pytest.mark.parametrize("method", GOING_ON)
def test_run_cap_limits_all_rungs_together(method: str) -> None:
    assert len(searched(a_climb(method, run_cap=30), loss, 9)) == 30
