"""`hyperparams.yml` of the NVIDIA and EIDF examples, in both directions: a list of `hyperparam_set:`, one per job.

The file equals the output of their generators byte for byte: PyYAML's `dump` of the list.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sweepledger.exchange import configuration_list
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss, LossList
from sweepledger.exchange.spec_parts import listed_keys
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import EXPONENT, ForeignError, require_size
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json, written

Rows = Sequence[Mapping[str, Value]]

LOOKUP = Loss(
    "job numbers",
    "scripts written for the file read its item JOB_ID - 1; here a trial receives its own values as "
    "`--name=value` arguments, and its id is derived from them",
)


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with a grid if the file has every combination, else with a list of its items."""
    items = read_sets(content)
    if not items:
        raise ForeignError("must contain at least one item, got none")
    rows = [
        configuration_list.checked_configuration(item, f"item {number}")
        for number, item in enumerate(items, start=1)
    ]
    kept, repeated = configuration_list.distinct_configurations(rows)
    exponents = {
        name: text for name, text in configuration_list.text_values(kept) if EXPONENT.fullmatch(text)
    }
    why = "text, because PyYAML reads it as text for the example's scripts; a number needs a decimal point: 1.0e-3"
    losses = (*repeated, *(Loss(f"{name}: {text}", why) for name, text in exponents.items()))
    axes = _axes(kept)
    if axes is None:
        return configuration_list.imported_list(name, kept, (LOOKUP, *losses))
    crossed = itertools.product(*axes.values())
    is_same = all(
        canonical_json(values) == canonical_json([row[name] for name in axes])
        for values, row in zip(crossed, kept, strict=True)
    )
    why = f"they form a grid and are written as one: the same trials in {'the same' if is_same else 'another'} order"
    order = Loss(f"{len(kept)} hyperparam_set items", why)
    parameters = {key: listed_keys(values, key, LossList()) for key, values in axes.items()}
    spec = configuration_list.spec_frame(name, "grid", parameters=parameters)
    return Imported(spec, (*configuration_list.IMPORT_LOSSES, LOOKUP, *losses, order))


def _axes(rows: Rows) -> dict[str, list[Value]] | None:
    """Return each parameter's values, with the slowest-changing parameter first; None if combinations are missing."""
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
    # The rows differ, so as many as there are combinations are all of them.
    if math.prod(map(len, axes.values())) != len(rows):
        return None
    slowest_first = sorted(names, key=lambda name: -changes[name])
    return {name: list(axes[name].values()) for name in slowest_first}


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return the file as the examples' generators write it: item N - 1 is trial N of the first replicate."""
    return Exported(write_sets(assignments), configuration_list.export_losses(sweep))


KEY = "hyperparam_set"

ITEM_LINE = re.compile(rb"^- ", re.MULTILINE)
PART_BYTES = 256 * 1024
"""Large files are read in parts of whole items, so that the loader's limits apply to each part."""
MAX_BYTES = 64 * 1024 * 1024


def write_sets(sets: Iterable[Mapping[str, Value]]) -> str:
    """Return the text of configurations; an absent parameter has no line."""
    # One by one, so that equal lists have no anchors.
    texts = [foreign_yaml.dump([{KEY: written(values)}]) for values in sets]
    return "".join(texts) or "[]\n"


def read_sets(content: bytes) -> tuple[dict[str, Any], ...]:
    """Return the configurations in their order. Raises ForeignError."""
    require_size(content, MAX_BYTES)
    items: list[Any] = []
    for first_line, part in _parts(content):
        try:
            part_items = foreign_yaml.load(part)
        except ForeignError as error:
            line = None if error.line is None else first_line + error.line
            raise ForeignError(str(error), line=line, hint=error.hint) from error
        if not isinstance(part_items, list):
            kinds = {dict: "a mapping", type(None): "nothing"}
            message = (
                f"must be a list of `{KEY}:` items, got {kinds.get(type(part_items), repr(part_items)[:40])}"
            )
            raise ForeignError(message, hint=f"each item is `- {KEY}: {{…}}`")
        items += part_items
    return tuple(_set(item, number) for number, item in enumerate(items, start=1))


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a file before items into parts of about equal size, each with the number of lines before it."""
    start, line = 0, 0
    while len(content) - start > 2 * PART_BYTES:
        item = ITEM_LINE.search(content, start + PART_BYTES)
        if item is None:
            break
        yield line, content[start : item.start()]
        line += content.count(b"\n", start, item.start())
        start = item.start()
    yield line, content[start:]


def _set(item: Any, number: int) -> dict[str, Any]:
    if not isinstance(item, dict) or list(item) != [KEY] or not isinstance(item[KEY], dict):
        keys = f"the keys {', '.join(map(repr, item))[:80]}" if isinstance(item, dict) else "no mapping"
        raise ForeignError(
            f"item {number}: must be a mapping with the one key {KEY!r}, got {keys}",
            hint=f"each item is `- {KEY}: {{…}}`",
        )
    return dict(item[KEY])


FORMAT = ForeignFormat("nvidia", "a list of `hyperparam_set:` items", read=read, write=write)
