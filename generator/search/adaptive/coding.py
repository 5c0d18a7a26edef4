"""A search space as a model sees it: dimensions of three kinds, and the way from values to places and back.

Every place decodes to a legal value, so no proposal can leave the space. A continuous domain is walked by its
quantile function, so that a model sees all of them on one scale: fractions from 0 to 1.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from generator.search.distributions.fractions import fraction_of
from generator.search.distributions.quantiles import quantile_of
from generator.structs.conditions import Allowed, allowed, may_exist
from generator.structs.counting import ABSENT
from generator.structs.domain import Choice, Constant, IntUniform, Quantized, Uniform
from generator.structs.space import Parameter, SearchSpace
from generator.structs.values import Value, identity

LARGEST_FRACTION = 1 - 2.0**-53
"""Quantile functions are asked for fractions below 1."""

DECIMALS = 6
"""Of a fraction that is proposed: the last digits of logarithms and sums are the machine's own."""

FEWEST_ORDERED = 3
"""Of two values, none lies between."""

Place = float | int
Places = Mapping[str, Place]
"""By dimension; what does not exist has none."""


@dataclass(frozen=True, slots=True)
class Fraction:
    """Any real number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Whole numbers from 0 on, of which neighbours are alike."""

    count: int


@dataclass(frozen=True, slots=True)
class Unordered:
    """As many places, of which none is nearer to another."""

    count: int


Kind = Fraction | Ordered | Unordered


@dataclass(frozen=True, slots=True)
class Dimension:
    """A parameter, or several that are zipped."""

    name: str
    members: tuple[Parameter, ...]
    kind: Kind
    decode: Callable[[Place], tuple[Value, ...]]
    """Gives a value for each member."""
    encode: Callable[[Mapping[str, Value]], Place | None]
    """Finds the place of an assignment's values; None where there is none."""
    conditions: tuple[Allowed, ...]
    """Of each member; the dimension exists where one of them does."""


@dataclass(frozen=True, slots=True)
class CodedSpace:
    """All dimensions, parents before those that depend on them wherever zips leave a way to."""

    dimensions: tuple[Dimension, ...]
    constants: Mapping[str, Value]
    """What every assignment has."""

    def encode(self, assignment: Mapping[str, Value]) -> Places | None:
        """Find where an assignment lies; None where it is not one of the space."""
        places: dict[str, Place] = {}
        known = {name: identity(value) for name, value in assignment.items()}
        for dimension in self.dimensions:
            here = [
                all(known.get(parent, ABSENT) in wanted for parent, wanted in one)
                for one in dimension.conditions
            ]
            has = [member.name in known for member in dimension.members]
            if here != has:
                return None
            if any(here):
                place = dimension.encode(assignment)
                if place is None:
                    return None
                places[dimension.name] = place
        has_constants = all(
            known.get(name, ABSENT) == identity(value) for name, value in self.constants.items()
        )
        return places if has_constants else None

    def decode(self, ask: Callable[[Dimension], Place]) -> dict[str, Value]:
        """Make a candidate, asking for the place of each dimension that may exist."""
        candidate = dict(self.constants)
        known: dict[str, Hashable] = {name: identity(value) for name, value in candidate.items()}
        for dimension in self.dimensions:
            here = [may_exist(conditions, known) for conditions in dimension.conditions]
            values = dimension.decode(ask(dimension)) if any(here) else None
            for at, member in enumerate(dimension.members):
                known[member.name] = ABSENT
                if values is not None:
                    candidate[member.name] = values[at]
                    known[member.name] = identity(values[at]) if here[at] else ABSENT
        return candidate


def coded(space: SearchSpace) -> CodedSpace:
    """Give a space the form in which models look at it."""
    constants = {
        one.name: one.domain.value
        for one in space.parameters
        if isinstance(one.domain, Constant) and not one.when
    }
    groups = [group for group in space.groups if len(group) > 1 or group[0].name not in constants]
    return CodedSpace(tuple(_parents_first(map(_dimension, groups))), constants)


