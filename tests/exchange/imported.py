"""An imported spec on its way through our own reader, and the assignments it stands for."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from generator import search
from generator.exchange.loss import Imported, Loss
from generator.exchange.spec_text import spec_text
from generator.search import Expansion
from generator.spec import parse
from generator.structs.domain import Choice, Constant
from generator.structs.settings import Settings
from generator.structs.space import Parameter, SearchSpace
from generator.structs.sweep import Grid, Listing, Sweep
from generator.structs.values import Value

Assignments = Sequence[Mapping[str, Value]]


def sweep_of(found: Imported, *, beside: Callable[[str], bytes | None] = lambda _: None) -> Sweep:
    """Read an imported spec as the repository would."""
    text = spec_text(found, "a test")
    sweep = parse(text.encode(), f"sweeps/{found.spec['name']}.yaml", Settings(), beside=beside)
    assert isinstance(sweep, Sweep), "\n".join([text, *map(str, sweep)])
    return sweep


def assignments_of(sweep: Sweep) -> Assignments:
    """Expand a sweep."""
    found = search.explore(sweep)
    assert isinstance(found, Expansion), "\n".join(map(str, found))
    return found.assignments


def a_grid(**values: Any) -> Grid:
    """Span a grid: a list of values is a choice, anything else a constant."""
    return Grid(
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


def a_list(rows: Assignments) -> Listing:
    """List assignments."""
    return Listing(SearchSpace(()), tuple(rows))


def whats(losses: Sequence[Loss]) -> list[str]:
    """Name what was lost."""
    return [loss.what for loss in losses]
