"""The functions of Hydra's overrides, each with Hydra's meaning."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from generator.exchange.hydra.grammar import Call, Choices, parse
from generator.exchange.loss import ForeignError

MOST_VALUES = 100_000
"""As many trials as a sweep may have."""

Number = int | float


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from start by step, the stop excluded unless Optuna reads them."""

    start: Number
    stop: Number
    step: Number
    is_shuffled: bool = False

    def values(self) -> tuple[Number, ...]:
        """List them as Hydra does: integers exactly, others by adding up what the floats really are."""
        self._check()
        if self._is_whole():
            return tuple(range(int(self.start), int(self.stop), int(self.step)))
        return tuple(self._added())

    def values_to_end(self) -> tuple[Number, ...]:
        """List them as Optuna's sweeper does: exact decimals, the stop among them if a step meets it."""
        if self.is_shuffled or not (self.step > 0 and self.start <= self.stop):
            return self.values()
        self._check()
        kind = int if self._is_whole() else float
        start, stop, step = (Decimal(str(number)) for number in (self.start, self.stop, self.step))
        return tuple(kind(start + place * step) for place in range(int((stop - start) / step) + 1))

    def _check(self) -> None:
        numbers = (self.start, self.stop, self.step)
        if not self.step or not all(map(math.isfinite, numbers)):
            raise ForeignError(f"range must have finite bounds and a step other than 0, got {numbers}")
        if (self.stop - self.start) / self.step > MOST_VALUES:
            raise ForeignError(f"range must have at most {MOST_VALUES} values, got {numbers}")

    def _is_whole(self) -> bool:
        return all(isinstance(number, int) for number in (self.start, self.stop, self.step))

    def _added(self) -> Iterator[float]:
        number, stop, step = map(Decimal, (self.start, self.stop, self.step))
        while number < stop if step > 0 else number > stop:
            yield float(number)
            number += step


@dataclass(frozen=True, slots=True)
class Interval:
    """Any number from start to end."""

    start: Number
    end: Number
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Glob:
    """The options of a config group, which only the app's files know."""


def value(text: str) -> Any:
    """Read the value of an override. Raises ForeignError where Hydra would refuse it."""
    return parse(text, call)


def call(written: Call) -> Any:
    """Apply a function."""
    function = FUNCTIONS.get(written.name)
    if function is None:
        raise ForeignError(
            f"must be one of Hydra's functions {', '.join(sorted(FUNCTIONS))}, got {written.name!r}"
        )
    try:
        return function(*written.arguments, **dict(written.named))
    except ForeignError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ForeignError(f"{written.name}(…) must be as Hydra has it: {error}") from error


def _choice(*values: Any) -> Choices:
    match values:
        case ():
            raise ForeignError("choice() must have at least one value")
        case (Choices(is_simple=True) as simple,):
            return replace(simple, is_simple=False, is_bare=True)
        case _ if any(isinstance(value, Choices | Range | Interval | Glob) for value in values):
            raise ForeignError("choice(…) must hold values, got another choice")
        case _:
            return Choices(values, is_bare=True)


def _range(start: Any, stop: Any = None, step: Any = 1) -> Range:
    first, last = (0, start) if stop is None else (start, stop)
    return Range(_number(first), _number(last), _number(step))


def _interval(start: Any, end: Any) -> Interval:
    return Interval(float(_number(start)), float(_number(end)))


def _glob(include: Any, exclude: Any = None) -> Glob:
    del include, exclude
    return Glob()


def _tag(*arguments: Any, sweep: Any = None) -> Any:
    *tags, tagged = arguments if sweep is None else (*arguments, sweep)
    if not isinstance(tagged, Choices | Range | Interval) or not all(isinstance(tag, str) for tag in tags):
        raise ForeignError("tag(…) must have texts and, last, a choice, range or interval")
    return replace(tagged, tags=frozenset(tags)) if isinstance(tagged, Interval) else tagged


def _shuffle(*arguments: Any, sweep: Any = None, list: Any = None) -> Any:  # noqa: A002 - Hydra's name for it
    given = (*arguments, *(each for each in (sweep, list) if each is not None))
    match given:
        case (Choices() | Range() as swept,):
            return replace(swept, is_shuffled=True)
        case (one,):
            return one
        case _:
            return Choices(given, is_simple=True, is_shuffled=True, is_bare=True)


def _sort(*arguments: Any, sweep: Any = None, list: Any = None, reverse: bool = False) -> Any:  # noqa: A002
    given = (*arguments, *(each for each in (sweep, list) if each is not None))
    match given:
        case (Choices(values=values) as swept,):
            return replace(swept, values=tuple(sorted(values, reverse=reverse)))
        case (Range() as swept,):
            return _turned(swept) if (swept.start > swept.stop) != reverse else swept
        case ([*items],):
            return sorted(items, reverse=reverse)
        case (one,):
            return one
        case ():
            raise ForeignError("sort() must have at least one value")
        case _:
            return Choices(tuple(sorted(given, reverse=reverse)), is_simple=True, is_bare=True)


def _turned(swept: Range) -> Range:
    """Turn a range round, its numbers being the same."""
    if swept.start == swept.stop:
        return swept
    width = abs(swept.step) if swept.start > swept.stop else -abs(swept.step)
    return replace(swept, start=swept.stop + width, stop=swept.start + width, step=-swept.step)


def _cast(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def cast(*arguments: Any, value: Any = None) -> Any:
        given = arguments if value is None else (*arguments, value)
        if len(given) != 1:
            return Choices(tuple(map(apply, given)), is_simple=True, is_bare=True)
        return apply(given[0])

    def apply(given: Any) -> Any:
        match given:
            case Choices(values=values):
                return replace(given, values=tuple(map(apply, values)), is_shuffled=False, is_bare=True)
            case Range(start, stop, step):
                return Range(_number(kind(start)), _number(kind(stop)), _number(kind(step)))
            case Interval(start, end):
                return replace(given, start=_number(kind(start)), end=_number(kind(end)))
            case list():
                return [apply(item) for item in given]
            case dict():
                return {key: apply(item) for key, item in given.items()}
            case _:
                return kind(given)

    return cast


def _text(given: Any) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)


def _truth(given: Any) -> bool:
    if isinstance(given, str) and given.lower() not in {"true", "false"}:
        raise ForeignError(f"bool(…) must be of true or false, got {given!r}")
    return given.lower() == "true" if isinstance(given, str) else bool(given)


def _number(given: Any) -> Number:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ForeignError(f"must be a number, got {given!r}")
    return given


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "bool": _cast(_truth),
    "choice": _choice,
    "float": _cast(float),
    "glob": _glob,
    "int": _cast(int),
    "interval": _interval,
    "range": _range,
    "shuffle": _shuffle,
    "sort": _sort,
    "str": _cast(_text),
    "tag": _tag,
}
