"""From a spec to a format and back: the same trials, or a loss that says what is different."""

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from sweepledger import search
from sweepledger.errors import UsageError
from sweepledger.exchange.registry import EXPORTS, IMPORTS, READERS, WRITERS
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.search import Expansion
from sweepledger.structs.search_block import RandomSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.exchange.imported import assignments_of, sweep_of, whats
from tests.written_specs import a_spec, good, parsed

pytest.importorskip("hydra")

ALSO_READ = sorted(set(IMPORTS) & set(EXPORTS) - {"optuna"})
"""Optuna's script is read by Optuna alone: see test_optuna_writing.py."""
NAMES = ("alpha", "beta", "gamma")
NUMBERS = st.one_of(
    st.integers(-1000, 1000),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: float(f"{number:.6g}")),
)
TEXTS = st.text("abcxyz019.-_/ ", min_size=1, max_size=8).filter(lambda text: text == text.strip())
SCALARS = st.one_of(NUMBERS, TEXTS, st.booleans())
CHOICES = st.lists(SCALARS, min_size=1, max_size=3, unique_by=canonical_json).map(
    lambda values: {"values": values}
)
CONSTANTS = st.one_of(SCALARS, st.lists(st.integers(0, 9), min_size=1, max_size=2)).map(
    lambda value: {"value": value}
)


@st.composite
def ranges(draw: st.DrawFn) -> dict[str, Any]:
    """A distribution of numbers."""
    low, high = sorted(draw(st.lists(st.integers(1, 200), min_size=2, max_size=2, unique=True)))
    whole = {"min": low, "max": high}
    fractional = {"min": low / 64, "max": high / 64}
    return draw(
        st.sampled_from(
            [
                {"distribution": "int_uniform", **whole},
                {"distribution": "uniform", **fractional},
                {"distribution": "log_uniform_values", **fractional},
                {"distribution": "q_uniform", "min": 0, "max": 2 * high, "q": 2},
                {"distribution": "normal", "mu": low / 8, "sigma": high / 8},
            ]
        )
    )


@st.composite
def sweeps(draw: st.DrawFn) -> Sweep:
    """A sweep that is valid, of any method that needs no records."""
    method = draw(st.sampled_from(["grid", "random", "list"]))
    names = NAMES[: draw(st.integers(1, 3))]
    changes: dict[str, Any] = {
        "method": method,
        "metric": {"name": "score", "goal": "maximize", "source": "stdout"},
    }
    if method == "list":
        row = st.fixed_dictionaries(dict.fromkeys(names, SCALARS))
        rows = draw(st.lists(row, min_size=1, max_size=4, unique_by=canonical_json))
        changes |= {"parameters": ..., "assignments": rows}
    else:
        domain = (
            st.one_of(CHOICES, CONSTANTS, ranges()) if method == "random" else st.one_of(CHOICES, CONSTANTS)
        )
        changes["parameters"] = {name: draw(domain) for name in names}
    if method == "random":
        changes |= {"seed": draw(st.integers(0, 9)), "run_cap": draw(st.integers(1, 5))}
    elif draw(st.booleans()) and method == "grid" and len(names) > 1:
        changes["constraints"] = [f"{names[0]} != {names[1]}"]
    sweep = parsed(a_spec(**changes))
    assume(isinstance(sweep, Sweep))
    assert isinstance(sweep, Sweep)
    assume(isinstance(search.explore(sweep), Expansion))
    return sweep


PLAIN = good(
    method="grid",
    metric={"name": "score", "goal": "maximize", "source": "stdout"},
    parameters={"alpha": {"values": ["u", "v"]}, "beta": {"values": ["x", "y"]}},
)
"""Every format can have its trials."""
WITH_CONSTANT = good(
    method="grid",
    metric={"name": "score", "source": "stdout"},
    parameters={"alpha": {"values": [0]}, "beta": {"value": 0}},
)
"""Katib has no parameters of one value."""


def there_and_back(name: str, sweep: Sweep) -> tuple[Sweep, set[str]]:
    """Return the sweep that comes back, and what was lost on either way."""
    exported = WRITERS[name](sweep, assignments_of(sweep))
    imported = READERS[name](exported.text.encode(), name="again")
    beside = exported.text.encode()
    again = sweep_of(imported, beside=lambda file: beside if file.endswith(".csv") else None)
    return again, {*whats(exported.losses), *whats(imported.losses)}


def trials(sweep: Sweep) -> list[str]:
    """Return the configurations of a sweep, in any order."""
    return sorted(map(canonical_json, assignments_of(sweep)))


def space(sweep: Sweep) -> object:
    """Return what random trials are drawn from, and how many; None of other sweeps."""
    block = sweep.blocks[0]
    domains = {parameter.name: parameter.domain for parameter in block.space.parameters}
    return (str(block.sampler), block.cap, domains) if isinstance(block, RandomSearch) else None


def is_same(again: Sweep, sweep: Sweep) -> bool:
    """Return whether a sweep comes back: its trials, or the space of those that each tool draws by itself."""
    drawn = space(sweep)
    return trials(again) == trials(sweep) or (drawn is not None and space(again) == drawn)


@pytest.mark.parametrize("name", ALSO_READ)
def test_a_plain_grid_comes_back_as_it_was(name: str) -> None:
    again, _ = there_and_back(name, PLAIN)

    assert trials(again) == trials(PLAIN)


@cache
def always_lost(name: str) -> set[str]:
    """Return what is reported of every sweep, which says nothing of values."""
    return there_and_back(name, PLAIN)[1]


def check(name: str, sweep: Sweep) -> None:
    try:
        again, lost = there_and_back(name, sweep)
    except (UsageError, ForeignError):
        return  # refused with the reason
    assert is_same(again, sweep) or lost - always_lost(name), "something else comes back in silence"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ALSO_READ)
@settings(max_examples=15, suppress_health_check=list(HealthCheck), report_multiple_bugs=False, deadline=None)
@example(sweep=WITH_CONSTANT)
@given(sweep=sweeps())
def test_other_trials_never_come_back_in_silence(name: str, sweep: Sweep) -> None:
    check(name, sweep)


@pytest.mark.full_suite("more round trips of each format")
@pytest.mark.parametrize("name", ALSO_READ)
@settings(
    max_examples=150, suppress_health_check=list(HealthCheck), report_multiple_bugs=False, deadline=None
)
@given(sweep=sweeps())
def test_other_trials_never_come_back_in_silence_in_many_tries(name: str, sweep: Sweep) -> None:
    check(name, sweep)
