"""Positions of values in a figure: scales, and the ticks that people expect on them. No drawing."""

import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweepledger.results import display
from sweepledger.results.objective_scale import ObjectiveScale, scaled
from sweepledger.results.summary import as_numbers
from sweepledger.structs.values import Value, canonical_json

MARGIN = 0.06
"""Free part at each end of an axis, so that no dot is on the frame."""
TICKS = 6
MOST_LABELLED_LEVELS = 10
PARAMETER_LOG_RATIO = 100.0
GEOMETRIC_RATIO = 4.0
FEWEST_GAPS = 2
LARGEST = 1e300
LOG_DECADES_WITHOUT_STEPS = 2.0


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of pixels that represents numbers."""

    low: float
    """Where it starts, in its own scale: an exponent of ten if it is logarithmic."""
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return the position of a value, to a tenth of a pixel."""
        number = scaled(value, log=self.log)
        # Halves, because the difference of two finite numbers need not be finite.
        part = (number / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return round(self.start + part * (self.end - self.start), 1)


@dataclass(frozen=True, slots=True)
class Levels:
    """The positions of a parameter's values on its axis."""

    places: dict[str, float]
    """By canonical JSON of the value."""
    ticks: tuple[tuple[float, str | float], ...]
    """Positions and their labels."""
    ordered: bool
    """Whether values are numbers, so that a line between neighbours has a meaning."""
    log: bool = False

    @property
    def gap(self) -> float:
        """Distance between the closest two values."""
        places = sorted(self.places.values())
        return min((right - left for left, right in itertools.pairwise(places)), default=40.0)


def objective_axis(spread: ObjectiveScale, start: float, end: float, *, ticks: int = TICKS) -> Axis:
    """Return the axis of the objective."""
    return number_axis((spread.low, spread.high), start, end, log=spread.log, ticks=ticks)


def number_axis(
    numbers: Sequence[float], start: float, end: float, *, log: bool = False, ticks: int = TICKS
) -> Axis:
    """Return an axis that contains all of these numbers."""
    positions = [scaled(number, log=log) for number in numbers]
    low, high = min(positions), max(positions)
    if high / 2 - low / 2 < 1e-12 * max(abs(low), abs(high), 1e-300):
        pad = abs(low) * 0.05 or 0.5
    else:
        pad = high * MARGIN - low * MARGIN
    low, high = max(low - pad, -sys.float_info.max), min(high + pad, sys.float_info.max)
    return Axis(low, high, start, end, log, (_log_ticks if log else _linear_ticks)(low, high, ticks))


def levels(values: Sequence[Value], start: float, end: float) -> Levels:
    """Return the positions of distinct values: by size if all are numbers, else evenly in the given order."""
    numbers = as_numbers(values)
    keys = [canonical_json(value) for value in values]
    if numbers is None or any(abs(number) > LARGEST for number in numbers):
        step = (end - start) / len(values)
        places = {key: round(start + (place + 0.5) * step, 1) for place, key in enumerate(keys)}
        labels = map(display.format_value, values)
        return Levels(places, tuple(zip(places.values(), labels, strict=True)), ordered=False)
    log = _looks_geometric(numbers)
    axis = number_axis(numbers, start, end, log=log)
    places = {key: axis.at(number) for key, number in zip(keys, numbers, strict=True)}
    shown = numbers if len(numbers) <= MOST_LABELLED_LEVELS else axis.ticks
    return Levels(places, tuple((axis.at(number), number) for number in shown), ordered=True, log=log)


def side_by_side(
    keys: Sequence[str], places: Mapping[str, float], room: float, *, widest: float, towards: int = 1
) -> Iterator[float]:
    """Yield a position for each key; equal keys are side by side around the key's place, in order, within `room`."""
    many, seen = Counter(keys), Counter[str]()
    for key in keys:
        step = min(widest, room / many[key]) * towards
        yield round(places[key] + (seen[key] - (many[key] - 1) / 2) * step, 1)
        seen[key] += 1


def _looks_geometric(numbers: Sequence[float]) -> bool:
    """Return whether values are spread more evenly on a logarithmic axis."""
    if min(numbers) <= 0:
        return False
    ordered = sorted(numbers)
    if ordered[-1] / ordered[0] < GEOMETRIC_RATIO or len(ordered) <= FEWEST_GAPS:
        return ordered[-1] / ordered[0] >= PARAMETER_LOG_RATIO
    return _lopsided([math.log(number) for number in ordered]) < _lopsided(ordered)


def _lopsided(ordered: Sequence[float]) -> float:
    """Return how far the median is from the middle, as a part of the range."""
    low, high, middle = ordered[0], ordered[-1], len(ordered) // 2
    median = ordered[middle] / 2 + ordered[~middle] / 2
    return abs((median / 2 - low / 2) / (high / 2 - low / 2) - 0.5)


def _linear_ticks(low: float, high: float, count: int) -> tuple[float, ...]:
    rough = high / count - low / count
    if rough < 1e-300:  # noqa: PLR2004 - powers of ten below it lose their digits
        return (low, high)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (factor * power for factor in (1.0, 2.0, 2.5, 5.0) if factor * power >= rough * 0.999), 10 * power
    )
    first, last = math.ceil(low / step), math.floor(high / step)
    return tuple(float(f"{number * step:.12g}") for number in range(first, last + 1))


def _log_ticks(low: float, high: float, count: int) -> tuple[float, ...]:
    factors = (1.0,) if high - low > LOG_DECADES_WITHOUT_STEPS else (1.0, 2.0, 5.0)
    decades = range(math.floor(low), math.ceil(high) + 1)
    stride = max(1, -(-len(decades) // (count + 2)))
    ticks = (float(f"{factor}e{decade}") for decade in decades[::stride] for factor in factors)
    return tuple(tick for tick in ticks if tick > 0 and low <= math.log10(tick) <= high)
