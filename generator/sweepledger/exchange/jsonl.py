"""JSON Lines: one object per configuration and line; an absent parameter is a missing key."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.exchange import configuration_list, trials
from sweepledger.exchange.configuration_list import MAX_FILE_BYTES
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss
from sweepledger.formats.evidence_jsonl import MAX_EVIDENCE_BYTES, ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError, decoded
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import written

SECTIONS = ("params", "parameters", "config", "configuration", "hparams", "metrics", "summary")
"""Objects whose members count as columns, as in W&B's and MLflow's JSON."""

MAX_LINE_BYTES = 256 * 1024

NESTED = Loss("objects within objects", "their parameters have dotted names, as nested parameters have here")


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with a file's objects as its list. Raises ForeignError."""
    if len(content) > MAX_FILE_BYTES or content.count(b"\n") > MAX_TRIALS:
        raise ForeignError(f"must have at most {MAX_FILE_BYTES} bytes and {MAX_TRIALS} lines, got more")
    for number, line in enumerate(content.split(b"\n"), start=1):
        if len(line) > MAX_LINE_BYTES:
            raise ForeignError(
                f"must have at most {MAX_LINE_BYTES} bytes a line, got {len(line)}", line=number
            )
    rows, nested = [], False
    for number, item in _objects(content, MAX_FILE_BYTES, _STRICT):
        try:
            flat = _flat(item)
        except RecursionError as error:  # some versions of Python decode more levels than they can traverse
            raise ForeignError("nests too deep", line=number) from error
        nested = nested or any(isinstance(value, dict) for value in item.values())
        rows.append(configuration_list.checked_configuration(flat, f"line {number}"))
    if not rows:
        raise ForeignError("must contain at least one object, got none")
    kept, repeated = configuration_list.distinct_configurations(rows)
    return configuration_list.imported_list(name, kept, (*repeated, *([NESTED] if nested else [])))


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return the configurations in order, with exactly the values that trials receive."""
    lines = [json.dumps(written(values), allow_nan=False) + "\n" for values in assignments]
    return Exported("".join(lines), configuration_list.export_losses(sweep))


def _objects(content: bytes, most: int, decoder: json.JSONDecoder) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each line that is not empty, with its number. Raises ForeignError."""
    for number, line in enumerate(decoded(content, most).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = decoder.decode(line)
        except RecursionError as error:
            raise ForeignError("nests too deep", line=number) from error
        except json.JSONDecodeError as error:
            raise ForeignError(f"must be a JSON object: {error.msg.lower()}", line=number) from error
        except ValueError as error:
            raise ForeignError(str(error), line=number) from error
        if not isinstance(value, dict):
            raise ForeignError(f"must be a JSON object, got {value!r}"[:200], line=number)
        yield number, value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for name, value in pairs:
        if name in mapping:
            raise ValueError(f"must not repeat the key {name!r}")
        mapping[name] = value
    return mapping


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, got {text!r}")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)


def _flat(item: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in item.items():
        inner = _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        for key in inner.keys() & flat.keys():
            raise ForeignError(f"two values are called {key!r}")
        flat |= inner
    return flat


def read_trials(content: bytes, sweep: Sweep, _study: str | None) -> tuple[None, Iterator[ForeignTrial]]:
    """Return the finished trials of JSON Lines, also with objects such as `config`. Raises ForeignError."""
    return None, _trials(content, sweep)


def _trials(content: bytes, sweep: Sweep) -> Iterator[ForeignTrial]:
    for number, data in _objects(content, MAX_EVIDENCE_BYTES, json.JSONDecoder()):
        cells = {name: value for name, value in data.items() if not isinstance(value, dict)}
        for section in SECTIONS:
            inner = data.get(section)
            # W&B stores {"lr": {"value": 0.1}} in its files of settings.
            for name, value in inner.items() if isinstance(inner, dict) else ():
                is_wrapped = isinstance(value, dict) and "value" in value
                cells.setdefault(name, value["value"] if is_wrapped else value)
        yield from trials.finished_trials(cells, sweep, line=number)


FORMAT = ForeignFormat(
    "jsonl",
    "a JSON object with the values of a configuration on each line",
    read=read,
    write=write,
    trials=read_trials,
    suffixes=(".jsonl", ".ndjson"),
)
