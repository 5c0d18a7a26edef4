"""From a spec to a format and back: the same trials, or a loss that says what is different."""

from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.errors import UsageError
from sweepledger.exchange.conversion import most_trials
from sweepledger.exchange.registry import formats
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.domain import Domain
from sweepledger.structs.search_block import AdaptiveSearch, RandomSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json
from tests.exchange.conformance import REPEATED, there_and_back, trials
from tests.exchange.drawn import searches, sweeps
from tests.exchange.imported import READERS, SEARCH_FORMATS, WRITERS
from tests.written_specs import good

pytest.importorskip("hydra")

ALSO_READ = sorted(set(READERS) & set(WRITERS) - {"optuna"})
"""Optuna's script is read by Optuna alone: see test_optuna_writing.py."""
WITH_CONSTANT = good(
    method="grid",
    metric={"name": "score", "source": "stdout"},
    parameters={"alpha": {"values": [0]}, "beta": {"value": 0}},
)
"""Katib has no parameters of one value."""
SEARCH = good(
    method="tpe",
    seed=1,
    rounds={"size": 9, "max": 3},
    run_cap=300,
    metric={"name": "score", "goal": "maximize", "source": "stdout"},
    parameters={"alpha": {"min": 0.5, "max": 1.5}, "beta": {"values": ["u", "v"]}},
)
"""Its rounds end it before its cap does."""
UNLIMITED = good(
    method="bayes",
    seed=1,
    rounds={"size": 9, "patience": 2},
    metric={"name": "score", "goal": "maximize", "source": "stdout"},
    parameters={"alpha": {"min": 0.5, "max": 1.5}, "beta": {"min": 1, "max": 9}},
)
"""Only its results end it."""


def space(sweep: Sweep) -> object:
    """Return what random trials are drawn from, and how many; None of other sweeps."""
    block = sweep.design
    domains = {parameter.name: parameter.domain for parameter in block.space.parameters}
    return (str(block.method), block.cap, domains) if isinstance(block, RandomSearch) else None


def is_same(again: Sweep, sweep: Sweep) -> bool:
    """Return whether a sweep comes back: its trials, or the space of those that each tool draws by itself."""
    drawn = space(sweep)
    return trials(again) == trials(sweep) or (drawn is not None and space(again) == drawn)


@cache
def always_lost(name: str) -> set[str]:
    """Return what is reported of every sweep, which says nothing of values."""
    return there_and_back(formats()[name], REPEATED)[1]


def check(name: str, sweep: Sweep) -> None:
    try:
        again, lost = there_and_back(formats()[name], sweep)
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


def values_of(domain: Domain) -> object:
    match domain:
        case Choice(values, None):
            return {canonical_json(value) for value in values}
        case Quantized(Uniform(low, high), q) if (high - low) % q == 0:
            return {canonical_json(low + step * q) for step in range(int((high - low) / q) + 1)}
        case _:
            return domain


def changed_in_search(again: Sweep, sweep: Sweep) -> set[str]:
    """Return what is different in a search that comes back: words that a loss of it has."""
    before, after = sweep.design, again.design
    assert isinstance(before, AdaptiveSearch)
    domains = {parameter.name: values_of(parameter.domain) for parameter in before.space.parameters}
    others = {parameter.name: values_of(parameter.domain) for parameter in after.space.parameters}
    changed = {
        name for name, domain in domains.items() if others.get(name) != domain
    } | others.keys() - domains.keys()
    if str(after.method) != str(before.method):
        changed.add("method")
    most = most_trials(after) if isinstance(after, AdaptiveSearch) else getattr(after, "cap", None)
    if most != most_trials(before):
        changed.add("trials")
    return changed


def check_search(name: str, sweep: Sweep) -> None:
    try:
        again, lost = there_and_back(formats()[name], sweep)
    except (UsageError, ForeignError):
        return  # refused with the reason
    names = {"trials": {"run_cap", "Trial", "trials"}, "method": {"method", "algorithmName"}}
    for changed in changed_in_search(again, sweep):
        words = names.get(changed, {changed})
        assert any(word in loss for loss in lost for word in words), f"{changed} differs in silence: {lost}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", sorted(SEARCH_FORMATS - {"optuna"}))
@settings(max_examples=15, suppress_health_check=list(HealthCheck), report_multiple_bugs=False, deadline=None)
@example(sweep=SEARCH)
@example(sweep=UNLIMITED)
@given(sweep=searches())
def test_a_search_never_comes_back_changed_in_silence(name: str, sweep: Sweep) -> None:
    check_search(name, sweep)
