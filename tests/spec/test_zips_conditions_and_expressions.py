"""Zip groups, conditions, constraints and derived values."""

from typing import Any

import pytest

from tests.written_specs import a_spec, bad, good, good_spec, problems_of

PARAMETERS: dict[str, Any] = {
    "opt": {"values": ["sgd", "adam"]},
    "rate": {"values": [0.1, 0.2]},
    "width": {"min": 1, "max": 4},
    "max-norm": {"values": [1, None]},
    "layers": {"values": [[1], [1, 2]]},
}


def with_(name: str, when: Any, **more: Any) -> dict[str, Any]:
    return {**PARAMETERS, name: {"values": [1, 2], "when": when}, **more}


def warned(**changes: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in good_spec(**changes).warnings]


@pytest.mark.parametrize(
    "when",
    [
        {"opt": "sgd"},
        {"opt": ["sgd"], "rate": 0.1},
        {"rate": 1e-1},
        {"width": [1, 4]},
        {"width": 2.0},
        {"max-norm": None},
        {"layers": [[1, 2]]},
        {"later": 1},
    ],
    ids=str,
)
def test_conditions_ask_for_values_that_there_are(when: dict[str, Any]) -> None:
    assert good(parameters=with_("x", when, later={"values": [1, 2]}))
    assert warned(parameters=with_("x", when, later={"values": [1, 2]})) == []


@pytest.mark.parametrize(
    ("when", "place"),
    [
        ({"opt": "sdg"}, "opt"),
        ({"opt": ["sgd", "x"]}, "opt[1]"),
        ({"rate": "0.1"}, "rate"),
        ({"width": 5}, "width"),
        ({"width": 1.5}, "width"),
        ({"width": True}, "width"),
        ({"layers": [1, 2]}, "layers"),
        ({"layers": [[2, 1]]}, "layers[0]"),
    ],
    ids=str,
)
def test_values_that_there_are_not_are_refused(when: dict[str, Any], place: str) -> None:
    assert bad(parameters=with_("x", when)) == [(f"parameters.x.when.{place}", "when-unreachable")]


@pytest.mark.parametrize("parent", [{"linspace": [0, 1, 3]}, {"values": [1, [{}]]}, 5], ids=str)
def test_of_a_parent_that_cannot_be_listed_no_value_is_refused(parent: Any) -> None:
    problems = problems_of(a_spec(parameters=with_("x", {"p": 0.5}, p=parent)))

    assert "when-unreachable" not in {problem.code for problem in problems}


def test_a_constant_can_be_a_parent() -> None:
    assert warned(parameters=with_("x", {"p": 1}, p={"value": 1})) == [("parameters.x.when.p", "when-always")]
    assert bad(parameters=with_("x", {"p": 2}, p={"value": 1})) == [
        ("parameters.x.when.p", "when-unreachable")
    ]


def test_broken_values_of_a_condition_are_passed_over() -> None:
    assert bad(parameters=with_("x", {"opt": {}})) == [("parameters.x.when.opt", "wrong-type")]


def test_a_rounded_number_may_be_what_is_asked_for() -> None:
    parameters = {"x": {"distribution": "q_normal"}, "y": {"value": 1, "when": {"x": 2}}}

    assert good(method="random", seed=0, run_cap=1, parameters=parameters)


def test_a_condition_that_always_holds_is_a_warning() -> None:
    assert warned(parameters=with_("x", {"opt": ["adam", "sgd"]})) == [
        ("parameters.x.when.opt", "when-always")
    ]
    assert warned(parameters=with_("x", {"y": [1, 2]}, y=with_("y", {"opt": "sgd"})["y"])) == []


