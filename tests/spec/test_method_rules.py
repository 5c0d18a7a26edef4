"""Methods, the keys each uses, and lists of assignments."""

from typing import Any

import pytest

from sweepledger.stopping.target import TargetStop
from sweepledger.structs.methods import SAMPLERS
from sweepledger.structs.search_block import Rounds
from tests.written_specs import a_spec, bad, good, good_spec, hints, problems_of

DRAWS = [*SAMPLERS]


@pytest.mark.parametrize("method", DRAWS)
def test_whoever_draws_needs_a_seed_and_an_end(method: str) -> None:
    assert good(method=method, seed=0, run_cap=2)
    assert bad(method=method) == [("run_cap", "missing-key"), ("seed", "missing-key")]


@pytest.mark.parametrize(
    ("method", "key", "value"),
    [
        ("grid", "assignments", [{"rate": 1}]),
        ("grid", "assignments", "x.csv"),
        ("random", "assignments", [{"rate": 1}]),
        ("list", "zip", [["rate", "width"]]),
        ("list", "seed", 1),
        ("list", "run_cap", 1),
        ("grid", "seed", 0),
    ],
)
def test_keys_that_a_method_does_not_use_are_refused(method: str, key: str, value: Any) -> None:
    needed: dict[str, dict[str, Any]] = {
        "random": {"seed": 0, "run_cap": 2},
        "list": {"parameters": ..., "assignments": [{"rate": 1}]},
    }

    assert (key, "method-key") in bad(method=method, **{**needed.get(method, {}), key: value})


@pytest.mark.parametrize("method", ["grid", *DRAWS])
def test_a_search_needs_parameters(method: str) -> None:
    assert ("parameters", "missing-key") in bad(method=method, seed=0, run_cap=2, parameters=...)


@pytest.mark.parametrize(
    "domain", [{"min": 0.5, "max": 1}, {"distribution": "beta"}, {"min": 0.0, "max": 1.0}]
)
def test_a_grid_walks_no_continuum(domain: dict[str, Any]) -> None:
    assert bad(parameters={"a": domain}) == [("parameters.a", "grid-domain")]
    assert good(method="random", seed=0, run_cap=3, parameters={"a": domain})


def listed(**changes: Any) -> list[tuple[str, str]]:
    return bad(**{"method": "list", "parameters": ..., "assignments": [{"rate": 0.1}], **changes})


def test_beside_a_list_parameters_are_constants() -> None:
    assert good(method="list", parameters={"a": {"value": 1}}, assignments=[{"b": 1}])
    assert good(method="list", parameters={"a": {"value": 1, "when": {"b": 1}}}, assignments=[{"b": 1}])
    for domain in ({"values": [1, 2]}, {"min": 1, "max": 2}, {"distribution": "normal"}):
        assert listed(parameters={"a": domain}) == [("parameters.a", "list-domain")]


