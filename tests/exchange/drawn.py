"""Sweeps that hypothesis draws, for what must hold of every sweep that goes out to another tool."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from sweepledger import search
from sweepledger.search import Expansion
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.written_specs import a_spec, parsed

NAMES = ("alpha", "beta", "gamma")
NUMBERS = st.one_of(
    st.integers(-1000, 1000), st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: float(f"{number:.6g}"))
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


@st.composite
def searches(draw: st.DrawFn) -> Sweep:
    """An adaptive search that is valid, with and without limits of its rounds and trials."""
    rounds = {"size": draw(st.integers(1, 9))} | draw(
        st.sampled_from([{"patience": 2}, {"max": 3}, {"max": 20}])
    )
    cap = draw(st.sampled_from([{}, {"run_cap": 5}, {"run_cap": 300}]))
    domain = st.one_of(CHOICES, CONSTANTS, ranges())
    first = draw(ranges())
    others = {name: draw(domain) for name in NAMES[1 : draw(st.integers(1, 3))]}
    changes: dict[str, Any] = {
        "method": draw(st.sampled_from(["tpe", "bayes", "cma-es"])),
        "metric": {"name": "score", "goal": "maximize", "source": "stdout"},
        "seed": draw(st.integers(0, 9)),
        "rounds": rounds,
        "parameters": {NAMES[0]: first, **others},
        **cap,
    }
    sweep = parsed(a_spec(**changes))
    assume(isinstance(sweep, Sweep))
    assert isinstance(sweep, Sweep)
    return sweep
