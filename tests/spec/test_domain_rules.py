"""The forms of a parameter, the keys of each, and limits of numbers."""

from typing import Any

import pytest

from sweepledger.distributions import FORMS
from sweepledger.problems import Problem
from sweepledger.structs.space import grid_values
from sweepledger.structs.sweep import Sweep
from tests.written_specs import SETTINGS, a_spec, bad, good, hints, parse_sweep, problems_of, spec_bytes

VALUES: dict[str, Any] = {"value": 1, "values": [1, 2], "min": 1, "max": 2, "probabilities": [0.5, 0.5]}


def paths_and_codes(domain: dict[str, Any]) -> list[tuple[str, str]]:
    """Draw from one parameter; give places within it, and codes."""
    problems = problems_of(a_spec(method="random", seed=0, run_cap=5, parameters={"a": domain}))
    return [(problem.path.removeprefix("parameters.a").lstrip("."), problem.code) for problem in problems]


@pytest.mark.parametrize("kind", FORMS)
def test_each_distribution_needs_its_keys_and_takes_them_alone(kind: str) -> None:
    form = FORMS[kind]
    needed = {key: VALUES[key] for key in form.needs}
    bounds = {"max": 2} if kind == "truncated_normal" else {}

    assert paths_and_codes({"distribution": kind, **needed, **bounds}) == []
    for key in form.needs:
        rest = {name: value for name, value in needed.items() if name != key}
        assert paths_and_codes({"distribution": kind, **rest}) == [(key, "missing-key")]
    for key in {"mu", "a", "q", "step", "count"} - form.keys:
        assert paths_and_codes({"distribution": kind, **needed, **bounds, key: 2}) == [(key, "parameter-key")]


