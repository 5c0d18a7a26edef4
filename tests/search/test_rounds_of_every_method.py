"""Rounds of every adaptive method: legal, new, and independent of platform and order."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweepledger.search.adaptive import Round, SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.search.configurations import configuration_builder
from sweepledger.search.encoding import encode_space
from sweepledger.structs.methods import METHODS, Method
from sweepledger.structs.record import Status
from sweepledger.structs.space import SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.search.rounds_conformance import NUMBERS, a_sweep_of, digest_of_rounds, score
from tests.search.searches import a_search, an_observation, history, recorded, searched
from tests.search.spaces import spaces
from tests.written_specs import bad

ROOT = Path(__file__).parent.parent.parent

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=str)


def is_legal(sweep: Sweep, assignment: Mapping[str, Any]) -> bool:
    """Tell whether a space has an assignment: settled anew from its own values, it is itself."""
    search = sweep.search
    assert search
    resource = search.resource.parameter if search.resource else None
    own = {name: value for name, value in assignment.items() if name != resource}
    parameters = {parameter.name for parameter in search.space.parameters}
    settled = configuration_builder(search.space)(
        {name: value for name, value in own.items() if name in parameters}
    )
    return settled == own and encode_space(search.space).encode(own) is not None


@every_method
def test_every_suggestion_is_legal_and_new(method: Method) -> None:
    sweep = a_sweep_of(method)

    trials = searched(sweep, score, 3)

    assert len(trials) >= 7
    assert len({canonical_json(observation.configuration) for observation in trials}) == len(trials)
    assert all(is_legal(sweep, observation.configuration) for observation in trials)
    values = [observation.configuration for observation in trials]
    assert all(abs(each["decay"] - each["rate"] / 10) < 1e-12 for each in values)  # type: ignore[operator]


@every_method
def test_failed_diverged_and_missing_trials_do_not_end_a_search(method: Method) -> None:
    sweep = a_sweep_of(method, rounds={"size": 9, "max": 6})
    first = next_round(sweep, (), number=1)
    assert isinstance(first, Round)
    ends = [Status.FAILED, Status.DIVERGED, Status.MISSING, Status.OOM, Status.CANCELLED]
    known = [
        an_observation(
            observation.configuration,
            observation.values if at >= 5 else None,
            status=Status.OK if at >= 5 else ends[at],
        )
        for at, observation in enumerate(recorded(first, score))
    ]

    outcome = next_round(sweep, known, number=2)

    assert isinstance(outcome, Round)
    libraries = {METHODS["cma-es"]: "cmaes", METHODS["bayes"]: "egobox"}
    library = "sweepledger" if not method.has_model else libraries.get(method, "optuna")
    assert outcome.engine.partition(" ")[0] == library
    names = {canonical_json(observation.configuration) for observation in known}
    assert not names & {canonical_json(suggestion.configuration) for suggestion in outcome.suggestions}


PROGRAM = """
from sweepledger.structs.methods import METHODS
from tests.search.rounds_conformance import digest_of_rounds
print(*(digest_of_rounds(method) for method in METHODS.values()))
"""


@pytest.mark.full_suite("every hash seed and locale")
def test_rounds_do_not_depend_on_hash_seed_locale_or_threads() -> None:
    results = set()
    for hash_seed, language, threads in [("0", "C", "1"), ("4294967295", "C.UTF-8", "2")]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "generator"),
            "PYTHONHASHSEED": hash_seed,
            "LC_ALL": language,
            "OMP_NUM_THREADS": threads,
        }
        process = subprocess.run(
            [sys.executable, "-B", "-c", PROGRAM],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not process.stderr
        results.add(process.stdout)

    assert results == {" ".join(map(digest_of_rounds, METHODS.values())) + "\n"}


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    space=spaces(),
    method=st.sampled_from([METHODS["tpe"], METHODS["nsga2"], METHODS["cma-es"]]),
    data=st.data(),
)
def test_rounds_of_any_space_are_legal(space: SearchSpace, method: Method, data: st.DataObject) -> None:
    sweep = with_space(a_search(method=str(method), parameters=NUMBERS, rounds={"size": 3, "max": 9}), space)
    scores = st.floats(-1, 1) | st.none()
    known = searched(sweep, lambda _: data.draw(scores), 2)

    outcome = next_round(sweep, known, number=3)

    names = [canonical_json(observation.configuration) for observation in known]
    if isinstance(outcome, SearchEnd):
        assert outcome.reason == "exhausted"
    else:
        names += [canonical_json(suggestion.configuration) for suggestion in outcome.suggestions]
        assert all(is_legal(sweep, suggestion.configuration) for suggestion in outcome.suggestions)
        assert next_round(sweep, known[::-1], number=3) == outcome
    assert len(set(names)) == len(names)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(space=spaces(), seed=st.integers(0, 2**40))
def test_decoding_the_coordinates_of_a_configuration_gives_it_back(space: SearchSpace, seed: int) -> None:
    sweep = with_space(a_search(parameters=NUMBERS), space)
    code, settle = encode_space(space), configuration_builder(space)

    for observation in history(sweep, lambda _: 0.0, 5, seed=seed):
        places = code.encode(observation.configuration)
        assert places is not None
        # A dimension below zipped parameters, of which one depends on another, may be asked for although it is absent.
        decoded = code.decode(lambda dimension: places.get(dimension.name, 0))  # noqa: B023
        assert settle(decoded) == observation.configuration


def with_space(sweep: Sweep, space: SearchSpace) -> Sweep:
    from msgspec.structs import replace  # noqa: PLC0415

    assert sweep.search
    return replace(sweep, design=replace(sweep.search, space=space))


def test_a_search_with_several_metrics_improves_the_pareto_front() -> None:
    others = [{"name": "accuracy", "goal": "maximize"}]
    for method in (METHODS["tpe"], METHODS["nsga2"]):
        sweep = a_sweep_of(method, other_metrics=others, rounds={"size": 8, "max": 20})

        trials = searched(sweep, lambda item: (item["momentum"], item["momentum"] * item["depth"]), 10)

        late = [observation.values or () for observation in trials if (observation.round or 0) > 8]
        early = [observation.values or () for observation in trials if observation.round == 1]
        assert sum(values[1] - values[0] for values in late) / len(late) > sum(
            entry[1] - entry[0] for entry in early
        ) / len(early)


def test_cma_es_requires_two_numeric_parameters() -> None:
    ranges = {"a": {"min": 0.0, "max": 1.0}, "b": {"values": ["x", "y"]}}

    assert ("parameters", "search-space") in bad(
        method="cma-es", seed=1, rounds={"size": 4, "max": 2}, parameters=ranges
    )