def test_conditions_do_not_run_in_circles() -> None:
    inside = {"g": {"when": {"g.a": 1}, "parameters": {"a": {"values": [1, 2]}}}}

    assert bad(parameters=with_("x", {"x": 1})) == [("parameters.x.when.x", "dependency-cycle")]
    assert bad(parameters=inside) == [("parameters.g.when['g.a']", "dependency-cycle")]
    assert [code for _, code in bad(parameters=with_("x", {"y": 1}, y=with_("y", {"x": 1})["y"]))] == [
        "dependency-cycle"
    ]


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([["opt", "x"]], ("zip[0][1]", "unknown-parameter")),
        ([["opt", "rate"], ["rate", "layers"]], ("zip[1][0]", "zip-repeated")),
        ([["opt", "opt"]], ("zip[0][1]", "zip-repeated")),
        ([["opt", "width"]], ("zip[0][1]", "zip-values")),
        ([["opt", "one"]], ("zip[0][1]", "zip-values")),
        ([["opt", "three"]], ("zip[0][1]", "zip-values")),
        ([["opt", "drawn"]], ("zip[0][1]", "zip-values")),
        ([["opt", "weighed"]], ("zip[0][1]", "zip-values")),
        ([["opt"]], ("zip[0]", "out-of-range")),
        (["opt", "rate"], ("zip[0]", "wrong-type")),
    ],
    ids=str,
)
def test_zip_groups_have_equally_many_values(groups: Any, problem: tuple[str, str]) -> None:
    parameters = {
        **PARAMETERS,
        "one": {"value": 1},
        "three": {"values": [1, 2, 3]},
        "drawn": {"distribution": "uniform", "min": 0, "max": 1},
        "weighed": {"distribution": "categorical", "values": [1, 2], "probabilities": [0.5, 0.5]},
    }

    assert problem in bad(parameters=parameters, zip=groups)


def test_lists_by_arithmetic_can_be_zipped() -> None:
    parameters = {
        "a": {"min": 1, "max": 3, "step": 1},
        "b": {"linspace": [0, 1, 3]},
        "c": {"values": [1, 1, 2]},
        "d": {"distribution": "categorical", "values": [1, 2, 3]},
    }

    assert good(parameters=parameters, zip=[["a", "b", "c", "d"]])


def test_equal_steps_of_a_zip_are_one() -> None:
    parameters = {"a": {"values": [1, 2, 1.0]}, "b": {"values": ["x", "x", "x"]}}

    assert bad(parameters=parameters, zip=[["a", "b"]]) == [("parameters.a.values[2]", "duplicate-value")]


@pytest.mark.parametrize(
    "text",
    [
        "rate < 0.15",
        "opt == 'sgd' or rate < 0.15",
        "`max-norm` != null",
        "len(layers) > 1",
        "width in [1, 2]",
        "d > 3",
    ],
)
def test_constraints_are_taken(text: str) -> None:
    assert good(parameters=PARAMETERS, constraints=[text], derived={"d": "width * 2"})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("rate <", "expression-syntax"),
        ("rate < 1 && width", "expression-syntax"),
        ("rte < 1", "unknown-parameter"),
        ("rate", "expression-kind"),
        ("opt + 1 > 2", "expression-kind"),
        ("1 < 2", "expression-constant"),
        ("d + 1", "expression-kind"),
    ],
)
def test_other_constraints_are_refused(text: str, code: str) -> None:
    assert bad(parameters=PARAMETERS, constraints=[text], derived={"d": "width * 2"}) == [
        ("constraints[0]", code)
    ]


def test_derived_values_use_each_other_in_any_order_but_not_in_circles() -> None:
    assert good(parameters=PARAMETERS, derived={"a": "b + 1", "b": "width"})
    assert bad(parameters=PARAMETERS, derived={"a": "b", "b": "a", "c": "c"}) == [
        ("derived.a", "dependency-cycle"),
        ("derived.c", "dependency-cycle"),
    ]


def test_the_kind_of_a_derived_value_is_known() -> None:
    assert bad(parameters=PARAMETERS, derived={"a": "opt"}, constraints=["a * 2 > 1"]) == [
        ("constraints[0]", "expression-kind")
    ]


def test_names_differ_however_they_are_nested() -> None:
    nested = {"o": {"parameters": {"lr": {"values": [1, 2]}}}}

    assert bad(parameters={**nested, "o.lr": {"value": 1}}) == [("parameters['o.lr']", "parameter-collision")]
    assert bad(parameters={**PARAMETERS, "opt.lr": {"value": 1}}) == [
        ("parameters['opt.lr']", "parameter-nesting")
    ]
    assert bad(parameters=PARAMETERS, derived={"rate": "width"}) == [("derived.rate", "parameter-collision")]
    assert bad(parameters=PARAMETERS, derived={"trial": "width"}) == [("derived.trial", "parameter-name")]


def test_a_derived_value_may_have_the_name_of_a_key() -> None:
    (derived,) = good(derived={"constraints": "rate * 2"}).design.space.derived

    assert derived.name == "constraints"


def test_values_that_cannot_be_read_may_be_of_every_kind() -> None:
    broken = {"opt": {"values": ["sgd", {}], "probabilities": [0.5, 0.5]}}

    assert bad(parameters=broken, constraints=["len(opt) > 2"], method="random", seed=0, run_cap=2) == [
        ("parameters.opt.values[1]", "wrong-type")
    ]
