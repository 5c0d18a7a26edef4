"""Structure: keys, kinds, and all mistakes at once."""

from pathlib import Path
from typing import Any

import pytest

from sweepledger.spec.schema_keys import load_schema
from sweepledger.structs.sweep import Sweep
from tests.written_specs import SETTINGS, a_spec, bad, hints, messages, parse_sweep, parsed

ROOT = Path(__file__).parent.parent.parent
METHODS = sorted(load_schema("sweep")["properties"]["method"]["enum"])


@pytest.mark.parametrize(
    ("method", "hint"), [("gird", "did you mean 'grid'?"), ("Grid", "did you mean 'grid'?"), ("x", None)]
)
def test_other_methods_are_unknown(method: str, hint: str | None) -> None:
    assert messages(method=method) == [f"must be one of {', '.join(map(repr, METHODS))}, got {method!r}"]
    assert hints(method=method) == [hint]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"when": {"a": 1}}, "when"),
        ({"parameters": {"a": {"value": 1, "zip": 2}}}, "parameters.a.zip"),
        ({"run": {"code": {"seed": 1}}}, "run.code.seed"),
    ],
)
def test_keys_are_unknown_elsewhere(change: dict[str, Any], path: str) -> None:
    assert bad(**change) == [(path, "unknown-key")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": {"a": {"linspace": [1, 2]}}}, "must have 3 entries, such as [0, 1, 5], got 2"),
        (
            {"parameters": {"a": {"geomspace": [1, 2, 3, 4]}}},
            "must have 3 entries, such as [0.0001, 0.1, 4], got 4",
        ),
        ({"zip": [["rate"]]}, "must have at least 2 entries, got 1"),
        ({"parameters": {"a": {"values": []}}}, "must have at least 1 entry, got 0"),
        ({"parameters": {"a": {"min": 0, "max": 1, "step": 0}}}, "must be more than 0, got 0"),
        ({"parameters": {"a": {"min": "x", "max": 1}}}, "must be a number, got 'x'"),
        (
            {"parameters": {"a": {"values": [[[1]]]}}},
            "must be text, a number, true or false or null, got a list",
        ),
        ({"replicates": 1001}, "must be at most 1000, got 1001"),
        ({"replicates": 1.5}, "must be an integer, got 1.5"),
        ({"budget": {"max_gpu_hours": 0}}, "must be more than 0, got 0"),
        ({"constraints": "rate < 1"}, "must be a list, got 'rate < 1'"),
        ({"constraints": ["x" * 1001]}, "must have at most 1000 characters, got 1001"),
        ({"derived": {"a": 1}}, "must be text, got 1"),
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


@pytest.mark.parametrize(
    ("version", "accepted"), [(1, True), (2, False), ("1", False), (True, False), (0, False)]
)
def test_the_version_is_one(version: Any, accepted: bool) -> None:  # noqa: FBT001
    assert isinstance(parsed(a_spec(version=version)), Sweep) is accepted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        *((empty, "empty-file") for empty in ("", "# only a comment\n", "null")),
        *((other, "wrong-type") for other in ("[1]", "x", "5", "true")),
    ],
)
def test_a_spec_is_a_mapping(text: str, code: str) -> None:
    sweep = parse_sweep(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(sweep, tuple)
    assert [problem.code for problem in sweep] == [code]


def test_a_value_of_two_kinds_is_told_both() -> None:
    assert messages(run={"data": 3}) == ["must be text, a list or a mapping, got 3"]
