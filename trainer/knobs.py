"""What a knob is: a number, a switch or a word, with its unit, default and limits, read from arguments.

Which knobs there are, `hyperparameters` says.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from trainer.contract import BAD_HYPERPARAMETERS, BAD_SWEEP, Problem, TrialError

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""float() alone would also take `1_0`, `nan` and digits of other scripts."""
LONGEST_TEXT = 40
"""Characters; repr of a float needs 24. Of longer text no more is shown."""
SWITCH = {"on": True, "off": False, "true": True, "false": False}
"""What a switch may be called, in any case: Python writes True, YAML true, the first of all sweeps 'on'."""

Value = float | bool | str


@dataclass(frozen=True, slots=True)
class Rule:
    """What a number must be, in words and as a test."""

    words: str
    allows: Callable[[float], bool]


POSITIVE = Rule("must be greater than 0 and finite", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = Rule("must be at least 0 and finite", lambda value: 0 <= value < math.inf)
SHARE = Rule("must be at least 0 and less than 1", lambda value: 0 <= value < 1)
PROBABILITY = Rule("must be from 0 to 1", lambda value: 0 <= value <= 1)
COUNT = Rule("must be at least 1 and finite", lambda value: 1 <= value < math.inf)
WIDTH = Rule("must be from 1 to 512", lambda value: 1 <= value <= 512)  # noqa: PLR2004 the words name it


@dataclass(frozen=True, slots=True)
class Knob:
    """One of them."""

    name: str
    kind: Any
    """int, float, bool or str."""
    default: Value
    unit: str
    meaning: str
    rule: Rule | None = None
    """Of a number."""
    among: tuple[str, ...] = ()
    """The words that a word may be."""

    @property
    def allowed(self) -> str:
        """Say what its values may be."""
        if self.rule:
            return self.rule.words
        return f"must be {', '.join(self.among)}" if self.among else "must be on or off"


def number(default: float, unit: str, rule: Rule, meaning: str) -> Any:
    """Declare a field that holds a number; its annotation says whether it is whole."""
    return field(default=default, metadata={"rule": rule, "unit": unit, "meaning": meaning})


def switch(meaning: str, *, default: bool) -> Any:
    """Declare a field that is on or off."""
    return field(default=default, metadata={"unit": "on or off", "meaning": meaning})


def word(default: str, among: Sequence[str], meaning: str) -> Any:
    """Declare a field that is one of some words."""
    return field(default=default, metadata={"among": tuple(among), "unit": "a word", "meaning": meaning})


def declared(owner: type[Any]) -> dict[str, Knob]:
    """List the knobs that a dataclass declares with these three, in its order."""
    return {
        each.name: Knob(name=each.name, kind=each.type, default=cast("Value", each.default), **each.metadata)
        for each in fields(owner)
    }


def shown(value: Value) -> str:
    """Write a value as one would type it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def read(knobs: Mapping[str, Knob], arguments: Sequence[str]) -> dict[str, Value]:
    """Read `--name=value` and `--name value`. Raises TrialError with every problem of all of them."""
    problems: list[Problem] = []
    values: dict[str, Value] = {}
    seen: set[str] = set()
    for pair in pairs(arguments):
        if isinstance(pair, Problem):
            problems.append(pair)
            continue
        name, text = pair
        value = _repeated(name) if name in seen else _read(knobs, name, text)
        seen.add(name)
        if isinstance(value, Problem):
            problems.append(value)
        else:
            values[name] = value
    if problems:
        raise TrialError(problems)
    return values


def suggestion(word: str, known: Sequence[str]) -> str | None:
    """Name the nearest of the known words, if one is near."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str | None] | Problem]:
    """Split arguments into names and values."""
    rest = iter(arguments)
    upcoming = next(rest, None)
    while (argument := upcoming) is not None:
        upcoming = next(rest, None)
        if not argument.startswith("--"):
            yield Problem(argument[:LONGEST_TEXT], "must have the form --name=value", BAD_SWEEP)
            continue
        name, equals, text = argument.removeprefix("--").partition("=")
        if equals:
            yield name, text
        elif upcoming is None or upcoming.startswith("--"):
            yield name, None
        else:
            yield name, upcoming
            upcoming = next(rest, None)


def _read(knobs: Mapping[str, Knob], name: str, text: str | None) -> Value | Problem:
    knob = knobs.get(name)
    if knob is None:
        return _unknown(knobs, name)
    if text is None:
        example = shown(knob.default)
        return Problem(f"--{name}", f"must have a value, such as --{name}={example}", BAD_SWEEP)
    if knob.kind is bool and text.lower() in SWITCH:
        return SWITCH[text.lower()]
    if text in knob.among:
        return text
    if knob.rule is None:
        return Problem(f"--{name}", f"{knob.allowed}, got {text[:LONGEST_TEXT]!r}", BAD_SWEEP)
    return _number(knob, knob.rule, text)


def _number(knob: Knob, rule: Rule, text: str) -> float | Problem:
    place, found = f"--{knob.name}", repr(text[:LONGEST_TEXT])
    if len(text) > LONGEST_TEXT or not NUMBER.fullmatch(text):
        return Problem(place, f"must be a number, got {found}", BAD_SWEEP)
    value = float(text)
    if knob.kind is int and math.isfinite(value):
        # A table of numbers knows no difference between 64 and 64.0, so both are whole here.
        if not value.is_integer():
            return Problem(place, f"must be a whole number, got {found}", BAD_SWEEP)
        value = int(value)
    if not rule.allows(value):
        return Problem(place, f"{rule.words}, got {found}", BAD_HYPERPARAMETERS)
    return value


def _unknown(knobs: Mapping[str, Knob], name: str) -> Problem:
    nearest = suggestion(name, tuple(knobs))
    hint = f"did you mean --{nearest}?" if nearest else f"there are {', '.join(sorted(knobs))}"
    return Problem(f"--{name}", "is no hyperparameter of this trainer", BAD_SWEEP, hint)


def _repeated(name: str) -> Problem:
    return Problem(f"--{name}", "must be given once, got it again", BAD_SWEEP)
