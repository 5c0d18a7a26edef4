"""Membership of configurations in a sweep: the same as in its expansion."""

import time
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from sweepledger.search import Expansion, explore
from sweepledger.search.membership import membership
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.settings import Settings
from sweepledger.structs.space import SearchSpace
from sweepledger.structs.sweep import Sweep
from tests.search.spaces import spaces
from tests.written_specs import good, parse_sweep

SPEC = """\
name: peak
method: {method}
metric: {{name: score, goal: maximize}}
program: train.py
{more}parameters:
  x: {{values: [1, 2.5, "1", true, "ab"]}}
  m: {{{n}}}
"""


def sweep(method: str = "grid", more: str = "", n: str = "min: 1, max: 4") -> Sweep:
    result = parse_sweep(SPEC.format(method=method, more=more, n=n).encode(), "sweeps/peak.yaml", Settings())
    assert isinstance(result, Sweep), result
    return result


RANDOM = {"method": "random", "more": "seed: 3\nrun_cap: 6\n"}


@pytest.mark.parametrize("result", [{}, RANDOM], ids=["grid", "random"])
def test_a_sweep_contains_exactly_its_expansion(result: dict[str, str]) -> None:
    contains = membership(sweep(**result))
    expansion = explore(sweep(**result))

    assert isinstance(expansion, Expansion)
    assert not isinstance(contains, tuple)
    assert all(contains(assignment, 0) for assignment in expansion.configurations)
    for configuration in expansion.configurations:
        assert not contains({**configuration, "m": 99}, 0)
        assert not contains({**configuration, "more": 1}, 0)
        assert not contains({"x": configuration["x"]}, 0)
        assert not contains(configuration, 1)
        assert contains({name: configuration[name] for name in sorted(configuration, reverse=True)}, 0)


def test_values_are_the_same_where_trials_are() -> None:
    contains = membership(sweep())

    assert not isinstance(contains, tuple)
    assert contains({"x": 1.0, "m": 2}, 0)
    assert contains({"x": 2.5, "m": 2.0}, 0)
    assert not contains({"x": "true", "m": 2}, 0)
    assert not contains({"x": 1, "m": True}, 0)
    assert not contains({"x": 1, "m": "2"}, 0)


def test_a_sweep_contains_its_replicate_numbers() -> None:
    contains = membership(replace(sweep(), replicates=2))

    assert not isinstance(contains, tuple)
    assert [contains({"x": 1, "m": 1}, replicate) for replicate in range(3)] == [True, True, False]


@settings(max_examples=20, deadline=None)
@given(spaces())
def test_any_space_contains_its_configurations(space: SearchSpace) -> None:
    any_sweep = replace(sweep(), design=GridSearch(space))
    expansion, contains = explore(any_sweep), membership(any_sweep)

    if not isinstance(expansion, Expansion):
        return
    assert not isinstance(contains, tuple)
    assert all(
        contains(MappingProxyType(dict(configuration)), 0) for configuration in expansion.configurations
    )


def test_a_large_grid_is_not_listed() -> None:
    begun = time.process_time()

    contains = membership(sweep(n="min: 1, max: 20000"))

    assert not isinstance(contains, tuple)
    assert contains({"x": 1, "m": 20000}, 0)
    assert not contains({"x": 1, "m": 20001}, 0)
    assert time.process_time() - begun < 1


def test_an_adaptive_search_contains_its_whole_space() -> None:
    asks = membership(
        good(
            method="halving",
            seed=1,
            rounds={"size": 9},
            resource={"parameter": "epochs", "min": 1, "max": 9},
            parameters={"rate": {"min": 0.0, "max": 1.0}, "width": {"values": [32, 64]}},
            derived={"decay": "rate / 10"},
            constraints=["rate * width < 32"],
        )
    )

    assert not isinstance(asks, tuple)
    legal = {"rate": 0.25, "width": 64, "decay": 0.025, "epochs": 3}
    assert asks(legal, 0)
    assert not asks(legal, 1)
    beyond, unequal = {"rate": 1.5, "decay": 0.15}, {"rate": 0.75, "decay": 0.075}
    for change in (beyond, unequal, {"decay": 0.1}, {"epochs": 99}):
        assert not asks({**legal, **change}, 0)
    assert not asks({"rate": 0.25, "decay": 0.025, "epochs": 3}, 0)
