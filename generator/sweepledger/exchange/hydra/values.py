"""The values of Hydra's overrides, parsed by hydra-core, as parameters and values that do not depend on it."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.exchange.conversion import LossList
from sweepledger.exchange.spec_parts import listed_keys, range_keys
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import PARAMETER_NAME
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.values import Value

MAX_LENGTH = 20_000
"""Characters of a value: the parser takes about 0.2 s for as many."""

MAX_QUOTED = 60
"""Characters of a value that a message quotes."""

SIMPLE_TEXT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
SIMPLE_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})", re.ASCII)
RESERVED_WORDS = frozenset({"true", "false", "null", "inf", "nan"})
SPECIAL_CHARACTERS = re.compile(r"[\\()\[\]{}:=, \t]")
"""Characters that need a backslash in an unquoted text."""

Number = int | float


SWEEPS = frozenset({"ChoiceSweep", "RangeSweep", "IntervalSweep", "Glob"})
"""The names of hydra-core's classes of values that differ from trial to trial; the library is an optional extra."""


def range_values(swept: Any, *, has_end: bool = False) -> list[Number]:
    """Return the numbers of a range sweep as Hydra lists them, or as Optuna's sweeper does if a step meets the stop.

    Raises ForeignError if they cannot be listed.
    """
    numbers = (swept.start, swept.stop, swept.step)
    try:
        is_finite = bool(swept.step) and all(map(math.isfinite, numbers))
        count = (swept.stop - swept.start) / swept.step if is_finite else 0
    except OverflowError as error:
        message = "range must have numbers that a float can hold"
        raise ForeignError(message, hint="write fewer digits") from error
    if not is_finite:
        raise ForeignError(f"range must have finite bounds and a step other than 0, got {numbers}")
    if count > MAX_TRIALS:
        raise ForeignError(f"range must have at most {MAX_TRIALS} values, got {numbers}")
    if not has_end or swept.shuffle or swept.step < 0 or swept.start > swept.stop:
        return list(swept.range())
    number_type = int if all(isinstance(number, int) for number in numbers) else float
    start, stop, step = (Decimal(str(number)) for number in numbers)
    return [number_type(start + index * step) for index in range(int((stop - start) / step) + 1)]


def parse_value(text: str) -> Any:
    """Return the value of an override: plain data, or one of hydra-core's `SWEEPS`.

    Raises ForeignError if Hydra does not accept the text, and ToolError if hydra-core is missing.
    """
    if SIMPLE_TEXT.fullmatch(text) and text.lower() not in RESERVED_WORDS:
        return text
    if SIMPLE_INTEGER.fullmatch(text):
        return int(text)
    if len(text) > MAX_LENGTH:
        raise ForeignError(f"must be at most {MAX_LENGTH} characters, got {len(text)}")
    return load_parser()(text)


@cache
def load_parser() -> Callable[[str], Any]:
    """Return hydra-core's parser of values, created once per process. Raises ToolError if hydra-core is missing.

    It does not shuffle lists here, so that equal files give equal specs.
    """
    try:
        from hydra.core.override_parser import overrides_parser  # noqa: PLC0415 - an optional extra
        from hydra.errors import HydraException  # noqa: PLC0415
    except ImportError as error:
        raise ToolError.missing_library(
            "Hydra's overrides are parsed by hydra-core", extra="hydra"
        ) from error
    functions = overrides_parser.create_functions()
    functions.functions["shuffle"] = _keep_lists(functions.functions["shuffle"])
    parser = overrides_parser.OverridesParser(functions)
    # Functions of the grammar raise whatever their conversions raise.
    failures = (HydraException, ArithmeticError, AssertionError, RecursionError, TypeError, ValueError)

    def parse(text: str) -> Any:
        try:
            value = parser.parse_override(f"key={text}").value()
        except failures as error:
            quoted = repr(text[:MAX_QUOTED])
            reason = "too many levels" if isinstance(error, RecursionError) else " ".join(str(error).split())
            raise ForeignError(f"must be a value that Hydra reads, got {quoted}: {reason}") from error
        return _converted(value)

    return parse


def _converted(value: Any) -> Any:
    """Return a parsed value without its quotes; the options of a choice are as the app receives them."""
    match value:
        case list():
            return [_converted(item) for item in value]
        case dict():
            return {_converted(key): _converted(item) for key, item in value.items()}
    match type(value).__name__:
        case "ChoiceSweep":
            return replace(value, list=[*map(_option, value.list)])
        case "QuotedString":
            return value.text
        case _:
            return value


def _option(value: Any) -> Any:
    """Return a value as the app receives it: functions remove quotes, so that `choice('1')` is a number."""
    if not isinstance(value, str):
        return _converted(value)
    try:
        parsed = parse_value(SPECIAL_CHARACTERS.sub(r"\\\g<0>", value))
    except ForeignError:
        return value
    return parsed if parsed is None or isinstance(parsed, bool | int | float) else value


def _keep_lists(shuffle: Callable[..., Any]) -> Callable[..., Any]:
    def shuffle_sweeps(*arguments: Any, **named: Any) -> Any:
        values = (*arguments, *(value for value in named.values() if value is not None))
        match values:
            case ([*items],):
                return items
            case _:
                return shuffle(*values)

    return shuffle_sweeps


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
    match type(swept).__name__:
        case "Glob":
            why = "the options of a config group are only in the app's files; write them as values: [a, b]"
            losses.add(f"{override.key}={override.text}", f"{why}; left out")
            return None
        case "IntervalSweep":
            if other := sorted(swept.tags - {"log"}):
                losses.add(f"{override.key}: tag({', '.join(other)})", "a tag of the sweeper; left out")
            is_whole = isinstance(swept.start, int) and isinstance(swept.end, int)
            return range_keys(swept.start, swept.end, is_log="log" in swept.tags, is_whole=is_whole)
        case "RangeSweep" | "ChoiceSweep" as kind:
            is_range, place = kind == "RangeSweep", f"hydra.sweeper.params.{override.key}"
            values = range_values(swept, has_end=has_ends) if is_range else swept.list
            keys = listed_keys((_argument(each, override.key, losses) for each in values), place, losses)
            if swept.shuffle:
                why = "the order of trials does not matter here; kept as written"
                losses.add(f"{override.key}: shuffle", why)
            if is_range and len(values) > MANY and all(isinstance(number, int) for number in values):
                first, last = sorted((values[0], values[-1]))
                return {"min": first, "max": last, "step": abs(values[1] - values[0])}
            return keys
        case _:
            return {"value": _argument(swept, override.key, losses)}


def _argument(given: Any, key: str, losses: LossList) -> Value:
    """Return the spec value that Hydra, given it on the command line, reads as this value. Raises ForeignError."""
    parts = [given]
    for part in parts:  # grows meanwhile
        inner = [*part, *part.values()] if isinstance(part, dict) else part
        parts += inner if isinstance(part, list | dict) else ()
    if any(isinstance(each, float) and not math.isfinite(each) for each in parts):
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


def as_texts(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the values as texts if Hydra would read the JSON of any value differently.

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
