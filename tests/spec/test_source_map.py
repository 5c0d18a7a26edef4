"""Where the parts of a sweep are in its spec, for what is checked after the spec was read."""

from typing import Any

import pytest

from sweepledger.problems import NO_POSITION, SourceMap, SourcePosition
from sweepledger.spec import ParsedSpec, parse
from tests.written_specs import SETTINGS, good_spec

SPEC = b"""\
name: lr
metric: {name: loss, goal: minimize}
method: grid
parameters:
  rate:
    values: [0.1, 0.2]
  model:
    parameters:
      width: {values: [1, 2]}
derived:
  double: 2 * rate
constraints:
  - rate < 0.2
  - rate > 0
budget:
  max_trials: 10
  max_gpu_hours: 3
run:
  shape: jobs
  parallelism: 8
command: [python, trainer/train.py, "${args}", other.py]
"""


def source(**changes: Any) -> SourceMap:
    return good_spec(**changes).source


@pytest.fixture(scope="module")
def source_map() -> SourceMap:
    spec = parse(SPEC, "sweeps/lr.yaml", SETTINGS)
    assert isinstance(spec, ParsedSpec), "\n".join(map(str, spec))
    return spec.source


@pytest.mark.parametrize(
    ("part", "position"),
    [
        (("search",), SourcePosition("parameters", 4, 1)),
        (("search", "parameters", "rate"), SourcePosition("parameters.rate", 5, 3)),
        (("search", "parameters", "model.width"), SourcePosition("parameters.model.parameters.width", 9, 7)),
        (("search", "derived", "double"), SourcePosition("derived.double", 11, 11)),
        (("search", "constraints", 0), SourcePosition("constraints[0]", 13, 5)),
        (("search", "constraints", 1), SourcePosition("constraints[1]", 14, 5)),
        (("budget", "max_trials"), SourcePosition("budget.max_trials", 16, 3)),
        (("budget", "max_gpu_hours"), SourcePosition("budget.max_gpu_hours", 17, 3)),
        (("run", "shape"), SourcePosition("run.shape", 19, 10)),
        (("run", "parallelism"), SourcePosition("run.parallelism", 20, 16)),
        (("run", "code_path"), SourcePosition("command", 21, 1)),
        (("scripts", 0), SourcePosition("command[1]", 21, 19)),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_each_part_has_the_position_at_which_it_is_written(
    source_map: SourceMap, part: tuple[str | int, ...], position: SourcePosition
) -> None:
    assert source_map.position(*part) == position


def test_a_part_of_the_map_answers_like_the_whole_and_an_unknown_part_like_its_parent(
    source_map: SourceMap,
) -> None:
    search = source_map.part("search")

    assert search.position("constraints", 1) == source_map.position("search", "constraints", 1)
    assert search.problem("is wrong", "constraints", 1, code="x").line == 14
    assert search.position("parameters", "rate", "max") == search.position("parameters", "rate")
    assert search.position("constraints", 2) == search.position() == source_map.position("search")
    assert source_map.position("early_stop") == NO_POSITION


def test_a_program_is_where_its_name_is_and_the_code_at_its_key() -> None:
    source_map = source(command=..., program="train.py")

    assert source_map.position("run", "code_path").path == source_map.position("scripts", 0).path == "program"
    assert source_map.position("run", "code_path").column < source_map.position("scripts", 0).column


@pytest.mark.parametrize("keys", [("parallelism", "nodes", "pool"), ("nodes", "pool"), ("pool",)])
def test_the_nodes_are_decided_by_the_first_of_three_keys(keys: tuple[str, ...]) -> None:
    run = {"pool": "gpu-heavy", "nodes": 2, "parallelism": 2}
    shape = {"shape": "train-job", "image": "train", "resources": {"gpu": 1}} if "nodes" in keys else {}

    source_map = source(run={**shape, **{key: run[key] for key in keys}})

    assert source_map.position("run", "parallelism").path == f"run.{keys[0]}"


def test_what_a_spec_leaves_to_defaults_has_no_position() -> None:
    source_map = source()

    assert source_map.position("run", "parallelism") == NO_POSITION
    assert source_map.position("run", "shape") == NO_POSITION
    assert source_map.position("budget", "max_trials") == NO_POSITION
