"""An imported spec on its way through our own reader, and the assignments it stands for."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sweepledger import search
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.registry import formats
from sweepledger.exchange.spec_text import spec_text
from sweepledger.search import Expansion
from sweepledger.structs.search_block import ConfigurationList, GridSearch
from sweepledger.structs.settings import Settings
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value
from tests.written_specs import parse_sweep

Assignments = Sequence[Mapping[str, Value]]
READERS = {name: each.read for name, each in formats().items() if each.read}
WRITERS = {name: each.write for name, each in formats().items() if each.write}
TRIAL_READERS = {name: each.trials for name, each in formats().items() if each.trials}
SEARCH_FORMATS = {name for name in WRITERS if formats()[name].is_search}


def sweep_of(imported: Imported, *, beside: Callable[[str], bytes | None] = lambda _: None) -> Sweep:
    """Read an imported spec as the repository would."""
    text = spec_text(imported, "a test")
    sweep = parse_sweep(text.encode(), f"sweeps/{imported.spec['name']}.yaml", Settings(), beside=beside)
    assert isinstance(sweep, Sweep), "\n".join([text, *map(str, sweep)])
    return sweep


def assignments_of(sweep: Sweep) -> Assignments:
    expansion = search.explore(sweep)
    assert isinstance(expansion, Expansion), "\n".join(map(str, expansion))
    return expansion.configurations


def a_grid(**values: Any) -> GridSearch:
    """Span a grid: a list of values is a choice, anything else a constant."""
    return GridSearch(
        SearchSpace(
            tuple(
                Parameter(name, Choice(tuple(value)) if isinstance(value, list) else Constant(value))
                for name, value in values.items()
            )
        )
    )


def combinations(**values: Sequence[Value]) -> Assignments:
    """Write out every combination, the last parameter fastest, without any of our own search."""
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def a_list(rows: Assignments) -> ConfigurationList:
    return ConfigurationList(SearchSpace(()), tuple(rows))


def whats(losses: Sequence[Loss]) -> list[str]:
    return [loss.part for loss in losses]


def loss_reasons(imported: Imported) -> dict[str, str]:
    """Return the reasons by parts, also by their keys alone: `project: digits` is `project`, too."""
    reasons = {loss.part: loss.reason for loss in imported.losses}
    return {part.partition(": ")[0]: reason for part, reason in reasons.items()} | reasons
