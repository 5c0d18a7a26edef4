"""The conversion of one Hydra override to one parameter."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange.conversion import LossList
from sweepledger.exchange.fields import no_values
from sweepledger.exchange.hydra.grammar import Choices, Glob, IntervalSweep, Range, parse_value
from sweepledger.exchange.spec_parts import range_keys
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import PARAMETER_NAME
from sweepledger.structs.values import Value, canonical_json

KEY = re.compile(r"(\+\+?|~)?([^=\s]*)", re.ASCII)
MANY = 12
"""Number of values; more integers are written as min, max and step."""


@dataclass(frozen=True, slots=True)
class Override:
    """The parts of an override; the value is in Hydra's syntax."""

    key: str
    """The key as written, including `+`, `++` and `@`."""
    name: str | None
    """The parameter's name; None if the override deletes a key."""
    text: str


def split_override(written: str) -> Override:
    """Return the parts of an override. Raises ForeignError if it is malformed."""
    key, equals, text = written.partition("=")
    match = KEY.fullmatch(key)
    if match is None or not match[2] or (match[1] != "~" and not equals):
        raise ForeignError(f"must be an override of Hydra, key=value, got {written[:60]!r}")
    if match[1] == "~":
        return Override(key, None, text)
    name = re.sub(r"[^A-Za-z0-9_.-]", ".", match[2].lstrip("$_"))
    return Override(key, name if PARAMETER_NAME.fullmatch(name) else match[2], text)


def override_parameter(
    override: Override, losses: LossList, *, has_ends: bool = False
) -> dict[str, Any] | None:
    """Return the keys of an override's parameter: its sweep, or its single value; None if it cannot be converted."""
    try:
        swept = parse_value(override.text.lstrip(" \t"))
    except ForeignError as error:
        raise ForeignError(f"hydra.sweeper.params.{override.key}: {error}", hint=error.hint) from error
    match swept:
        case Glob():
            why = "the options of a config group are only in the app's files; write them as values: [a, b]"
            losses.add(f"{override.key}={override.text}", f"{why}; left out")
            return None
        case IntervalSweep(start, end, tags):
            if other := sorted(tags - {"log"}):
                losses.add(f"{override.key}: tag({', '.join(other)})", "a tag of the sweeper; left out")
            is_whole = isinstance(start, int) and isinstance(end, int)
            return range_keys(start, end, is_log="log" in tags, is_whole=is_whole)
        case Range():
            numbers = swept.values_to_end() if has_ends else swept.values()
            keys = _choice(override, list(numbers), losses, is_shuffled=swept.is_shuffled)
            return _abridged(numbers, keys)
        case Choices(values):
            return _choice(override, list(values), losses, is_shuffled=swept.is_shuffled)
        case _:
            return {"value": _argument(swept, override.key, losses)}


def _choice(override: Override, values: list[Any], losses: LossList, *, is_shuffled: bool) -> dict[str, Any]:
    if not values:
        raise no_values(f"hydra.sweeper.params.{override.key}")
    arguments = [_argument(each, override.key, losses) for each in values]
    distinct = {canonical_json(each): each for each in reversed(arguments)}
    kept = [distinct[name] for name in dict.fromkeys(map(canonical_json, arguments))]
    if len(kept) < len(arguments):
        losses.add(override.key, "repeats a value; equal configurations are one trial here")
    if is_shuffled:
        losses.add(f"{override.key}: shuffle", "the order of trials does not matter here; kept as written")
    return {"values": kept}


def _abridged(numbers: tuple[int | float, ...], keys: dict[str, Any]) -> dict[str, Any]:
    if len(numbers) <= MANY or not all(isinstance(number, int) for number in numbers):
        return keys
    first, last = sorted((numbers[0], numbers[-1]))
    return {"min": first, "max": last, "step": abs(numbers[1] - numbers[0])}


def _argument(given: Any, key: str, losses: LossList) -> Value:
    """Return a value for a spec that Hydra reads from the command line as the given value. Raises ForeignError."""
    if any(isinstance(each, float) and not math.isfinite(each) for each in _scalars(given)):
        raise ForeignError(f"hydra.sweeper.params.{key} must be finite, got {hydra_text(given)[:60]}")
    if given is None:
        losses.add(f"{key}: null", "written as the text null, which Hydra reads as null")
        return "null"
    if isinstance(given, str):
        written = as_argument(given)
        if written != given:
            losses.add(f"{key}: {given}", f"written as {written}, so that Hydra reads text")
        return written
    items = given if isinstance(given, list) else [given]
    if isinstance(given, dict) or any(isinstance(item, dict | list) or item is None for item in items):
        written = hydra_text(given)
        losses.add(
            f"{key}: {written}", "a value here cannot contain these parts; written as text that Hydra reads"
        )
        return written
    if not all(isinstance(item, bool | int | float | str) for item in items):
        raise ForeignError(f"hydra.sweeper.params.{key} must not have a sweep inside a choice")
    return given  # type: ignore[no-any-return] # a scalar or a list of scalars


def _scalars(given: Any) -> Iterator[Any]:
    match given:
        case dict():
            for key, value in given.items():
                yield from (*_scalars(key), *_scalars(value))
        case list():
            for item in given:
                yield from _scalars(item)
        case _:
            yield given


def as_texts(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the values as texts if Hydra would read the JSON of some differently.

    A column of several types reaches an environment variable as JSON, a column of texts unchanged.
    """
    values = keys.get("values", ())
    if len({isinstance(each, str) for each in values}) > 1 and not all(
        parse_value(json.dumps(each)) == parse_value(_bare(each)) for each in values
    ):
        return {"values": [_bare(each) for each in values]}
    return keys


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else hydra_text(value)


def as_argument(text: str) -> str:
    """Return a text that Hydra reads as this text: without quotes if possible."""
    try:
        if parse_value(text) == text and text == text.strip():
            return text
    except ForeignError:
        pass
    # Backslashes escape only before a quote, so only those are doubled.
    escaped = re.sub(r"(?<!\\)(\\*)('|\Z)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"


def hydra_text(given: Any) -> str:
    """Return a value in Hydra's syntax."""
    match given:
        case dict():
            inner = ",".join(f"{hydra_text(key)}:{hydra_text(each)}" for key, each in given.items())
            # A spec may not contain the two braces of a template.
            return "{" + inner + (" }" if inner.endswith("}") else "}")
        case list():
            return "[" + ",".join(map(hydra_text, given)) + "]"
        case None:
            return "null"
        case bool():
            return str(given).lower()
        case str():
            return as_argument(given) or "''"
        case _:
            return str(given)
