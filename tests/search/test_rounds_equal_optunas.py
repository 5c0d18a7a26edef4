"""Rounds equal the proposals of Optuna itself for the same trials: the encoding of the space loses nothing."""

import math
import warnings
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import TrialState

from sweepledger.search.adaptive import Observation, Round
from sweepledger.search.adaptive.model_based import SEED_LIMIT
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.search.adaptive.tpe import CANDIDATES
from sweepledger.search.encoding import DECIMALS
from sweepledger.search.rng import derive_seed
from tests.search.searches import a_search, history

SEED, SIZE = 7, 4
ROUNDED = 10.0**-DECIMALS
SPACES: dict[str, dict[str, Any]] = {
    "conditional": {
        "optimizer": {"values": ["adam", "sgd"]},
        "rate": {"min": 1e-6, "max": 1.0, "distribution": "log_uniform_values"},
        "beta": {"min": 0.5, "max": 0.999, "when": {"optimizer": "adam"}},
        "momentum": {"min": 0.0, "max": 0.99, "when": {"optimizer": "sgd"}},
        "depth": {"min": 1, "max": 12, "when": {"optimizer": "sgd"}},
    },
    "numbers": {
        "rate": {"min": 1e-6, "max": 1.0, "distribution": "log_uniform_values"},
        "momentum": {"min": 0.0, "max": 0.99},
        "depth": {"min": 1, "max": 12},
    },
}


def tpe(seed: int) -> BaseSampler:
    return TPESampler(
        multivariate=True, group=True, constant_liar=True, n_ei_candidates=CANDIDATES, seed=seed
    )


def loss(at: Mapping[str, Any]) -> float:
    return float(math.log10(at["rate"] / 1e-3) ** 2 + abs(at.get("depth", 9) - 3) + at.get("momentum", 0.5))


def is_logarithmic(domain: Mapping[str, Any]) -> bool:
    return "distribution" in domain


def distribution(domain: Mapping[str, Any]) -> BaseDistribution:
    if "values" in domain:
        return CategoricalDistribution(domain["values"])
    if isinstance(domain["min"], int):
        return IntDistribution(domain["min"], domain["max"])
    return FloatDistribution(domain["min"], domain["max"], log=is_logarithmic(domain))


def optunas(
    parameters: Mapping[str, Any],
    known: list[Observation],
    sampler: BaseSampler,
    running: Sequence[Observation] = (),
) -> list[dict[str, Any]]:
    """Let Optuna propose a round over the parameters as a person would write them for it."""
    study = optuna.create_study(sampler=sampler)
    for observation in sorted(known, key=attrgetter("round", "trial")):
        assert observation.values
        distributions = {name: distribution(parameters[name]) for name in observation.configuration}
        params = dict(observation.configuration)
        study.add_trial(
            optuna.create_trial(params=params, distributions=distributions, value=observation.values[0])
        )
    for observation in sorted(running, key=attrgetter("round", "trial")):
        distributions = {name: distribution(parameters[name]) for name in observation.configuration}
        params = dict(observation.configuration)
        study.add_trial(
            optuna.create_trial(params=params, distributions=distributions, state=TrialState.RUNNING)
        )
    proposed = list[dict[str, Any]]()
    for _ in range(SIZE):
        trial, document = study.ask(), dict[str, Any]()
        for name, domain in parameters.items():
            if all(document.get(parent) == wanted for parent, wanted in domain.get("when", {}).items()):
                document[name] = trial._suggest(name, distribution(domain))  # noqa: SLF001 - any distribution
        proposed.append(document)
    return proposed


def apart(domain: Mapping[str, Any], left: Any, right: Any) -> float:
    """Say how far two values lie from each other, as a fraction of what a parameter may be."""
    if "values" in domain:
        return float(left != right)
    if is_logarithmic(domain):
        return abs(math.log(left / right)) / math.log(domain["max"] / domain["min"])
    return float(abs(left - right) / (domain["max"] - domain["min"]))


@pytest.mark.parametrize(
    ("space", "count"),
    [
        pytest.param("conditional", 8, id="by chance at first"),
        pytest.param("conditional", 40, id="with conditions"),
        pytest.param("numbers", 40, id="numbers"),
    ],
)
def test_a_round_is_what_optuna_proposes_from_the_same_trials(space: str, count: int) -> None:
    parameters = SPACES[space]
    sweep = a_search(seed=SEED, parameters=parameters, rounds={"size": SIZE, "max": 99})
    known = history(sweep, loss, count)
    number = 1 + count // SIZE

    outcome = next_round(sweep, known, number=number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = optunas(parameters, known, tpe(derive_seed(SEED, number, "engine") % SEED_LIMIT))

    refuse_others(outcome, wanted, parameters)


def test_pending_trials_are_running_ones_to_optuna() -> None:
    parameters = SPACES["numbers"]
    sweep = a_search(seed=SEED, parameters=parameters, rounds={"size": SIZE, "max": 99, "ahead": 3})
    trials = history(sweep, loss, 40)
    known, pending = trials[:32], trials[32:]

    outcome = next_round(sweep, known, number=11, pending=pending)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = tpe(derive_seed(SEED, 11, "engine") % SEED_LIMIT)
        wanted = optunas(parameters, known, own, pending)
    refuse_others(outcome, wanted, parameters)
    assert outcome != next_round(sweep, known, number=11)


def refuse_others(outcome: object, wanted: list[dict[str, Any]], parameters: Mapping[str, Any]) -> None:
    assert isinstance(outcome, Round)
    assert [suggestion.configuration.keys() for suggestion in outcome.suggestions] == [
        item.keys() for item in wanted
    ]
    far = [
        (name, apart(parameters[name], left.configuration[name], value))
        for left, right in zip(outcome.suggestions, wanted, strict=True)
        for name, value in right.items()
    ]
    assert [item for item in far if item[1] > ROUNDED] == []
