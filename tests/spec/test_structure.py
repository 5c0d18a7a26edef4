"""Structure: keys, kinds, what is not supported yet, and all mistakes at once."""

from typing import Any

import pytest

from generator.spec import parse
from generator.structs.sweep import Sweep
from tests.written_specs import SETTINGS, a_spec, bad, good, hints, messages, parsed


@pytest.mark.parametrize("method", ["random", "sobol", "halton", "latin-hypercube", "list", "bayes"])
def test_methods_of_later_releases_are_not_supported_yet(method: str) -> None:
    found = parsed(a_spec(method=method))

    assert isinstance(found, tuple)
    assert [(problem.message, problem.code, problem.hint) for problem in found] == [
        (f"the value {method!r} is not supported yet", "not-supported-yet", "supported: 'grid'")
    ]


@pytest.mark.parametrize(
    ("method", "hint"),
    [("gird", "did you mean 'grid'?"), ("Grid", "did you mean 'grid'?"), ("x", "known: 'grid'")],
)
def test_other_methods_are_unknown(method: str, hint: str) -> None:
    assert messages(method=method) == [f"must be one of 'grid', got {method!r}"]
    assert hints(method=method) == [hint]


LATER = [
    *(
        "program",
        "zip",
        "when",
        "constraints",
        "derived",
        "blocks",
        "seed",
        "replicates",
        "run_cap",
        "budget",
    ),
    *("early_terminate", "cancel"),
]


@pytest.mark.parametrize("key", LATER)
def test_keys_of_later_releases_are_not_supported_yet(key: str) -> None:
    assert messages(**{key: 1}) == [f"the key {key!r} is not supported yet"]
    assert bad(**{key: 1}) == [(key, "not-supported-yet")]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"metric": {"name": "a", "target": 1}}, "metric.target"),
        ({"metric": {"name": "a", "reduce": "max"}}, "metric.reduce"),
        ({"parameters": {"a": {"value": 1, "distribution": "normal"}}}, "parameters.a.distribution"),
        ({"run": {"pool": "a"}}, "run.pool"),
        ({"run": {"secrets": []}}, "run.secrets"),
    ],
)
def test_later_keys_are_known_at_their_place(change: dict[str, Any], path: str) -> None:
    assert bad(**change) == [(path, "not-supported-yet")]


@pytest.mark.parametrize(
    "key", ["min", "max", "distribution", "mu", "sigma", "q", "step", "probabilities", "parameters"]
)
def test_other_domains_than_values_are_not_supported_yet(key: str) -> None:
    assert bad(parameters={"a": {key: 1}}) == [(f"parameters.a.{key}", "not-supported-yet")]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"target": 1}, "target"),
        ({"run": {"zip": 1}}, "run.zip"),
        ({"run": {"code": {"seed": 1}}}, "run.code.seed"),
        ({"parameters": {"a": {"value": 1, "zip": 2}}}, "parameters.a.zip"),
        ({"metric": {"name": "a", "pool": 2}}, "metric.pool"),
    ],
)
def test_later_keys_are_unknown_elsewhere(change: dict[str, Any], path: str) -> None:
    assert bad(**change) == [(path, "unknown-key")]


@pytest.mark.parametrize("key", ["name", "method", "metric", "parameters", "command"])
def test_a_spec_says_what_it_must(key: str) -> None:
    found = parsed(a_spec(**{key: ...}))

    assert isinstance(found, tuple)
    assert [(problem.path, problem.message, problem.line) for problem in found] == [(key, "must be given", 1)]


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
    found = parse(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(found, tuple)
    assert [(problem.line, problem.column, problem.code) for problem in found] == [
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
    found = parse(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(found, tuple)
    assert {problem.code for problem in found} == {
        "alias",
        "ambiguous-scalar",
        "tag",
        "empty-value",
        "key-type",
    }


@pytest.mark.parametrize("length", [1000, 1001])
def test_a_description_is_bounded(length: int) -> None:
    if length == 1000:
        assert good(description="x" * length)
    else:
        assert messages(description="x" * length) == ["must have at most 1000 characters, got 1001"]


@pytest.mark.parametrize(
    ("version", "accepted"), [(1, True), (2, False), ("1", False), (True, False), (0, False)]
)
def test_the_version_is_one(version: Any, accepted: bool) -> None:  # noqa: FBT001
    assert isinstance(parsed(a_spec(version=version)), Sweep) is accepted


@pytest.mark.parametrize("text", ["", "# only a comment\n", "null"])
def test_an_empty_spec_is_refused(text: str) -> None:
    found = parse(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(found, tuple)
    (problem,) = found
    assert str(problem) == (
        "sweeps/lr.yaml: must hold a sweep, got an empty file [empty-file]\n"
        "  hint: `sweep new NAME` writes one to start from"
    )


@pytest.mark.parametrize("text", ["[1]", "x", "5", "true"])
def test_a_spec_is_a_mapping(text: str) -> None:
    found = parse(text.encode(), "sweeps/lr.yaml", SETTINGS)

    assert isinstance(found, tuple)
    assert [(problem.code, problem.line, problem.hint) for problem in found] == [("wrong-type", 1, None)]
