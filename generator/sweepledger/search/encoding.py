"""Encoding of a search space for a model: dimensions of three kinds, and the conversion between values and coordinates.

Every coordinate decodes to a legal value, so a proposal cannot leave the space. A continuous domain is encoded by
its cumulative distribution function, so that a model sees all domains on one scale from 0 to 1.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from sweepledger.search.distributions import LARGEST_FRACTION, coordinate_of, quantile_of
from sweepledger.structs.combinations import ABSENT, Dimension, is_ordered
from sweepledger.structs.domain import Choice, Constant, IntUniform, Quantized, Uniform
from sweepledger.structs.space import (
    Parameter,
    ParentConditions,
    SearchSpace,
    group_name,
    may_exist,
    parent_conditions,
    parents_first,
)
from sweepledger.structs.values import Value, identity, is_number

DECIMALS = 6
"""Of a proposed fraction: the last digits of logarithms and sums differ between platforms."""

Coordinate = float | int
Coordinates = Mapping[str, Coordinate]
"""By dimension; an absent dimension has none."""


@dataclass(frozen=True, slots=True)
class UnitInterval:
    """Real numbers from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Ordinal:
    """Integers from 0 to count - 1, whose neighbours are alike."""

    count: int


@dataclass(frozen=True, slots=True)
class Categorical:
    """Integers from 0 to count - 1 without an order."""

    count: int


DimensionKind = UnitInterval | Ordinal | Categorical


@dataclass(frozen=True, slots=True)
class EncodedDimension:
    """A parameter, or several zipped ones."""

    name: str
    members: tuple[Parameter, ...]
    kind: DimensionKind
    decode: Callable[[Coordinate], tuple[Value, ...]]
    """Returns a value for each member."""
    encode: Callable[[Mapping[str, Value]], Coordinate | None]
    """Returns the coordinate of a configuration's values; None for values that the members do not have."""
    conditions: tuple[ParentConditions, ...]
    """Conditions of each member; the dimension exists if any member does."""


@dataclass(frozen=True, slots=True)
class EncodedSpace:
    """All dimensions, each after its parents unless zips form a cycle."""

    dimensions: tuple[EncodedDimension, ...]
    constants: Mapping[str, Value]
    """Constants without conditions."""

    @property
    def columns(self) -> int:
        """How many numbers describe a configuration, with one for each value without an order."""
        kinds = (dimension.kind for dimension in self.dimensions)
        return sum(kind.count if isinstance(kind, Categorical) else 1 for kind in kinds)

    def encode(self, configuration: Mapping[str, Value]) -> Coordinates | None:
        """Return a configuration's coordinates; None if the space does not contain it."""
        coordinates: dict[str, Coordinate] = {}
        known = {name: identity(value) for name, value in configuration.items()}
        for dimension in self.dimensions:
            required = [
                all(known.get(parent, ABSENT) in values for parent, values in conditions)
                for conditions in dimension.conditions
            ]
            if required != [member.name in known for member in dimension.members]:
                return None
            if any(required):
                coordinate = dimension.encode(configuration)
                if coordinate is None:
                    return None
                coordinates[dimension.name] = coordinate
        has_constants = all(
            known.get(name, ABSENT) == identity(value) for name, value in self.constants.items()
        )
        return coordinates if has_constants else None

    def decode(self, propose: Callable[[EncodedDimension], Coordinate]) -> dict[str, Value]:
        """Build a candidate from a proposed coordinate for each dimension that may exist."""
        candidate = dict(self.constants)
        known: dict[str, Hashable] = {name: identity(value) for name, value in candidate.items()}
        for dimension in self.dimensions:
            existing = [may_exist(conditions, known) for conditions in dimension.conditions]
            values = dimension.decode(propose(dimension)) if any(existing) else None
            for at, member in enumerate(dimension.members):
                known[member.name] = ABSENT
                if values is not None:
                    candidate[member.name] = values[at]
                    known[member.name] = identity(values[at]) if existing[at] else ABSENT
        return candidate