@pytest.mark.parametrize(
    ("domain", "problems"),
    [
        ({}, [("", "parameter-domain")]),
        ({"mu": 0, "sigma": 1}, [("", "parameter-domain")]),
        ({"when": {"a": 1}}, [("", "parameter-domain"), ("when.a", "dependency-cycle")]),
        ({"value": 1, "values": [1, 2]}, [("", "parameter-domain")]),
        ({"linspace": [0, 1, 3], "geomspace": [1, 2, 3]}, [("", "parameter-domain")]),
        ({"min": 1}, [("max", "missing-key")]),
        ({"distribution": "truncated_normal"}, [("", "missing-key")]),
        ({"min": 1, "max": 3, "step": 1, "count": 3}, [("count", "parameter-key")]),
        ({"min": 1, "max": 2, "probabilities": [1]}, [("probabilities", "parameter-key")]),
        ({"min": 1, "max": 2, "q": 1}, [("q", "parameter-key")]),
        ({"distribution": "normal", "values": [1, 2]}, [("values", "parameter-key")]),
    ],
    ids=str,
)
def test_a_parameter_has_one_form(domain: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    assert paths_and_codes(domain) == problems


@pytest.mark.parametrize(
    ("meant", "others"),
    [
        *(("mu", ["mean"]), ("sigma", ["std", "stddev"]), ("values", ["choices"])),
        *(("min", ["low", "lower"]), ("max", ["high", "upper"])),
    ],
)
def test_what_other_tools_call_a_key_is_recognised(meant: str, others: list[str]) -> None:
    for key in others:
        assert f"did you mean {meant!r}?" in hints(parameters={"p": {key: 1}})


@pytest.mark.parametrize(
    ("domain", "problem"),
    [
        ({"min": 1, "max": 1}, ("max", "range-inverted")),
        ({"distribution": "truncated_normal", "min": 1, "max": 0}, ("max", "range-inverted")),
        ({"min": -1e308, "max": 1e308}, ("max", "out-of-range")),
        ({"min": 0, "max": 1, "step": 0.3}, ("step", "range-step")),
        ({"min": 0, "max": 1, "step": 2}, ("step", "range-step")),
        ({"min": 0, "max": 1, "step": 1e-6}, ("step", "too-many-values")),
        ({"linspace": [0, 1, 100_001]}, ("linspace[2]", "too-many-values")),
        ({"linspace": [0, 1, 1]}, ("linspace[2]", "range-count")),
        ({"min": 1, "max": 10, "count": 3}, ("count", "range-count")),
        ({"min": -3, "max": 4, "count": 5}, ("count", "range-count")),
        ({"distribution": "uniform", "min": 0, "max": 1, "count": 4}, ("count", "range-count")),
        (
            {"distribution": "inv_log_uniform_values", "min": 1, "max": 100, "count": 4},
            ("count", "range-count"),
        ),
        ({"linspace": [1, 1, 3]}, ("linspace[1]", "range-inverted")),
        ({"geomspace": [-1, 1, 3]}, ("geomspace", "log-range")),
        ({"geomspace": [1, 0, 3]}, ("geomspace", "log-range")),
        ({"distribution": "int_uniform", "min": 0.5, "max": 3}, ("min", "wrong-type")),
        ({"distribution": "log_uniform_values", "min": 0, "max": 3}, ("min", "log-range")),
        ({"distribution": "q_log_uniform_values", "min": -1, "max": 3}, ("min", "log-range")),
        ({"distribution": "log_uniform", "min": 0, "max": 701}, ("max", "exponent-range")),
        ({"distribution": "inv_log_uniform", "min": 0, "max": 31}, ("distribution", "exponent-range")),
        ({"distribution": "log_uniform", "min": 0.1, "max": 1}, ("distribution", "exponent-range")),
        ({"distribution": "log_normal", "mu": 691}, ("", "exponent-range")),
        ({"distribution": "normal", "sigma": 1.7e308}, ("sigma", "out-of-range")),
        ({"distribution": "q_uniform", "min": 0, "max": 1e16}, ("q", "out-of-range")),
        ({"values": [1, 2], "probabilities": [1]}, ("probabilities", "probabilities")),
        ({"values": [1, 2], "probabilities": [0.5, 0.4]}, ("probabilities", "probabilities")),
        ({"values": [[1, 2]]}, ("values", "single-value")),
    ],
    ids=str,
)
def test_wrong_numbers_are_found_where_they_stand(domain: dict[str, Any], problem: tuple[str, str]) -> None:
    assert paths_and_codes(domain) == [problem]


@pytest.mark.parametrize(
    "domain",
    [
        {"min": 0, "max": 1, "step": 1},
        {"min": 0, "max": 0.3, "step": 0.1},
        {"min": 1, "max": 10, "count": 4},
        {"min": 1.0, "max": 10, "count": 3},
        {"distribution": "log_uniform_values", "min": 1, "max": 100, "count": 3},
        {"distribution": "log_uniform", "min": 0, "max": 1, "count": 3},
        {"linspace": [1, 0, 2]},
        {"linspace": [0, 1, 3.0]},
        {"geomspace": [-1, -100, 3]},
        {"distribution": "log_uniform", "min": -700, "max": 30},
        {"distribution": "log_uniform", "min": 0, "max": 1},
        {"distribution": "log_normal", "mu": 690},
        {"distribution": "int_uniform", "min": 1.0, "max": 3},
        {"values": ["a", "b", "c"], "probabilities": [0.3333333333, 0.3333333333, 0.3333333334]},
    ],
    ids=str,
)
def test_what_just_fits_is_taken(domain: dict[str, Any]) -> None:
    assert paths_and_codes(domain) == []


def test_only_zipped_values_may_repeat() -> None:
    parameters = {"a": {"values": [1, 1]}, "b": {"values": [1, 2]}}

    assert good(parameters=parameters, zip=[["a", "b"]])
    assert bad(parameters=parameters) == [("parameters.a.values[1]", "duplicate-value")]


@pytest.mark.parametrize(
    ("domain", "advice"),
    [
        ({"min": 1, "max": 10, "count": 3}, "count: 2 or 4"),
        ({"min": 0, "max": 7, "count": 9}, "count: 8"),
        ({"min": 0, "max": 24, "count": 8}, "count: 7 or 9"),
        ({"distribution": "log_uniform_values", "min": 1, "max": 100, "count": 4}, "list them in values"),
    ],
    ids=str,
)
def test_counts_that_make_integers_are_proposed(domain: dict[str, Any], advice: str) -> None:
    assert any(advice in hint for hint in hints(parameters={"p": domain}) if hint)


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        ({"min": 1, "max": 10, "count": 4}, "(1, 4, 7, 10)"),
        ({"min": 1.0, "max": 10, "count": 3}, "(1.0, 5.5, 10.0)"),
        ({"distribution": "log_uniform_values", "min": 1, "max": 100, "count": 3}, "(1, 10, 100)"),
        ({"distribution": "log_uniform_values", "min": 2, "max": 32, "count": 5}, "(2, 4, 8, 16, 32)"),
        ({"distribution": "inv_log_uniform_values", "min": 1, "max": 100, "count": 3}, "(1, 10, 100)"),
        (
            {"distribution": "log_uniform_values", "min": 1.0, "max": 100, "count": 4},
            "(1.0, 4.641588834, 21.5443469, 100.0)",
        ),
        ({"min": -10, "max": -1, "count": 4}, "(-10, -7, -4, -1)"),
        ({"min": -1.0, "max": 1, "count": 4}, "(-1.0, -0.3333333333, 0.3333333333, 1.0)"),
        ({"min": 0, "max": 1, "step": 0.5}, "(0.0, 0.5, 1.0)"),
        ({"linspace": [-1, 1, 5]}, "(-1.0, -0.5, 0.0, 0.5, 1.0)"),
        (
            {"distribution": "log_uniform", "min": -1, "max": 1, "count": 3},
            "(0.3678794412, 1.0, 2.718281828)",
        ),
    ],
    ids=str,
)
def test_a_count_makes_integers_alone_or_floats_alone(domain: dict[str, Any], values: str) -> None:
    sweep = good(method="grid", parameters={"p": domain})

    assert repr(grid_values(sweep.design.space.parameters[0].domain)) == values


