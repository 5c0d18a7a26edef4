"""One override of Hydra as one parameter of ours."""

import json
import re
from dataclasses import dataclass
from typing import Any

from generator.exchange.hydra.functions import Glob, Interval, Range, value
from generator.exchange.hydra.grammar import Choices
from generator.exchange.loss import ForeignError, Loss
from generator.structs.names import PARAMETER_NAME
from generator.structs.values import Value, canonical_json

KEY = re.compile(r"(\+\+?|~)?([^=\s]*)", re.ASCII)
ESCAPED = re.compile(r"[\\()\[\]{}:=, \t]")
"""What stands behind a backslash where no quotes are."""

MANY = 12
"""Values; a longer row of integers reads better as min, max and step."""


@dataclass(frozen=True, slots=True)
class Override:
    """An override, taken apart; the text of its value still is Hydra's."""

    key: str
    """With `+` or `++` before it and `@` in it, as written."""
    name: str | None
    """As a parameter; None where it deletes."""
    text: str


@dataclass(frozen=True, slots=True)
class Made:
    """The keys of a parameter, None where there can be none, and what is said otherwise."""

    keys: dict[str, Any] | None
    losses: tuple[Loss, ...] = ()


def split_override(written: str) -> Override:
    """Take an override apart. Raises ForeignError if it is none."""
    key, equals, text = written.partition("=")
    match = KEY.fullmatch(key)
    if match is None or not match[2] or (match[1] != "~" and not equals):
        raise ForeignError(f"must be an override of Hydra, key=value, got {written[:60]!r}")
    if match[1] == "~":
        return Override(key, None, text)
    name = re.sub(r"[^A-Za-z0-9_.-]", ".", match[2].lstrip("$_"))
    return Override(key, name if PARAMETER_NAME.fullmatch(name) else match[2], text)


def parameter(override: Override, *, has_ends: bool = False) -> Made:
    """Say as a parameter what an override sweeps over, or that it is one value."""
    try:
        swept = value(override.text.lstrip(" \t"))
    except ForeignError as error:
        raise ForeignError(f"hydra.sweeper.params.{override.key}: {error}", hint=error.hint) from error
    match swept:
        case Glob():
            why = "the options of a config group are in the app's files; write them as values: [a, b]"
            return Made(None, (Loss(f"{override.key}={override.text}", f"{why}; left out"),))
        case Interval():
            return _interval(override, swept)
        case Range():
            numbers = swept.values_to_end() if has_ends else swept.values()
            made = _choice(override, list(numbers), is_shuffled=swept.is_shuffled)
            return Made(_abridged(numbers, made.keys), made.losses)
        case Choices(values):
            read = [_bared(each) for each in values] if swept.is_bare else list(values)
            return _choice(override, read, is_shuffled=swept.is_shuffled)
        case _:
            losses: list[Loss] = []
            return Made({"value": _argument(swept, override.key, losses)}, tuple(losses))


def _interval(override: Override, interval: Interval) -> Made:
    whole = isinstance(interval.start, int) and isinstance(interval.end, int)
    kind = "log_uniform_values" if "log" in interval.tags else "int_uniform" if whole else "uniform"
    keys: dict[str, Any] = {"distribution": kind, "min": interval.start, "max": interval.end}
    if whole and kind == "log_uniform_values":
        keys |= {"distribution": "q_log_uniform_values", "q": 1}
    losses = []
    if other := sorted(interval.tags - {"log"}):
        losses.append(Loss(f"{override.key}: tag({', '.join(other)})", "a sweeper's own word; left out"))
    return Made(keys, tuple(losses))


def _choice(override: Override, values: list[Any], *, is_shuffled: bool) -> Made:
    if not values:
        raise ForeignError(f"hydra.sweeper.params.{override.key} must have at least one value, got none")
    losses: list[Loss] = []
    arguments = [_argument(each, override.key, losses) for each in values]
    distinct = {canonical_json(each): each for each in reversed(arguments)}
    kept = [distinct[name] for name in dict.fromkeys(map(canonical_json, arguments))]
    if len(kept) < len(arguments):
        losses.append(Loss(override.key, "repeats a value; equal assignments are one trial here"))
    if is_shuffled:
        losses.append(Loss(f"{override.key}: shuffle", "the order of trials changes no trial; as written"))
    return Made({"values": kept}, tuple(losses))


def _bared(given: Any) -> Any:
    """Read a text again that has lost its quotes, as Hydra does when it starts the job."""
    if not isinstance(given, str):
        return given
    try:
        found = value(ESCAPED.sub(r"\\\g<0>", given))
    except ForeignError:
        return given
    return found if found is None or isinstance(found, bool | int | float) else given


def _abridged(numbers: tuple[int | float, ...], keys: dict[str, Any] | None) -> dict[str, Any] | None:
    if len(numbers) <= MANY or not all(isinstance(number, int) for number in numbers):
        return keys
    first, last = sorted((numbers[0], numbers[-1]))
    return {"min": first, "max": last, "step": abs(numbers[1] - numbers[0])}


def _argument(given: Any, key: str, losses: list[Loss]) -> Value:
    """Give a value such that Hydra reads it back from the command line as what it was."""
    if given is None:
        losses.append(Loss(f"{key}: null", "written as the text null, which Hydra reads as null"))
        return "null"
    if isinstance(given, str):
        written = as_argument(given)
        if written != given:
            losses.append(Loss(f"{key}: {given}", f"written as {written}, so that Hydra reads text"))
        return written
    items = given if isinstance(given, list) else [given]
    if isinstance(given, dict) or any(isinstance(item, dict | list) or item is None for item in items):
        written = in_hydra(given)
        losses.append(
            Loss(f"{key}: {written}", "no value here has such parts; written as text that Hydra reads")
        )
        return written
    return given  # type: ignore[no-any-return] # a scalar or a list of scalars


def as_texts(keys: dict[str, Any]) -> dict[str, Any]:
    """Write all values as texts where Hydra would else get some in JSON that do not mean the same there.

    A column of several types reaches an environment variable as JSON, one of texts as it stands.
    """
    values = keys.get("values", ())
    if len({isinstance(each, str) for each in values}) > 1 and not all(
        value(json.dumps(each)) == value(_bare(each)) for each in values
    ):
        return {"values": [_bare(each) for each in values]}
    return keys


def _bare(each: Any) -> str:
    return each if isinstance(each, str) else in_hydra(each)


def as_argument(text: str) -> str:
    """Write a text such that Hydra takes it for that text: bare where that will do, else in quotes."""
    try:
        if value(text) == text and text == text.strip():
            return text
    except ForeignError:
        pass
    # Backslashes escape only before a quote, so only those are doubled.
    escaped = re.sub(r"(?<!\\)(\\*)('|\Z)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"


def in_hydra(given: Any) -> str:
    """Write any value as Hydra reads it."""
    match given:
        case dict():
            return "{" + ",".join(f"{in_hydra(key)}:{in_hydra(each)}" for key, each in given.items()) + "}"
        case list():
            return "[" + ",".join(map(in_hydra, given)) + "]"
        case None:
            return "null"
        case bool():
            return str(given).lower()
        case str():
            return as_argument(given) or "''"
        case _:
            return str(given)
