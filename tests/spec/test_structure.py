"""Structure: keys, kinds, and all mistakes at once."""

from typing import Any

import pytest

from sweepledger.spec.schema_keys import load_schema
from tests.written_specs import SETTINGS, a_spec, bad, hints, messages, parse_sweep, parsed

METHODS = sorted(load_schema("sweep")["properties"]["method"]["enum"])


@pytest.mark.parametrize(("method", "hint"), [("gird", "did you mean 'grid'?"), ("x", None)])
def test_other_methods_are_unknown(method: str, hint: str | None) -> None:
    assert messages(method=method) == [f"must be one of {', '.join(map(repr, METHODS))}, got {method!r}"]
    assert hints(method=method) == [hint]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"when": {"a": 1}}, "when"),
        ({"run": {"code": {"seed": 1}}}, "run.code.seed"),
        ({"parameters": {"a": {"value": 1, "zip": 2}}}, "parameters.a.zip"),
        (
            {"parameters": {"a": {"parameters": {"b": {"value": 1, "zip": 2}}}}},
            "parameters.a.parameters.b.zip",
        ),
    ],
)
def test_keys_are_unknown_elsewhere(change: dict[str, Any], path: str) -> None:
    assert bad(**change) == [(path, "unknown-key")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": {"a": {"linspace": [1, 2]}}}, "must have 3 entries, such as [0, 1, 5], got 2"),
        ({"zip": [["rate"]]}, "must have at least 2 entries, got 1"),
        ({"parameters": {"a": {"min": 0, "max": 1, "step": 0}}}, "must be more than 0, got 0"),
        ({"parameters": {"a": {"min": "x", "max": 1}}}, "must be a number, got 'x'"),
        (
            {"parameters": {"a": {"values": [[[1]]]}}},
            "must be text, a number, true or false or null, got a list",
        ),
        ({"replicates": 1.5}, "must be an integer, got 1.5"),
        ({"constraints": "rate < 1"}, "must be a list, got 'rate < 1'"),
    ],
)
def test_kinds_and_bounds_are_told_in_words(change: dict[str, Any], message: str) -> None:
    assert messages(**change) == [message]


@pytest.mark.parametrize("key", ["name", "method", "metric", "parameters", "command"])
def test_a_spec_says_what_it_must(key: str) -> None:
    sweep = parsed(a_spec(**{key: ...}))

    assert isinstance(sweep, tuple)
    assert [(problem.path, problem.code, problem.line) for problem in sweep] == [(key, "missing-key", 1)]


def test_all_mistakes_are_found_at_once_each_at_its_place() -> None:
    text = """\
name: lr
method: grdi
metric: {name: accuracy, goal: maximise}
parameters:
  rate: {values: [0.1, on, 1e-1]}
  Rate: {}
command: [train, "${arg}"]
runs: {}
run: {timeout: 10 minutes, parallelism: "4"}
"""
    sweep = parse_sweep(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(sweep, tuple)
    assert [(problem.line, problem.column, problem.code) for problem in sweep] == [
        (2, 9, "wrong-value"),
        (3, 32, "wrong-value"),
        (5, 24, "ambiguous-scalar"),
        (5, 28, "duplicate-value"),
        (6, 3, "parameter-collision"),
        (6, 3, "parameter-domain"),
        (7, 18, "command-macro"),
        (8, 1, "unknown-key"),
        (9, 16, "duration"),
        (9, 41, "wrong-type"),
    ]


def test_of_a_place_that_could_not_be_read_nothing_more_is_said() -> None:
    text = "name: *x\nmethod: on\nmetric: !!map\nparameters: ~\ncommand: [010]\n1: 2\n"
    text += "run:\n  data: yes\n  timeout:\n"
    sweep = parse_sweep(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(sweep, tuple)
    codes = {problem.code for problem in sweep}
    assert codes == {"alias", "ambiguous-scalar", "tag", "empty-value", "key-type"}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "null"])
def test_an_empty_spec_is_refused(text: str) -> None:
    sweep = parse_sweep(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(sweep, tuple)
    assert [problem.code for problem in sweep] == ["empty-file"]


@pytest.mark.parametrize("text", ["[1]", "x"])
def test_a_spec_is_a_mapping(text: str) -> None:
    sweep = parse_sweep(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(sweep, tuple)
    assert [(problem.code, problem.line, problem.hint) for problem in sweep] == [("wrong-type", 1, None)]