def encode_space(space: SearchSpace) -> EncodedSpace:
    """Encode a search space."""
    conditional = {parameter.name for parameter in space.parameters if parameter.when}
    constants = {name: value for name, value in space.constants.items() if name not in conditional}
    groups = [group for group in space.groups if len(group) > 1 or group[0].name not in constants]
    return EncodedSpace(tuple(map(_dimension, parents_first(groups, members=tuple))), constants)


def _dimension(members: tuple[Parameter, ...]) -> EncodedDimension:
    kind, decode, encode = _zip_codec(members) if len(members) > 1 else _parameter_codec(members[0])
    conditions = tuple(map(parent_conditions, members))
    return EncodedDimension(group_name(members), members, kind, decode, encode, conditions)


Codec = tuple[
    DimensionKind,
    Callable[[Coordinate], tuple[Value, ...]],
    Callable[[Mapping[str, Value]], Coordinate | None],
]


def _zip_codec(members: tuple[Parameter, ...]) -> Codec:
    rows = Dimension.of(members).values()
    names = [member.name for member in members]
    known = [{name: identity(value) for name, value in zip(names, row, strict=True)} for row in rows]

    def encode(configuration: Mapping[str, Value]) -> Coordinate | None:
        present = {name: identity(configuration[name]) for name in names if name in configuration}
        return next((at for at, row in enumerate(known) if present.items() <= row.items()), None)

    has_order = all(map(is_ordered, zip(*rows, strict=True)))
    kind = Ordinal(len(rows)) if has_order else Categorical(len(rows))
    return kind, lambda coordinate: rows[int(coordinate)], encode


def _parameter_codec(member: Parameter) -> Codec:
    name = member.name
    match member.domain:
        case Choice(values, probabilities):
            indices = {identity(value): at for at, value in enumerate(values)}
            has_order = probabilities is None and is_ordered(values)
            kind: DimensionKind = Ordinal(len(values)) if has_order else Categorical(len(values))
            return (
                kind,
                lambda coordinate: (values[int(coordinate)],),
                lambda configuration: indices.get(identity(configuration[name])),
            )
        case IntUniform(low, high):
            return (
                Ordinal(high - low + 1),
                lambda coordinate: (low + int(coordinate),),
                _integer_encoder(name, low, high),
            )
        case Quantized(Uniform(low, high), q) if round(low / q) < round(high / q):
            return _quantized_codec(member, low, high, q)
        case Constant(value):  # with a condition: it exists or not
            return (
                Categorical(1),
                lambda _: (value,),
                lambda configuration: 0 if identity(configuration[name]) == identity(value) else None,
            )
        case domain:
            quantile, coordinate_in = quantile_of(domain), coordinate_of(domain)
            return (
                UnitInterval(),
                lambda coordinate: (quantile(min(max(float(coordinate), 0.0), LARGEST_FRACTION)),),
                lambda configuration: coordinate_in(configuration[name]),
            )


def _integer_encoder(name: str, low: int, high: int) -> Callable[[Mapping[str, Value]], Coordinate | None]:
    def encode(configuration: Mapping[str, Value]) -> Coordinate | None:
        value = configuration[name]
        if not is_number(value) or value != int(value):
            return None
        return int(value) - low if low <= value <= high else None

    return encode


def _quantized_codec(member: Parameter, low: float, high: float, q: float) -> Codec:
    """Number the multiples of q, and the bounds if these are not multiples: each index stands for one value."""
    quantile, name = quantile_of(member.domain), member.name
    first, count = round(low / q), round(high / q) - round(low / q) + 1

    def decode(coordinate: Coordinate) -> tuple[Value, ...]:
        # Through the quantile function, so that proposals and draws have the same values.
        fraction = ((first + int(coordinate)) * q - low) / (high - low)
        return (quantile(min(max(fraction, 0.0), LARGEST_FRACTION)),)

    def encode(configuration: Mapping[str, Value]) -> Coordinate | None:
        value = configuration[name]
        if not is_number(value) or not low <= value <= high:
            return None
        return min(max(round(value / q) - first, 0), count - 1)

    return Ordinal(count), decode, encode
