"""From values to places on a figure: scales, and the ticks that people expect on them. No drawing."""

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from generator.results import words
from generator.results.spread import Spread
from generator.results.summary import as_numbers
from generator.structs.values import Value, canonical_json

MARGIN = 0.06
"""Free part at each end of an axis, so that no dot lies on the frame."""
TICKS = 6
MOST_LABELLED_LEVELS = 10
PARAMETER_LOG_RATIO = 100.0
GEOMETRIC_RATIO = 4.0
FEWEST_GAPS = 2
LARGEST = 1e300
LOG_DECADES_WITHOUT_STEPS = 2.0


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of pixels that stands for numbers."""

    low: float
    """Where it starts, in its own scale: an exponent of ten where it is logarithmic."""
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Place a value, to a tenth of a pixel."""
        number = _scale(value, log=self.log)
        # Halves, because the difference of two finite numbers need not be finite.
        part = (number / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return round(self.start + part * (self.end - self.start), 1)


@dataclass(frozen=True, slots=True)
class Levels:
    """Where a parameter's values stand on its axis."""

    places: dict[str, float]
    """By canonical JSON of the value."""
    ticks: tuple[tuple[float, str | float], ...]
    """Place and what to write there."""
    ordered: bool
    """Numbers, so that a line between neighbours means something."""
    log: bool = False

    @property
    def gap(self) -> float:
        """Between the closest two."""
        places = sorted(self.places.values())
        return min((right - left for left, right in itertools.pairwise(places)), default=40.0)


def objective_axis(spread: Spread, start: float, end: float, *, ticks: int = TICKS) -> Axis:
    """Make the axis of the objective; those beyond the spread stand at its end."""
    return _axis((spread.low, spread.high), start, end, log=spread.log, ticks=ticks)


def number_axis(numbers: Sequence[float], start: float, end: float, *, ticks: int = TICKS) -> Axis:
    """Make an axis on which all of these numbers stand."""
    return _axis(numbers, start, end, log=False, ticks=ticks)


def levels(values: Sequence[Value], start: float, end: float) -> Levels:
    """Place a parameter's distinct values, in the order given: as numbers if all are, else evenly."""
    numbers = as_numbers(values)
    keys = [canonical_json(value) for value in values]
    if numbers is None or any(abs(number) > LARGEST for number in numbers):
        step = (end - start) / len(values)
        places = {key: round(start + (place + 0.5) * step, 1) for place, key in enumerate(keys)}
        labels = map(words.plain, values)
        return Levels(places, tuple(zip(places.values(), labels, strict=True)), ordered=False)
    log = _looks_geometric(numbers)
    axis = _axis([float(number) for number in numbers], start, end, log=log)
    places = {key: axis.at(number) for key, number in zip(keys, numbers, strict=True)}
    shown = numbers if len(numbers) <= MOST_LABELLED_LEVELS else axis.ticks
    return Levels(places, tuple((axis.at(number), number) for number in shown), ordered=True, log=log)


def _looks_geometric(numbers: Sequence[float]) -> bool:
    """Tell whether a parameter is better seen on a logarithmic axis: its values lie more evenly there."""
    if min(numbers) <= 0:
        return False
    ordered = sorted(numbers)
    if ordered[-1] / ordered[0] < GEOMETRIC_RATIO or len(ordered) <= FEWEST_GAPS:
        return ordered[-1] / ordered[0] >= PARAMETER_LOG_RATIO
    return _lopsided([math.log(number) for number in ordered]) < _lopsided(ordered)


def _lopsided(ordered: Sequence[float]) -> float:
    """Tell how far the median lies from the middle."""
    low, high, middle = ordered[0], ordered[-1], len(ordered) // 2
    median = ordered[middle] / 2 + ordered[~middle] / 2
    return abs((median / 2 - low / 2) / (high / 2 - low / 2) - 0.5)


def _scale(value: float, *, log: bool) -> float:
    return math.log10(value) if log else float(value)


def _axis(values: Sequence[float], start: float, end: float, *, log: bool, ticks: int = TICKS) -> Axis:
    scaled = [_scale(value, log=log) for value in values]
    low, high = _with_margin(min(scaled), max(scaled))
    return Axis(low, high, start, end, log, (_log_ticks if log else _linear_ticks)(low, high, ticks))


def _with_margin(low: float, high: float) -> tuple[float, float]:
    if high / 2 - low / 2 < 1e-12 * max(abs(low), abs(high), 1e-300):
        pad = abs(low) * 0.05 or 0.5
    else:
        pad = high * MARGIN - low * MARGIN
    return max(low - pad, -sys.float_info.max), min(high + pad, sys.float_info.max)


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
