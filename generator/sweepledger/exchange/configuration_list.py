"""Lists of configurations, for formats with no other content (CSV, JSON Lines, NVIDIA)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.spec_parts import CODE_DIR, PLACEHOLDER_METRIC, PROGRAM
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader import safe_repr
from sweepledger.structs.names import PARAMETER_NAME
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json

IMPORT_LOSSES = (
    Loss(
        "metric", f"no metric found; used {PLACEHOLDER_METRIC} (maximize): write the metric of your program"
    ),
    Loss("program", f"no program found; used {CODE_DIR}/{PROGRAM}: write your program or command"),
)
"""Losses of every file of configurations, which has neither metric nor program."""

HALF_PAIR = re.compile("[\ud800-\udfff]")
MAX_FILE_BYTES = 16 * 1024 * 1024

SPEC_VALUES = 9_500
"""Keys and values of the configurations in a spec; the reader accepts 10,000 in all."""
SPEC_BYTES = 200 * 1024
"""Bytes of the configurations in a spec; the reader accepts 256 KiB in all."""


def spec_frame(name: str, method: str, **search: Any) -> dict[str, Any]:
    """Return a spec with the given search and placeholders for metric and program."""
    metric = {"name": PLACEHOLDER_METRIC, "goal": "maximize"}
    run = {"code": {"path": CODE_DIR}}
    return {"name": name, "method": method, "metric": metric, **search, "program": PROGRAM, "run": run}


def fits_in_spec(assignments: Sequence[Mapping[str, Value]]) -> bool:
    """Return whether a spec can contain the configurations."""
    lists = [value for row in assignments for value in row.values() if isinstance(value, list | tuple)]
    count = sum(1 + 2 * len(values) for values in assignments) + sum(map(len, lists))
    size = sum(len(canonical_json(values)) + 6 + 2 * len(values) for values in assignments)
    return count <= SPEC_VALUES and size <= SPEC_BYTES


def imported_list(name: str, assignments: Sequence[Mapping[str, Value]], losses: Iterable[Loss]) -> Imported:
    """Return a spec that lists configurations. Raises ForeignError if they are too many."""
    if not fits_in_spec(assignments):
        raise ForeignError(
            f"{len(assignments)} configurations are more than a spec can contain",
            hint="import them as CSV: the spec then names the file",
        )
    spec = spec_frame(name, "list", assignments=[dict(values) for values in assignments])
    return Imported(spec, (*IMPORT_LOSSES, *losses))


def distinct_configurations(
    assignments: Iterable[Mapping[str, Value]],
) -> tuple[list[Mapping[str, Value]], tuple[Loss, ...]]:
    """Return the configurations without duplicates, and a loss with the number of duplicates."""
    kept: dict[str, Mapping[str, Value]] = {}
    total = 0
    for total, values in enumerate(assignments, start=1):  # noqa: B007 - how many there were
        kept.setdefault(canonical_json(values), values)
    repeated = total - len(kept)
    why = "equal to an earlier one; use `replicates` to repeat trials with different seeds"
    return list(kept.values()), (Loss(f"{repeated} assignment(s)", why),) if repeated else ()


def checked_configuration(values: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Return an untrusted configuration. Raises ForeignError for invalid names and values."""
    for name in values:
        if not PARAMETER_NAME.fullmatch(name):
            raise ForeignError(
                f"{where}: a parameter must begin with a letter and have at most 63 letters, digits and any of "
                f"_ . -, got {safe_repr(name)}"
            )
    return {name: _value(value, f"{where}: {name}") for name, value in values.items()}


def _value(value: Any, where: str) -> Value:
    rule = "must be a number, text, true, false, null or a list"
    rule = "a list must contain single values" if isinstance(value, list) else rule
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, str | int | float | None):
            raise ForeignError(f"{where}: {rule}, got {item!r}"[:200])
        if isinstance(item, str) and HALF_PAIR.search(item):
            raise ForeignError(f"{where}: must be whole characters, got half of a surrogate pair")
    return list(value) if isinstance(value, list) else value


def export_losses(sweep: Sweep) -> tuple[Loss, ...]:
    """Return the losses of an export to a file of configurations."""
    replicates = Loss(
        "replicates", f"each configuration is written once, not {sweep.replicates} times with different seeds"
    )
    rest = Loss("metric, command, run", "the file contains only values")
    return (replicates, rest) if sweep.replicates > 1 else (rest,)


def text_values(assignments: Iterable[Mapping[str, Value]]) -> Iterator[tuple[str, str]]:
    """Yield every text value with its parameter's name."""
    for values in assignments:
        for name, value in values.items():
            if isinstance(value, str):
                yield name, value
