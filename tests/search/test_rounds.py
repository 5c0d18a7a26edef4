"""Rounds of an adaptive search: deterministic, legal, new, and ended for a reason."""

from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.search import explore
from sweepledger.search.adaptive import Round, SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import Resources, RunConfig
from sweepledger.structs.settings import SweepLimits
from sweepledger.structs.sweep import Budget
from tests.search.searches import MIXED, a_search, an_observation, history, loss, recorded, searched


def test_a_search_without_a_feasible_configuration_is_rejected() -> None:
    expansion = explore(a_search(constraints=["width * depth > 10000"]))

    assert isinstance(expansion, tuple)
    assert [problem.code for problem in expansion] == ["constraint-nothing"]


def test_another_round_or_seed_proposes_other_configurations() -> None:
    outcomes = [
        next_round(a_search(seed=seed), (), number=number) for seed, number in [(1, 1), (2, 1), (1, 2)]
    ]

    assert len({str(outcome.suggestions) for outcome in outcomes if isinstance(outcome, Round)}) == 3


def test_a_search_finds_good_values() -> None:
    sweep = a_search(parameters={name: MIXED[name] for name in ("momentum", "width", "depth")})

    late = [
        observation.values or () for observation in searched(sweep, loss, 20) if (observation.round or 0) > 10
    ]
    by_chance = [observation.values or () for observation in history(sweep, loss, 40)]

    assert sum(map(sum, late)) < sum(map(sum, by_chance)) / 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rounds": {"size": 4, "max": 3}}, "rounds"),
        ({"run_cap": 12}, "run-cap"),
        ({"budget": {"max_trials": 12}}, "budget"),
        ({"metric": {"name": "loss", "target": 100.0}}, "target"),
        ({"rounds": {"size": 4, "max": 9, "patience": 2}}, "patience"),
        ({"parameters": {"a": {"values": [1, 2, 3]}}}, "exhausted"),
    ],
)
def test_a_search_has_a_reason_to_end(changes: dict[str, object], reason: str) -> None:
    sweep = a_search(**changes)
    observations = searched(sweep, lambda _: 1.0, 3)

    outcome = next_round(
        sweep, observations, number=1 + max(observation.round or 0 for observation in observations)
    )

    assert isinstance(outcome, SearchEnd)
    assert outcome.reason == reason
    assert outcome.text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"budget": Budget(max_trials=6)}, "at most 6 trials, got 7"),
        ({"limits": SweepLimits(max_trials=6)}, "at most 6 trials by the limits of sweepledger.yaml, got 7"),
        ({"budget": Budget(max_gpu_hours=13.5)}, "at most 13.5 GPU hours, got 14 = 7 trials"),
        ({"limits": SweepLimits(max_gpu_hours=12)}, "at most 12 GPU hours by the limits of sweepledger.yaml"),
    ],
    ids=["budget", "limits", "hours", "hours by limits"],
)
def test_every_limit_shortens_the_last_round(changes: dict[str, Any], says: str) -> None:
    run = RunConfig(resources=Resources(gpu=1), retries=1)
    sweep = replace(a_search(), run=run, **changes)

    observations = searched(sweep, loss, 9)
    outcome = next_round(sweep, observations, number=3)

    assert len(observations) == 6
    assert isinstance(outcome, SearchEnd)
    assert outcome.reason == "budget"
    assert outcome.text.startswith("6 trials exist; with more, the sweep must ")
    assert says in outcome.text


def test_a_nearly_exhausted_space_gives_its_remaining_configurations() -> None:
    sweep = a_search(parameters={"a": {"values": [1, 2, 3]}, "b": {"values": ["x", "y"]}})

    observations = searched(sweep, lambda _: 1.0, 5)

    assert sorted(
        (observation.configuration["a"], observation.configuration["b"]) for observation in observations
    ) == [(a, b) for a in (1, 2, 3) for b in ("x", "y")]


def test_trials_of_another_sweep_are_evidence_and_may_be_proposed_here() -> None:
    sweep = a_search(parameters={"a": {"values": [1, 2]}}, rounds={"size": 2, "max": 1})
    elsewhere = [an_observation({"a": value}, 0.5, round=None) for value in (1, 2, 3)]

    outcome = next_round(sweep, elsewhere, number=1)

    assert isinstance(outcome, Round)
    assert len(outcome.suggestions) == 2


def test_a_missing_trial_is_known_but_no_evidence() -> None:
    sweep = a_search(parameters={"a": {"values": [1, 2]}}, rounds={"size": 2, "max": 9})
    missing = an_observation({"a": 1}, None, status=Status.MISSING)

    outcome = next_round(sweep, [missing], number=2)

    assert isinstance(outcome, Round)
    assert [dict(suggestion.configuration) for suggestion in outcome.suggestions] == [{"a": 2}]


def test_rounds_count_redrawn_proposals() -> None:
    sweep = a_search(constraints=["width == 256 and depth == 6"], rounds={"size": 6, "max": 9})
    known = history(sweep, loss, 12)

    outcome = next_round(sweep, known, number=3)

    assert isinstance(outcome, Round)
    assert len(recorded(outcome, loss)) == 6
    assert outcome.redrawn > 0
