"""The knobs of a training: names, units, defaults and limits, read from arguments. The only list of them."""

import difflib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

from trainer.contract import BAD_HYPERPARAMETERS, BAD_SWEEP, Problem, TrialError

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""float() alone would also take `1_0`, `nan` and digits of other scripts."""
LONGEST_NUMBER = 40
"""Characters; repr of a float needs 24. Of longer text no more is shown."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be, in words and as a test."""

    words: str
    allows: Callable[[float], bool]


POSITIVE = Rule("must be greater than 0 and finite", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = Rule("must be at least 0 and finite", lambda value: 0 <= value < math.inf)
SHARE = Rule("must be at least 0 and less than 1", lambda value: 0 <= value < 1)
COUNT = Rule("must be at least 1 and finite", lambda value: 1 <= value < math.inf)
WIDTH = Rule("must be from 1 to 512", lambda value: 1 <= value <= 512)  # noqa: PLR2004 the words name it


def knob(default: float, rule: Rule, meaning: str) -> Any:
    """Declare a field with what `--help` and the checks need to know of it."""
    return field(default=default, metadata={"rule": rule, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Everything that can be tuned. The names are the arguments' names."""

    learning_rate: float = knob(0.1, POSITIVE, "peak of the schedule, per step")
    batch_size: int = knob(64, COUNT, "images a step; an epoch's last batch may be smaller")
    epochs: int = knob(2, COUNT, "passes over the training images")
    momentum: float = knob(0.9, SHARE, "share of the last step's velocity that is kept (Nesterov)")
    weight_decay: float = knob(0.0005, NOT_NEGATIVE, "L2 penalty, added to the gradient per unit of weight")
    label_smoothing: float = knob(0.0, SHARE, "share of the target spread over all classes")
    warmup: float = knob(0.2, SHARE, "share of all steps in which the learning rate rises to its peak")
    width: int = knob(16, WIDTH, "filters of the first convolution; the second has twice as many")


KNOBS: dict[str, Field[Any]] = {declared.name: declared for declared in fields(Hyperparameters)}


def parse(arguments: Sequence[str]) -> Hyperparameters:
    """Read `--name=value` and `--name value`. Raises TrialError with every problem of all of them."""
    problems: list[Problem] = []
    values: dict[str, float] = {}
    seen: set[str] = set()
    for pair in _pairs(arguments):
        if isinstance(pair, Problem):
            problems.append(pair)
            continue
        name, text = pair
        value = _repeated(name) if name in seen else _read(name, text)
        seen.add(name)
        if isinstance(value, Problem):
            problems.append(value)
        else:
            values[name] = value
    if problems:
        raise TrialError(problems)
    return Hyperparameters(**values)  # type: ignore[arg-type]  # `_read` gives each its declared type


def suggestion(word: str, known: Sequence[str]) -> str | None:
    """Name the nearest of the known words, if one is near."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str | None] | Problem]:
    """Split arguments into names and values."""
    rest = iter(arguments)
    upcoming = next(rest, None)
    while (argument := upcoming) is not None:
        upcoming = next(rest, None)
        if not argument.startswith("--"):
            yield Problem(argument[:LONGEST_NUMBER], "must have the form --name=value", BAD_SWEEP)
            continue
        name, equals, text = argument.removeprefix("--").partition("=")
        if equals:
            yield name, text
        elif upcoming is None or upcoming.startswith("--"):
            yield name, None
        else:
            yield name, upcoming
            upcoming = next(rest, None)


def _read(name: str, text: str | None) -> float | Problem:
    declared = KNOBS.get(name)
    if declared is None:
        return _unknown(name)
    if text is None:
        return Problem(f"--{name}", f"must have a value, such as --{name}={declared.default}", BAD_SWEEP)
    shown = repr(text[:LONGEST_NUMBER])
    if len(text) > LONGEST_NUMBER or not NUMBER.fullmatch(text):
        return Problem(f"--{name}", f"must be a number, got {shown}", BAD_SWEEP)
    value = float(text)
    rule: Rule = declared.metadata["rule"]
    if declared.type is int and math.isfinite(value):
        # A table of numbers knows no difference between 64 and 64.0, so both are whole here.
        if not value.is_integer():
            return Problem(f"--{name}", f"must be a whole number, got {shown}", BAD_SWEEP)
        value = int(value)
    if not rule.allows(value):
        return Problem(f"--{name}", f"{rule.words}, got {shown}", BAD_HYPERPARAMETERS)
    return value


def _unknown(name: str) -> Problem:
    nearest = suggestion(name, tuple(KNOBS))
    hint = f"did you mean --{nearest}?" if nearest else f"there are {', '.join(sorted(KNOBS))}"
    return Problem(f"--{name}", "is no hyperparameter of this trainer", BAD_SWEEP, hint)


def _repeated(name: str) -> Problem:
    return Problem(f"--{name}", "must be given once, got it again", BAD_SWEEP)