@pytest.mark.parametrize(
    "values",
    [
        *('["(3", "5)"]', "[relu(), gelu()]", '["(3", relu]'),
        *("[[3, 5], [4, 6]]", '["(3, 5)", "(4, 6)"]', "[a(b)c, d]"),
    ],
)
def test_texts_in_quotes_and_closed_brackets_are_values(values: str) -> None:
    assert isinstance(read_values(values), Sweep)


def read_values(values: str) -> Sweep | tuple[Problem, ...]:
    """Read a spec with values in the words of a person, which a dumper would quote."""
    spec = a_spec(method="grid", parameters={"p": "VALUES"})
    text = spec_bytes(spec).decode().replace('"VALUES"', f"{{values: {values}}}")
    return parse_sweep(text.encode(), "sweeps/lr.yaml", SETTINGS)


@pytest.mark.parametrize(
    ("values", "instead"),
    [
        ("[(3, 5), (4, 6)]", "[[3, 5], [4, 6]]"),
        ("[(3, 3), (3, 5)]", "[[3, 3], [3, 5]]"),
        ("[(1, 2, 3), four]", '["(1, 2, 3)", "four"]'),
        ("[relu(0, 6), gelu()]", '["relu(0, 6)", "gelu()"]'),
        ("[range(1, 3)]", '["range(1, 3)"]'),
        ("[dict(a=1, b=2), none]", '["dict(a=1, b=2)", "none"]'),
    ],
)
def test_a_value_that_commas_divide_is_refused_with_what_to_write(values: str, instead: str) -> None:
    problems = read_values(values)

    assert not isinstance(problems, Sweep)
    assert [problem.code for problem in problems] == ["value-divided"]
    assert instead in (problems[0].hint or "")
    assert isinstance(read_values(instead), Sweep)
