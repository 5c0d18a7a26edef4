"""Numbers inside a parameter: bounds, steps, counts, scales and spreads."""

import math
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, cut, shown
from generator.spec.draft import Draft
from generator.spec.ranges import MOST_VALUES, Number, step_count
from generator.spec.rules.forms import LISTS, range_of
from generator.spec.rules.sections import Leaf, sound, written
from generator.structs.values import LARGEST_EXACT_INTEGER

FEWEST_POINTS = 2
"""Both ends of a range are among its points."""

SPACE_LENGTH = 3
"""Start, stop, count."""

FARTHEST_SIGMAS = 10
"""A draw of 53 bits is at most 8.3 sigmas from the middle."""


def order(draft: Draft) -> Iterator[Problem]:
    """A range has room between its bounds."""
    for leaf in written(draft):
        keys = sound(draft, leaf)
        low, high = number(keys, "min"), number(keys, "max")
        if low is None or high is None:
            continue
        place = (*leaf.path, "max")
        if high <= low:
            hint = f"one value is written value: {shown(low)}" if high == low else "swap them"
            message = f"must be greater than min ({shown(low)}), got {shown(high)}"
            yield draft.problem(place, message, code="range-inverted", hint=hint)
        elif math.isinf(float(high) - float(low)):
            message = f"must be less than 1.8e308 above min ({shown(low)}), got {shown(high)}"
            yield draft.problem(place, message, code="out-of-range")


def steps(draft: Draft) -> Iterator[Problem]:
    """A step meets max, so that both bounds are among the values, and is not too small to use them."""
    for leaf in written(draft):
        keys = sound(draft, leaf)
        low, high, step = (number(keys, key) for key in ("min", "max", "step"))
        if "distribution" in keys or low is None or high is None or step is None or low >= high:
            continue
        count = step_count(low, high, step)
        if count is None:
            message = f"must divide the range from {shown(low)} to {shown(high)}, got {shown(step)}"
            hint = "change max or step; count: N makes N values, both bounds among them"
            yield draft.problem((*leaf.path, "step"), message, code="range-step", hint=hint)
        elif count > MOST_VALUES:
            yield _too_many(draft, (*leaf.path, "step"), count)


def points(draft: Draft) -> Iterator[Problem]:
    """A list's third number says how many: both ends, and no more than trials can use."""
    for leaf, key in _spaces(draft):
        place, count = (*leaf.path, key, 2), sound(draft, leaf)[key][2]
        if count > MOST_VALUES:
            yield _too_many(draft, place, count)
        elif count < FEWEST_POINTS or count != int(count):
            message = f"must be a whole number of at least {FEWEST_POINTS}, got {shown(count)}"
            hint = f"{key}: [start, stop, count] has both ends among its values"
            yield draft.problem(place, message, code="range-count", hint=hint)


def spaces(draft: Draft) -> Iterator[Problem]:
    """The ends of a list differ, and a geometric one stays on one side of 0."""
    for leaf, key in _spaces(draft):
        start, stop, _ = sound(draft, leaf)[key]
        if start == stop:
            message = f"must differ from the start ({shown(start)}), got {shown(stop)}"
            hint = f"one value is written value: {shown(start)}"
            yield draft.problem((*leaf.path, key, 1), message, code="range-inverted", hint=hint)
        elif key == "geomspace" and (start == 0 or stop == 0 or (start < 0) is not (stop < 0)):
            message = f"must have both ends above 0 or both below, got {shown(start)} and {shown(stop)}"
            hint = "equal ratios never reach 0; linspace has equal differences"
            yield draft.problem((*leaf.path, key), message, code="log-range", hint=hint)


def whole(draft: Draft) -> Iterator[Problem]:
    """The bounds of integers are integers."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        for key in ("min", "max") if kind == "int_uniform" else ():
            bound = number(keys, key)
            if bound is not None and not float(bound).is_integer():
                message = f"must be an integer with distribution: int_uniform, got {shown(bound)}"
                hint = "fractions come from distribution: uniform"
                yield draft.problem((*leaf.path, key), message, code="wrong-type", hint=hint)


def spread(draft: Draft) -> Iterator[Problem]:
    """Nothing drawn is too large for a number, nor for its quantum."""
    for leaf in written(draft):
        kind, keys = range_of(draft, leaf) or ("", {})
        if not kind.endswith("normal") or kind.endswith("log_normal"):
            largest = max(abs(number(keys, key) or 0) for key in ("min", "max"))
        else:
            largest = abs(number(keys, "mu") or 0) + FARTHEST_SIGMAS * (number(keys, "sigma") or 1)
        if math.isinf(largest):
            message = "must keep all draws below 1.8e308"
            yield draft.problem((*leaf.path, "sigma"), message, code="out-of-range")
        quantum = number(keys, "q") or (1 if kind.startswith("q_") else None)
        if quantum is not None and quantum > 0 and largest > quantum * LARGEST_EXACT_INTEGER:
            message = f"must be at least {largest / LARGEST_EXACT_INTEGER:.1g} for numbers of this size, "
            yield draft.problem((*leaf.path, "q"), message + f"got {shown(quantum)}", code="out-of-range")


def number(keys: dict[str, object], key: str) -> Number | None:
    """Give a number among the keys of a parameter; true and false are none."""
    value = keys.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_space(draft: Draft, leaf: Leaf, key: str) -> bool:
    """Tell whether a parameter has a list of this spacing whose three numbers may be looked at."""
    items = [value for _, value in draft.items(*leaf.path, key)]
    numbers = [value for value in items if isinstance(value, int | float) and not isinstance(value, bool)]
    return len(numbers) == len(draft.get(*leaf.path, key, kind=list) or ()) == SPACE_LENGTH


def _spaces(draft: Draft) -> Iterator[tuple[Leaf, str]]:
    for leaf in written(draft):
        yield from ((leaf, key) for key in LISTS if is_space(draft, leaf, key))


def _too_many(draft: Draft, place: Path, count: Number) -> Problem:
    message = f"must make at most {MOST_VALUES} values, got {cut(str(count))}"
    hint = "a method that draws needs min and max alone"
    return draft.problem(place, message, code="too-many-values", hint=hint)
