"""Coverage of a search space by configurations: counts of values, histograms of numbers, discrepancy of points."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from sweepledger.structs.domain import Domain, StepRange
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, identity, is_number

BINS = 10

EDGE_TOLERANCE = 1e-9
"""Share of a bin's width: 0.3 belongs to the fourth of ten bins, although the division may round down."""

DECADES = 100
"""Ratio from which listed values have a logarithmic scale, if most of them are in the first of ten equal bins."""


class Scale(StrEnum):
    """The scale on which bins are equally wide."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many configurations fall into each of ten bins."""

    scale: Scale
    low: float
    """Start of the first bin: the domain's bound, or the smallest value if it has none."""
    high: float
    min: float
    max: float
    counts: tuple[int, ...]


def histogram(numbers: Sequence[float], domain: Domain | None) -> Histogram:
    """Count numbers, of which at least two differ, in bins between the bounds of their domain."""
    smallest, largest = min(numbers), max(numbers)
    ends = () if domain is None else domain.listed or domain.ends
    bounds = [end for end in ends if isinstance(end, int | float)]
    low, high = min([smallest, *bounds]), max([largest, *bounds])
    counts = _counts(numbers, low, high, float)
    is_drawn = domain is not None and not domain.listed
    is_log = domain is not None and domain.shape is not None and domain.shape.is_log
    is_log |= not is_drawn and low > 0 and high / low >= DECADES and 2 * counts[0] > len(numbers)
    if is_log and low > 0:
        counts = _counts(numbers, low, high, math.log)
        return Histogram(Scale.LOG, low, high, smallest, largest, counts)
    return Histogram(Scale.LINEAR, low, high, smallest, largest, counts)


def _counts(
    numbers: Sequence[float], low: float, high: float, scale: Callable[[float], float]
) -> tuple[int, ...]:
    start, width = scale(low), (scale(high) - scale(low)) / BINS
    counts = [0] * BINS
    for number in numbers:
        counts[min(BINS - 1, int((scale(number) - start) / width + EDGE_TOLERANCE))] += 1
    return tuple(counts)


FEW_VALUES = 12
"""The largest number of different values to list; more are shown as a histogram."""


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """How many configurations have each value; values of the spec that no configuration has are included with 0."""

    values: tuple[tuple[Value, int], ...]


@dataclass(frozen=True, slots=True)
class ParameterCoverage:
    """How configurations cover a parameter or a derived value."""

    name: str
    configurations: int
    """Number of configurations that have it."""
    values: ValueCounts | Histogram
    derived: bool = False
    conditional: bool = False
    zipped_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of a sweep's parameters, in the order of the spec."""

    configurations: int
    parameters: tuple[ParameterCoverage, ...]
    constants: tuple[tuple[str, Value], ...]
    """Values that the spec gives to every configuration."""


def coverage(sweep: Sweep, configurations: Sequence[Mapping[str, Value]]) -> Coverage:
    """Compute the coverage of a sweep's parameters by its configurations."""
    space = sweep.design.space
    declared = {parameter.name: parameter.domain for parameter in space.parameters}
    derived = {each.name for each in space.derived}
    conditional = {parameter.name for parameter in space.parameters if parameter.when}
    constants: list[tuple[str, Value]] = []
    parameters: list[ParameterCoverage] = []
    for name in sweep.columns:
        column = [configuration[name] for configuration in configurations if name in configuration]
        values, domain = _values(column, declared.get(name)), declared.get(name)
        # What every configuration has is a constant if the spec says so.
        is_everywhere = isinstance(values, ValueCounts) and len(column) == len(configurations) > 0
        if domain is not None and domain.is_constant and is_everywhere:
            constants.append((name, column[0]))
            continue
        group = next((group for group in space.zips if name in group), ())
        parameters.append(
            ParameterCoverage(
                name,
                len(column),
                values,
                derived=name in derived,
                conditional=name in conditional,
                zipped_with=tuple(other for other in group if other != name),
            )
        )
    return Coverage(len(configurations), tuple(parameters), tuple(constants))


def _values(column: Sequence[Value], domain: Domain | None) -> ValueCounts | Histogram:
    """Return the counts of values, including unused values of the domain; for many numbers, return a histogram."""
    listed: Sequence[Value] | StepRange = ()
    if domain is not None and domain.is_discrete:
        listed = domain.grid_values or ()
    if isinstance(listed, StepRange):
        listed = [listed[at] for at in range(listed.count)] if listed.count <= FEW_VALUES else ()
    counts = Counter(map(identity, column))
    values = {identity(value): value for value in (*column, *listed)}
    expected = dict.fromkeys(map(identity, listed))
    others = [key for key in counts if key not in expected]
    if all(is_number(values[key]) for key in others):
        others.sort(key=lambda key: cast("float", values[key]))
    if not column or len(values) <= FEW_VALUES or not all(map(is_number, values.values())):
        return ValueCounts(tuple((values[key], counts[key]) for key in (*expected, *others)))
    return histogram([value for value in column if isinstance(value, int | float)], domain)


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """The squared centred discrepancy of the points of a search: 0 is best."""

    points: int
    """Number of points compared, from the first."""
    dimensions: int
    """Number of continuous dimensions; gaps between listed values would dominate the discrepancy."""
    value: float

    @property
    def random(self) -> float:
        """The mean discrepancy of the same number of independent random points."""
        # The double sum of the definition has n diagonal terms of mean (5/4)^d. All others, and those of the
        # single sum, have the mean (13/12)^d, of which one n-th is left.
        return ((5 / 4) ** self.dimensions - (13 / 12) ** self.dimensions) / self.points
