"""`hyperparams.yml` of the NVIDIA and EIDF examples, in both directions."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from generator.exchange import listing
from generator.exchange.loss import Exported, ForeignError, Imported, Loss
from generator.formats import hyperparams_yaml
from generator.formats.foreign_yaml import EXPONENT
from generator.structs.sweep import Sweep
from generator.structs.values import Value, canonical_json

Rows = Sequence[Mapping[str, Value]]

LOOKUP = Loss(
    "job numbers",
    "scripts written for the file look up item JOB_ID - 1 of it; here a trial gets its own values, as "
    "`--name=value` arguments, and its id follows from them",
)


def read(content: bytes, *, name: str) -> Imported:
    """Make a grid of the file where it holds every combination, and a list of its items otherwise."""
    items = hyperparams_yaml.read(content)
    if not items:
        raise ForeignError("must hold at least one item, got none")
    rows = [listing.checked(item, f"item {number}") for number, item in enumerate(items, start=1)]
    kept, repeated = listing.once(rows)
    losses = (*repeated, *_exponents(kept))
    axes = _axes(kept)
    if axes is None:
        spec = listing.frame(name, "list", assignments=listing.inline(kept))
        return Imported(spec, (*listing.UNSAID, LOOKUP, *losses))
    order = _order(axes, kept)
    return Imported(
        listing.frame(name, "grid", parameters={key: _domain(values) for key, values in axes.items()}),
        (*listing.UNSAID, LOOKUP, *losses, order),
    )


def _axes(rows: Rows) -> dict[str, list[Value]] | None:
    """Find each parameter's values, the slowest to change first; None if rows are missing."""
    names = list(rows[0])
    if not names or any(row.keys() != rows[0].keys() for row in rows):
        return None
    axes: dict[str, dict[str, Value]] = {name: {} for name in names}
    changes = dict.fromkeys(names, len(rows))
    for number, row in enumerate(rows):
        for name in names:
            key = canonical_json(row[name])
            if key not in axes[name] and axes[name]:
                changes[name] = min(changes[name], number)
            axes[name].setdefault(key, row[name])
    count = 1
    for values in axes.values():
        count *= len(values)
    # The rows differ, so as many as there are combinations are all of them.
    if count != len(rows):
        return None
    slowest_first = sorted(names, key=lambda name: -changes[name])
    return {name: list(axes[name].values()) for name in slowest_first}


def _domain(values: list[Value]) -> dict[str, Any]:
    return {"values": values} if len(values) > 1 else {"value": values[0]}


def _order(axes: Mapping[str, list[Value]], rows: Rows) -> Loss:
    told = f"{len(rows)} hyperparam_set items"
    for values, row in zip(itertools.product(*axes.values()), rows, strict=True):
        if any(
            canonical_json(value) != canonical_json(row[name])
            for name, value in zip(axes, values, strict=True)
        ):
            return Loss(
                told, "written as the grid that they are: the same trials, in another order than the file's"
            )
    return Loss(told, "written as the grid that they are: the same trials, in the file's order")


def _exponents(rows: Rows) -> tuple[Loss, ...]:
    found = dict(pair for pair in listing.texts(rows) if EXPONENT.fullmatch(pair[1]))
    return tuple(
        Loss(f"{name}: {text}", "text, as PyYAML reads it for their scripts; a number needs a point: 1.0e-3")
        for name, text in found.items()
    )


def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Write the assignments as the examples' generators do: item N - 1 is trial N of the first replicate."""
    return Exported(hyperparams_yaml.write(assignments), listing.left_behind(sweep))
