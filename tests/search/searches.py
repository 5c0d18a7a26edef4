"""Adaptive searches and observations for tests: valid by default, one change per test."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from sweepledger.search.adaptive import Observation, Round, SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.search.candidates import feasible_configurations
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, digest
from tests.written_specs import good

Score = Callable[[Mapping[str, Any]], float | tuple[float, ...] | None]

MIXED: dict[str, Any] = {
    "rate": {"min": 1e-5, "max": 0.1, "distribution": "log_uniform_values"},
    "momentum": {"min": 0.0, "max": 0.99},
    "width": {"values": [32, 64, 128, 256]},
    "depth": {"min": 1, "max": 6},
    "optimizer": {"values": ["adam", "sgd", "lion"]},
}


def a_search(**changes: Any) -> Sweep:
    return good(
        **{
            "method": "tpe",
            "seed": 7,
            "rounds": {"size": 4, "max": 1000},
            "metric": {"name": "loss"},
            "parameters": MIXED,
            **changes,
        }
    )


def an_observation(assignment: Mapping[str, Value], value: Any = 1.0, **changes: Any) -> Observation:
    values = value if isinstance(value, tuple) else None if value is None else (float(value),)
    made: dict[str, Any] = {
        "configuration": assignment,
        "replicate": 0,
        "status": Status.OK if values is not None else Status.FAILED,
        "values": values,
        "round": 1,
        "trial": digest([assignment, 0, "program"]),
        "parent": None,
    }
    return Observation(**{**made, **changes})


def recorded(search_round: Round, score: Score) -> list[Observation]:
    return [
        an_observation(
            suggestion.configuration,
            score(suggestion.configuration),
            round=search_round.number,
            parent=suggestion.parent,
        )
        for suggestion in search_round.suggestions
    ]


def history(sweep: Sweep, score: Score, count: int, *, seed: int = 1) -> list[Observation]:
    """Record assignments by chance, as rounds of the sweep's size."""
    assert sweep.search
    size = sweep.search.rounds.size
    assignments = islice(feasible_configurations(sweep.search.space, seed), count)
    return [
        an_observation(assignment, score(assignment), round=1 + at // size)
        for at, assignment in enumerate(assignments)
    ]


def searched(
    sweep: Sweep, score: Score, rounds: int, *, known: Iterable[Observation] = ()
) -> list[Observation]:
    observations = list(known)
    first = max((observation.round or 0 for observation in observations), default=0) + 1
    for number in range(first, first + rounds):
        outcome = next_round(sweep, observations, number=number)
        if isinstance(outcome, SearchEnd):
            break
        observations += recorded(outcome, score)
    return observations


def loss(assignment: Mapping[str, Any]) -> float:
    """Give a bowl with its bottom at momentum 0.9, width 128 and adam."""
    kind = {"adam": 0.0, "sgd": 0.2, "lion": 0.5}[assignment.get("optimizer", "adam")]
    return float((assignment["momentum"] - 0.9) ** 2 + abs(assignment["width"] - 128) / 256 + kind)
