"""Numbers in ten bins, on the scale on which they were asked for."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from generator.structs.domain import (
    Beta,
    Choice,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)

BINS = 10

EDGE = 1e-9
"""Of a bin's width: 0.3 lies where the fourth of ten begins, whatever division makes of it."""

DECADES = 100
"""Written values that span as much, most of them in the first of ten equal bins, are meant so."""


class Scale(StrEnum):
    """On which the bins are equally wide."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Binned:
    """How many assignments fall into each of ten bins."""

    low: float
    """Where the first bin begins: the domain's bound, or the smallest value where it has none."""
    high: float
    smallest: float
    largest: float
    scale: Scale
    counts: tuple[int, ...]


def binned(numbers: Sequence[float], domains: Sequence[Domain]) -> Binned:
    """Sort at least two different numbers into bins between the bounds of their domains."""
    smallest, largest = min(numbers), max(numbers)
    bounds = [bound for domain in domains for bound in _bounds(domain)]
    low, high = min([smallest, *bounds]), max([largest, *bounds])
    if low > 0 and any(_is_logarithmic(domain) for domain in domains):
        return Binned(low, high, smallest, largest, Scale.LOG, _counts(numbers, low, high, math.log))
    counts = _counts(numbers, low, high, float)
    if low > 0 and high / low >= DECADES and 2 * counts[0] > len(numbers) and _are_written(domains):
        return Binned(low, high, smallest, largest, Scale.LOG, _counts(numbers, low, high, math.log))
    return Binned(low, high, smallest, largest, Scale.LINEAR, counts)


def _are_written(domains: Sequence[Domain]) -> bool:
    return all(isinstance(domain, Choice) for domain in domains)


def _counts(
    numbers: Sequence[float], low: float, high: float, scale: Callable[[float], float]
) -> tuple[int, ...]:
    start, width = scale(low), (scale(high) - scale(low)) / BINS
    counts = [0] * BINS
    for number in numbers:
        counts[min(BINS - 1, int((scale(number) - start) / width + EDGE))] += 1
    return tuple(counts)


def _bounds(domain: Domain) -> Iterator[float]:
    match domain:
        case IntUniform(low, high) | Uniform(low, high) | LogUniform(low, high):
            yield from (low, high)
        case Normal(_, _, low, high):
            yield from (bound for bound in (low, high) if bound is not None)
        case Beta():
            yield from (0, 1)
        case Quantized(of):
            yield from _bounds(of)
        case Choice(values):
            yield from (value for value in values if isinstance(value, int | float))


def _is_logarithmic(domain: Domain) -> bool:
    match domain:
        case LogUniform() | LogNormal():
            return True
        case Quantized(of):
            return _is_logarithmic(of)
        case _:
            return False
