"""The values of Hydra's overrides, parsed by hydra-core, as values that do not depend on it.

hydra-core is an optional dependency, which is imported when the first value is parsed.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from sweepledger.errors import ToolError
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.combinations import MAX_TRIALS

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


@dataclass(frozen=True, slots=True)
class Choices:
    """A choice sweep: its values in order, as the app receives them."""

    values: tuple[Any, ...]
    is_shuffled: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A range sweep: numbers from start by step. Hydra excludes the stop; Optuna's sweeper does not."""

    start: Number
    stop: Number
    step: Number
    is_shuffled: bool = False

    def values(self) -> tuple[Number, ...]:
        """Return the numbers as Hydra lists them: floats by repeated addition of their exact values."""
        self._require_finite()
        if self._is_whole():
            return tuple(range(int(self.start), int(self.stop), int(self.step)))
        return tuple(self._sums())

    def values_to_end(self) -> tuple[Number, ...]:
        """Return the numbers as Optuna's sweeper lists them: exact decimals, including a stop that a step meets."""
        if self.is_shuffled or not (self.step > 0 and self.start <= self.stop):
            return self.values()
        self._require_finite()
        number_type = int if self._is_whole() else float
        start, stop, step = (Decimal(str(number)) for number in (self.start, self.stop, self.step))
        return tuple(number_type(start + index * step) for index in range(int((stop - start) / step) + 1))

    def _require_finite(self) -> None:
        numbers = (self.start, self.stop, self.step)
        try:
            is_finite = bool(self.step) and all(map(math.isfinite, numbers))
            count = (self.stop - self.start) / self.step if is_finite else 0
        except OverflowError as error:
            raise ForeignError(
                "range must have numbers that a float can hold", hint="write fewer digits"
            ) from error
        if not is_finite:
            raise ForeignError(f"range must have finite bounds and a step other than 0, got {numbers}")
        if count > MAX_TRIALS:
            raise ForeignError(f"range must have at most {MAX_TRIALS} values, got {numbers}")

    def _is_whole(self) -> bool:
        return all(isinstance(number, int) for number in (self.start, self.stop, self.step))

    def _sums(self) -> Iterator[float]:
        number, stop, step = map(Decimal, (self.start, self.stop, self.step))
        while number < stop if step > 0 else number > stop:
            yield float(number)
            number += step


@dataclass(frozen=True, slots=True)
class IntervalSweep:
    """An interval sweep: any number from start to end."""

    start: Number
    end: Number
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Glob:
    """A selection of options of a config group, which only the app's files list."""


def parse_value(text: str) -> Any:
    """Return the value of an override: plain data, Choices, Range, IntervalSweep or Glob.

    Raises ForeignError if Hydra does not accept the text, and ToolError if hydra-core is missing.
    """
    if SIMPLE_TEXT.fullmatch(text) and text.lower() not in RESERVED_WORDS:
        return text
    if SIMPLE_INTEGER.fullmatch(text):
        return int(text)
    if len(text) > MAX_LENGTH:
        raise ForeignError(f"must be at most {MAX_LENGTH} characters, got {len(text)}")
    return load_parser().parse(text)


@cache
def load_parser() -> "OverrideParser":
    """Return the parser, which is created once per process. Raises ToolError if hydra-core is missing."""
    return OverrideParser()


class OverrideParser:
    """hydra-core's parser of overrides, which does not shuffle lists here, so that equal files give equal specs."""

    def __init__(self) -> None:
        try:
            from hydra.core.override_parser import overrides_parser, types  # noqa: PLC0415 - an optional extra
            from hydra.errors import HydraException  # noqa: PLC0415
        except ImportError as error:
            raise ToolError.missing_library(
                "Hydra's overrides are parsed by hydra-core", extra="hydra"
            ) from error
        functions = overrides_parser.create_functions()
        functions.functions["shuffle"] = _keep_lists(functions.functions["shuffle"])
        self._parser = overrides_parser.OverridesParser(functions)
        self._types = types
        # Functions of the grammar raise whatever their conversions raise.
        self._failures = (
            HydraException,
            ArithmeticError,
            AssertionError,
            RecursionError,
            TypeError,
            ValueError,
        )

    def parse(self, text: str) -> Any:
        """Return the value of an override; raise ForeignError if Hydra does not accept it."""
        try:
            value = self._parser.parse_override(f"key={text}").value()
        except self._failures as error:
            quoted = repr(text[:MAX_QUOTED])
            reason = "too many levels" if isinstance(error, RecursionError) else " ".join(str(error).split())
            raise ForeignError(f"must be a value that Hydra reads, got {quoted}: {reason}") from error
        return self._converted(value)

    def _converted(self, value: Any) -> Any:
        types = self._types
        match value:
            case types.ChoiceSweep():
                return Choices(tuple(map(self._choice, value.list)), is_shuffled=value.shuffle)
            case types.RangeSweep():
                return Range(value.start, value.stop, value.step, is_shuffled=value.shuffle)
            case types.IntervalSweep():
                return IntervalSweep(value.start, value.end, frozenset(value.tags))
            case types.Glob():
                return Glob()
            case _:
                return self._plain(value)

    def _choice(self, value: Any) -> Any:
        """Return a value as the app receives it: functions remove quotes, so that `choice('1')` is a number."""
        if not isinstance(value, str):
            return self._plain(value)
        try:
            parsed = parse_value(SPECIAL_CHARACTERS.sub(r"\\\g<0>", value))
        except ForeignError:
            return value
        return parsed if parsed is None or isinstance(parsed, bool | int | float) else value

    def _plain(self, value: Any) -> Any:
        match value:
            case self._types.QuotedString():
                return value.text
            case list():
                return [self._plain(item) for item in value]
            case dict():
                return {self._plain(key): self._plain(item) for key, item in value.items()}
            case _:
                return value


def _keep_lists(shuffle: Callable[..., Any]) -> Callable[..., Any]:
    def shuffle_sweeps(*arguments: Any, **named: Any) -> Any:
        values = (*arguments, *(value for value in named.values() if value is not None))
        match values:
            case ([*items],):
                return items
            case _:
                return shuffle(*values)

    return shuffle_sweeps
