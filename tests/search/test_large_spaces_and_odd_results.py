"""No space and no results stop a search: a model that cannot propose a round is replaced for that round."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count as numbered
from typing import Any

import pytest
from msgspec import structs

from sweepledger.search.adaptive import (
    Observation,
    Round,
    cma_es,
    gaussian_process,
    model_based,
    optuna_proposer,
)
from sweepledger.search.adaptive.gaussian_process import GaussianProcessProposer
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.structs.methods import METHODS, Method
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.search.rounds_conformance import EPOCHS
from tests.search.searches import a_search, history, recorded

RANGES: dict[str, Any] = {"x": {"min": 0.0, "max": 1.0}, "y": {"min": 0.0, "max": 1.0}}
BUDGET = 2.0
"""CPU seconds that one proposal may take."""

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=str)
every_model = pytest.mark.parametrize("method", [method for method in METHODS.values() if method.has_model])


def words(count: int) -> dict[str, Any]:
    return {"values": [f"word-{at}" for at in range(count)]}


SPACES: dict[str, dict[str, Any]] = {
    "2 categories": {**RANGES, "word": words(2)},
    "1000 categories": {**RANGES, "word": words(1000)},
    "one huge of several": {
        **RANGES,
        "word": words(400),
        "optimizer": {"values": ["adam", "sgd"]},
        "depth": {"min": 1, "max": 10**6},
        "nesterov": {"values": [True, False], "when": {"optimizer": "sgd"}},
    },
}
RESULTS: dict[str, Callable[[int], float]] = {
    "distinct": lambda at: float(at * 7919 % 97),
    "all equal": lambda _: 1.0,
    "largest and lowest": lambda at: 1e308 if at % 2 else -1e308,
}


def a_sweep(method: Method, parameters: Mapping[str, Any], **changes: Any) -> Sweep:
    more = {"resource": EPOCHS} if not method.has_model else {}
    rounds = {"size": 3, "max": 99}
    return a_search(**{"method": str(method), "parameters": parameters, "rounds": rounds, **more, **changes})


def trials(sweep: Sweep, count: int, value: Callable[[int], float]) -> list[Observation]:
    """Record so many trials; with a resource, those of the first round."""
    assert sweep.search
    if not sweep.search.method.has_model:
        first = next_round(sweep, [], number=1)
        assert isinstance(first, Round)
        values = numbered()
        return recorded(first, lambda _: value(next(values)))[:count]
    values = numbered()
    return history(sweep, lambda _: value(next(values)), count)


def following(sweep: Sweep, known: list[Observation]) -> Round:
    outcome = next_round(sweep, known, number=1 + max((one.round or 0 for one in known), default=0))
    assert isinstance(outcome, Round)
    return outcome


@every_method
@pytest.mark.parametrize("space", SPACES)
def test_a_space_of_any_size_has_a_next_round(method: Method, space: str) -> None:
    sweep = a_sweep(method, SPACES[space])
    known = trials(sweep, 12, RESULTS["distinct"])

    before = time.process_time()
    proposed = following(sweep, known)
    taken = time.process_time() - before

    assert proposed.suggestions
    assert proposed == following(sweep, known[::-1])
    configurations = [one.configuration for one in known] + [
        one.configuration for one in proposed.suggestions
    ]
    names = set(map(canonical_json, configurations))
    assert len(names) == len(known) + len(proposed.suggestions)
    assert taken < BUDGET * 3
    is_too_large = method is METHODS["bayes"] and space != "2 categories"
    assert (proposed.unfitted is not None) is is_too_large


@every_method
@pytest.mark.parametrize("results", RESULTS)
def test_any_finite_results_have_a_next_round(method: Method, results: str) -> None:
    sweep = a_sweep(method, SPACES["2 categories"])

    proposed = following(sweep, trials(sweep, 12, RESULTS[results]))

    assert proposed.suggestions
    assert proposed.unfitted is None


@pytest.mark.parametrize("method", [METHODS["tpe"], METHODS["nsga2"], METHODS["bayes"]])
def test_several_metrics_with_odd_results_have_a_next_round(method: Method) -> None:
    sweep = a_sweep(method, SPACES["2 categories"], other_metrics=[{"name": "size"}])
    value, numbers = RESULTS["largest and lowest"], numbered()

    known = history(sweep, lambda _: (value(next(numbers)), 1.0), 12)

    assert following(sweep, known).suggestions


@every_method
def test_the_mean_of_the_largest_numbers_is_a_number(method: Method) -> None:
    if not method.has_model:
        pytest.skip("a resource excludes replicates")
    sweep = a_sweep(method, SPACES["2 categories"], replicates=2)
    known = trials(sweep, 12, lambda _: 1.7e308)

    both = [*known, *(replace(trial, replicate=1, trial=trial.trial[::-1]) for trial in known)]

    assert following(sweep, both).unfitted is None


@every_model
def test_a_failing_model_is_replaced(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """As of a library in Rust."""

    proposals: list[None] = []

    def propose(*_: Any) -> Any:
        proposals.append(None)
        if len(proposals) > 2:
            raise PanicException("index out of bounds")
        return 0

    proposer: Any = {METHODS["cma-es"]: cma_es.CmaEsProposer, METHODS["bayes"]: GaussianProcessProposer}.get(
        method,
        optuna_proposer._OptunaProposer,  # noqa: SLF001
    )
    sweep = a_sweep(method, SPACES["2 categories"])
    known = trials(sweep, 12, RESULTS["distinct"])
    monkeypatch.setattr(proposer, "propose", propose)

    proposed = following(sweep, known)
    proposals.clear()

    assert proposed.unfitted == f"{method} failed with PanicException"
    assert proposed.engine == model_based.PLAIN_ENGINE
    assert len(proposed.suggestions) == 3
    assert proposed == following(sweep, known)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_is_no_failure_of_the_model(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def propose(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(model_based, "_propose", propose)

    with pytest.raises(error):
        following(a_sweep(METHODS["tpe"], SPACES["2 categories"]), [])


def test_a_panic_of_the_gaussian_process_is_named_with_its_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    # egobox 1.0 panics with few trials and many columns, which the bound keeps from it.
    monkeypatch.setattr(gaussian_process, "MOST_WORK", 10**9)
    sweep = a_sweep(METHODS["bayes"], {**RANGES, "word": words(150)})
    assert sweep.search is not None
    unbounded = structs.replace(METHODS["bayes"], most_columns=200)
    sweep = structs.replace(sweep, design=structs.replace(sweep.search, method=unbounded))

    proposed = following(sweep, trials(sweep, 12, RESULTS["distinct"]))

    assert proposed.unfitted == "egobox cannot fit 12 trials"


def test_a_model_with_more_results_than_it_bears_learns_from_the_best_and_the_newest() -> None:
    sweep = a_sweep(METHODS["bayes"], {**RANGES, "word": words(38)}, rounds={"size": 1, "max": 999})
    known = trials(sweep, 60, lambda at: 0.0 if at == 5 else 50.0 + at)
    before = time.process_time()

    proposed = following(sweep, known)

    assert time.process_time() - before < BUDGET
    assert proposed.unfitted is None
    # The worst results are not learned from, so that they change nothing.
    worst = max(known, key=lambda trial: trial.values or ())
    changed = [replace(trial, values=(1e3,)) if trial is worst else trial for trial in known]
    assert following(sweep, changed) == proposed
