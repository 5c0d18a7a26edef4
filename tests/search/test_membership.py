"""Membership of configurations in a sweep: the same as in its expansion."""

import time
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings

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
    found = parse_sweep(SPEC.format(method=method, more=more, n=n).encode(), "sweeps/peak.yaml", Settings())
    assert isinstance(found, Sweep), found
    return found


RANDOM = {"method": "random", "more": "seed: 3\nrun_cap: 6\n"}


@pytest.mark.parametrize("written", [{}, RANDOM], ids=["grid", "random"])
def test_a_sweep_contains_exactly_its_expansion(written: dict[str, str]) -> None:
    asked = membership(sweep(**written))
    found = explore(sweep(**written))

    assert isinstance(found, Expansion)
    assert not isinstance(asked, tuple)
    assert all(asked(one, 0) for one in found.configurations)
    for one in found.configurations:
        assert not asked({**one, "m": 99}, 0)
        assert not asked({**one, "more": 1}, 0)
        assert not asked({"x": one["x"]}, 0)
        assert not asked(one, 1)
        assert asked({name: one[name] for name in sorted(one, reverse=True)}, 0)


def test_values_are_the_same_where_trials_are() -> None:
    asked = membership(sweep())

    assert not isinstance(asked, tuple)
    assert asked({"x": 1.0, "m": 2}, 0)
    assert asked({"x": 2.5, "m": 2.0}, 0)
    assert not asked({"x": "true", "m": 2}, 0)
    assert not asked({"x": 1, "m": True}, 0)
    assert not asked({"x": 1, "m": "2"}, 0)


def test_a_sweep_contains_its_replicate_numbers() -> None:
    asked = membership(replace(sweep(), replicates=2))

    assert not isinstance(asked, tuple)
    assert [asked({"x": 1, "m": 1}, replicate) for replicate in range(3)] == [True, True, False]


def test_a_sweep_without_configurations_has_problems() -> None:
    lost = sweep(more="constraints: [m > 9]\n")

    found = membership(lost)

    assert isinstance(found, tuple)
    assert [problem.code for problem in found] == ["constraint-nothing"]


@settings(max_examples=60, deadline=None)
@given(spaces())
def test_any_space_contains_its_configurations(space: SearchSpace) -> None:
    any_sweep = replace(sweep(), blocks=(GridSearch(space),))
    found, asked = explore(any_sweep), membership(any_sweep)

    if not isinstance(found, Expansion):
        return
    assert not isinstance(asked, tuple)
    assert all(asked(MappingProxyType(dict(one)), 0) for one in found.configurations)


def test_a_large_grid_is_not_listed() -> None:
    begun = time.process_time()

    asked = membership(sweep(n="min: 1, max: 20000"))

    assert not isinstance(asked, tuple)
    assert asked({"x": 1, "m": 20000}, 0)
    assert not asked({"x": 1, "m": 20001}, 0)
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
