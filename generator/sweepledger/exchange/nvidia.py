"""`hyperparams.yml` of the NVIDIA and EIDF examples, in both directions."""

import itertools
from collections.abc import Mapping, Sequence

from sweepledger.exchange import configuration_list
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss, LossList
from sweepledger.exchange.spec_parts import listed_keys
from sweepledger.formats import hyperparams_yaml
from sweepledger.formats.foreign_yaml import EXPONENT, ForeignError
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json

Rows = Sequence[Mapping[str, Value]]

LOOKUP = Loss(
    "job numbers",
    "scripts written for the file read its item JOB_ID - 1; here a trial receives its own values as "
    "`--name=value` arguments, and its id is derived from them",
)


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with a grid if the file has every combination, else with a list of its items."""
    items = hyperparams_yaml.read(content)
    if not items:
        raise ForeignError("must contain at least one item, got none")
    rows = [
        configuration_list.checked_configuration(item, f"item {number}")
        for number, item in enumerate(items, start=1)
    ]
    kept, repeated = configuration_list.distinct_configurations(rows)
    losses = (*repeated, *_exponents(kept))
    axes = _axes(kept)
    if axes is None:
        spec = configuration_list.spec_frame(
            name, "list", assignments=configuration_list.inline_configurations(kept)
        )
        return Imported(spec, (*configuration_list.IMPORT_LOSSES, LOOKUP, *losses))
    crossed = itertools.product(*axes.values())
    is_same = all(
        canonical_json(list(values)) == canonical_json([row[name] for name in axes])
        for values, row in zip(crossed, kept, strict=True)
    )
    why = f"they form a grid and are written as one: the same trials in {'the same' if is_same else 'another'} order"
    order = Loss(f"{len(kept)} hyperparam_set items", why)
    return Imported(
        configuration_list.spec_frame(
            name,
            "grid",
            parameters={key: listed_keys(values, key, LossList()) for key, values in axes.items()},
        ),
        (*configuration_list.IMPORT_LOSSES, LOOKUP, *losses, order),
    )


def _axes(rows: Rows) -> dict[str, list[Value]] | None:
    """Return each parameter's values, the slowest to change first; None if combinations are missing."""
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


def _exponents(rows: Rows) -> tuple[Loss, ...]:
    texts = dict(pair for pair in configuration_list.text_values(rows) if EXPONENT.fullmatch(pair[1]))
    return tuple(
        Loss(
            f"{name}: {text}",
            "text, because PyYAML reads it as text for the example's scripts; a number needs a decimal point: 1.0e-3",
        )
        for name, text in texts.items()
    )


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return the file as the examples' generators write it: item N - 1 is trial N of the first replicate."""
    return Exported(hyperparams_yaml.write(assignments), configuration_list.export_losses(sweep))


FORMAT = ForeignFormat("nvidia", "a list of `hyperparam_set:` items", read=read, write=write)