@pytest.mark.parametrize(
    ("first", "second"), [({"a": 1}, {"a": True}), ({"a": 1}, {"a": "1"}), ({"a": None}, {"b": None})]
)
def test_assignments_of_other_kinds_differ(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert good(method="list", parameters=..., assignments=[first, second])
    assert "duplicate-value" not in {code for _, code in listed(assignments=[{"a": {}}, {"a": {}}])}


def from_file(content: bytes, **changes: Any) -> list[tuple[str, int, str]]:
    spec = a_spec(**{"method": "list", "parameters": ..., "assignments": "x.csv", **changes})
    problems = problems_of(spec, beside=lambda _: content)
    return [(problem.file, problem.line, problem.code) for problem in problems]


def test_a_file_is_held_to_the_rules_of_a_spec() -> None:
    assert from_file(b"a,b\n1,x\n1,\n") == []
    assert from_file(b"a,b\n1,x\n2,x\n1.0,x\n") == [("sweeps/x.csv", 4, "duplicate-value")]
    assert from_file(b"trial,b\n1,x\n") == [("sweeps/x.csv", 1, "parameter-name")]
    assert from_file(b"a,A\n1,x\n") == [("sweeps/x.csv", 1, "parameter-collision")]
    assert from_file(b"a,b\n1,x\n", derived={"b": "a"}) == [("sweeps/x.csv", 1, "parameter-collision")]


DRAWN = {"method": "random", "seed": 0, "run_cap": 2}
IN_ROUNDS = {**DRAWN, "rounds": {"size": 1}}


@pytest.mark.parametrize("method", DRAWS)
def test_two_integer_bounds_with_nothing_between_are_a_warning(method: str) -> None:
    (warning,) = good_spec(
        **DRAWN | {"method": method}, parameters={"dropout": {"min": -1, "max": 0}}
    ).warnings

    assert (warning.path, warning.code) == ("parameters.dropout", "integer-bounds")
    assert warning.message == "two integer bounds mean integers: -1 or 0"


@pytest.mark.parametrize(
    "domain",
    [
        {"min": 0.0, "max": 1.0},
        {"min": 0, "max": 1.0},
        {"min": 0, "max": 2},
        {"min": 0, "max": 1, "distribution": "uniform"},
        {"min": 0, "max": 1, "distribution": "int_uniform"},
        {"min": 0, "max": 1, "step": 1},
        {"min": 0, "max": 1, "count": 2},
    ],
    ids=str,
)
def test_bounds_that_say_what_they_mean_are_no_warning(domain: dict[str, Any]) -> None:
    space = {"dropout": domain, "rate": {"min": 0.0, "max": 1.0}}

    assert good_spec(**DRAWN, parameters=space).warnings == ()
    assert good_spec(parameters={"dropout": {"min": 0, "max": 1}}).warnings == (), "a grid has no between"


CURVE = {"name": "accuracy", "goal": "minimize", "source": "stdout"}


@pytest.mark.parametrize(
    ("keys", "whole"),
    [
        ({"min_iter": 3}, True),
        ({"max_iter": 27, "s": 2}, True),
        ({"min_iter": 3, "max_iter": 27}, True),
        ({}, False),
        ({"s": 2}, False),
        ({"max_iter": 27}, False),
        ({"min_iter": 3, "s": 2}, False),
        ({"min_iter": 3, "max_iter": 27, "s": 2}, False),
    ],
    ids=str,
)
def test_hyperband_has_min_iter_or_max_iter_and_s(keys: dict[str, int], *, whole: bool) -> None:
    spec = {**IN_ROUNDS, "metric": CURVE, "early_terminate": {"type": "hyperband", **keys}}

    results = [] if whole else [("early_terminate", "early-stop")]
    assert (bad(**spec) if not whole else list(good_spec(**spec).warnings)) == results


def test_a_metrics_target_needs_a_method_or_a_stop_that_uses_it() -> None:
    metric = {**CURVE, "target": 0.99}

    assert bad(**DRAWN, metric=metric) == [("metric.target", "method-key")]
    assert hints(**DRAWN, metric=metric) == [
        "it belongs to adaptive methods, to sweeps with rounds, and to early_terminate: {type: target}"
    ]
    stop = good(**DRAWN, metric=metric, early_terminate={"type": "target", "min_iter": 2}).early_stop
    assert stop == TargetStop(2)
    stopped = {"early_terminate": {"type": "target"}, "metric": {**metric, "impute": "worst"}}
    assert bad(**DRAWN, **stopped) == [("metric.impute", "method-key")]
    assert bad(**DRAWN, metric={**CURVE, "impute": "worst"}) == [("metric.impute", "method-key")]
    assert hints(**DRAWN, metric={**CURVE, "impute": "worst"}) == ["it belongs to adaptive methods"]


@pytest.mark.parametrize("kind", ["hyperband", "median", "percentile"])
def test_a_rule_that_compares_trials_is_a_warning_where_all_run_in_one_batch(kind: str) -> None:
    rule = {"type": kind, "min_iter": 3}

    alone = good_spec(**DRAWN, metric=CURVE, early_terminate=rule)
    in_rounds = good_spec(**IN_ROUNDS, metric=CURVE, early_terminate=rule)

    assert [(one.path, one.code) for one in alone.warnings] == [("early_terminate", "early-stop-alone")]
    assert in_rounds.warnings == ()


@pytest.mark.parametrize("method", ["random", "sobol", "grid"])
def test_a_static_sweep_may_have_rounds_and_then_a_target(method: str) -> None:
    keys = {"method": method} if method == "grid" else {**DRAWN, "method": method}
    metric = {"name": "accuracy", "goal": "maximize", "target": 0.9}

    sweep = good(**keys, rounds={"size": 2, "ahead": 3, "patience": 4}, metric=metric)

    assert sweep.search is None
    assert sweep.rounds == Rounds(2, patience=4, ahead=3)
    assert bad(**keys, metric=metric) == [("metric.target", "method-key")]


@pytest.mark.parametrize("method", ["random", "cma-es", "asha", "nsga2"])
def test_a_number_of_random_configurations_belongs_to_models_that_learn_from_each_trial(method: str) -> None:
    rounds = {"size": 4, "max": 3, "startup": 5}

    assert good(method="tpe", seed=0, rounds=rounds).rounds == Rounds(4, 3, startup=5)
    assert ("rounds.startup", "method-key") in bad(method=method, seed=0, rounds=rounds)


SEARCH: dict[str, Any] = {"method": "tpe", "seed": 1, "rounds": {"size": 8, "max": 12}}


@pytest.mark.parametrize(
    ("changes", "path", "instead"),
    [
        ({**SEARCH, "method": "auto"}, "method", "write 'bayes' for up to 256 configurations"),
        ({"rounds": "none"}, "rounds", "delete the key: all trials are then requested at once"),
        ({"run": {"pack": "auto"}}, "run.pack", "delete the key: `sweep plan` then prints the block"),
    ],
)
def test_a_former_word_names_its_replacement(changes: dict[str, Any], path: str, instead: str) -> None:
    (problem,) = [problem for problem in problems_of(a_spec(**changes)) if problem.path == path]

    assert problem.hint is not None
    assert problem.hint.startswith(instead)


STARTED = {**SEARCH, "parameters": {"rate": {"values": [0.1, 0.2]}, "width": {"values": [32, 64]}}}


@pytest.mark.parametrize(
    ("mapping", "problems"),
    [
        ({"sweep": "old", "rename": {"lr": "speed"}}, [("start[0].rename.lr", "start-sweep")]),
        ({"sweep": "old", "values": {"dropout": 0.5}}, [("start[0].values.dropout", "start-sweep")]),
        ({"sweep": "Old"}, [("start[0].sweep", "start-sweep")]),
        ({"rename": {}}, [("start[0].sweep", "missing-key")]),
    ],
)
def test_a_mapping_leads_to_parameters(mapping: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    assert bad(**STARTED, start=[mapping]) == problems


def test_a_mapping_keeps_what_a_trial_itself_ran_with() -> None:
    mapping = {"sweep": "old", "rename": {"lr": "rate"}, "values": {"width": 64}}
    search = good_spec(**STARTED, start=["other", mapping]).sweep.search

    assert search is not None
    assert search.start == ("other", "old")
    (read,) = search.mappings
    assert read.apply({"lr": 0.1}) == {"rate": 0.1, "width": 64}
    assert read.apply({"lr": 0.1, "width": 32}) == {"rate": 0.1, "width": 32}


def test_only_a_population_needs_the_checkpoints_of_its_members() -> None:
    anew = {"parameter": "images", "min": 1, "max": 9, "continues": False}

    assert good(**{**SEARCH, "method": "asha"}, resource=anew)
    assert bad(**{**SEARCH, "method": "pbt"}, resource=anew) == [("resource.continues", "out-of-range")]