def _parents_first(found: Iterable[Dimension]) -> list[Dimension]:
    left, ordered = list(found), list[Dimension]()
    while left:
        waiting = {member.name for dimension in left for member in dimension.members}
        ready = [
            one
            for one in left
            if not {parent for conditions in one.conditions for parent, _ in conditions}
            & (waiting - {member.name for member in one.members})
        ]
        ordered += ready or left[:1]
        left = [one for one in left if one not in (ready or left[:1])]
    return ordered


def _dimension(members: Sequence[Parameter]) -> Dimension:
    name = " ".join(sorted(member.name for member in members))
    conditions = tuple(map(allowed, members))
    if len(members) > 1:
        kind, decode, encode = _zipped(members)
    else:
        kind, decode, encode = _single(members[0])
    return Dimension(name, tuple(members), kind, decode, encode, conditions)


Coding = tuple[Kind, Callable[[Place], tuple[Value, ...]], Callable[[Mapping[str, Value]], Place | None]]


def _zipped(members: Sequence[Parameter]) -> Coding:
    columns = [member.domain.values for member in members if isinstance(member.domain, Choice)]
    rows = list(zip(*columns, strict=True))
    names = [member.name for member in members]
    known = [{name: identity(value) for name, value in zip(names, row, strict=True)} for row in rows]

    def encode(assignment: Mapping[str, Value]) -> Place | None:
        wanted = {name: identity(assignment[name]) for name in names if name in assignment}
        return next((at for at, row in enumerate(known) if wanted.items() <= row.items()), None)

    kind = Ordered(len(rows)) if all(map(_is_ordered, columns)) else Unordered(len(rows))
    return kind, lambda place: rows[int(place)], encode


def _single(member: Parameter) -> Coding:
    name = member.name
    match member.domain:
        case Choice(values, probabilities):
            places = {identity(value): at for at, value in enumerate(values)}
            is_ordered = probabilities is None and _is_ordered(values)
            kind: Kind = Ordered(len(values)) if is_ordered else Unordered(len(values))
            return (
                kind,
                lambda place: (values[int(place)],),
                lambda assignment: places.get(identity(assignment[name])),
            )
        case IntUniform(low, high):
            return Ordered(high - low + 1), lambda place: (low + int(place),), _whole(name, low, high)
        case Quantized(Uniform(low, high), q) if round(low / q) < round(high / q):
            return _stepped(member, low, high, q)
        case Constant(value):  # with a condition: it is there or not
            return (
                Unordered(1),
                lambda _: (value,),
                lambda assignment: 0 if identity(assignment[name]) == identity(value) else None,
            )
        case domain:
            quantile, fraction = quantile_of(domain), fraction_of(domain)
            return (
                Fraction(),
                lambda place: (quantile(min(max(float(place), 0.0), LARGEST_FRACTION)),),
                lambda assignment: fraction(assignment[name]),
            )


def _whole(name: str, low: int, high: int) -> Callable[[Mapping[str, Value]], Place | None]:
    def encode(assignment: Mapping[str, Value]) -> Place | None:
        value = assignment[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            return None
        return int(value) - low if low <= value <= high else None

    return encode


def _stepped(member: Parameter, low: float, high: float, q: float) -> Coding:
    """Count the multiples of q, and the ends where these are none; what lies at one place is one value."""
    quantile, name = quantile_of(member.domain), member.name
    first, count = round(low / q), round(high / q) - round(low / q) + 1

    def decode(place: Place) -> tuple[Value, ...]:
        middle = ((first + int(place)) * q - low) / (high - low)
        return (quantile(min(max(middle, 0.0), LARGEST_FRACTION)),)

    def encode(assignment: Mapping[str, Value]) -> Place | None:
        value = assignment[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            return None
        return min(max(round(value / q) - first, 0), count - 1)

    return Ordered(count), decode, encode


def _is_ordered(values: Sequence[Value]) -> bool:
    """Tell whether values are numbers in order: then neighbours are alike."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < max(FEWEST_ORDERED, len(values)):
        return False
    pairs = list(pairwise(numbers))
    return all(left < right for left, right in pairs) or all(left > right for left, right in pairs)
