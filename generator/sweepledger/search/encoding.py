"""Encoding of a search space for a model: dimensions of three kinds, and the conversion between values and coordinates.

Every coordinate decodes to a legal value, so a proposal cannot leave the space. A continuous domain is encoded by
its cumulative distribution function, so that a model sees all domains on one scale from 0 to 1.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweepledger.search.unit_cube import axis_domain
from sweepledger.structs.domain import Axis
from sweepledger.structs.space import (
    ABSENT,
    Parameter,
    ParentConditions,
    SearchSpace,
    group_name,
    may_exist,
    parent_conditions,
    parents_first,
)
from sweepledger.structs.values import Value, identity

DECIMALS = 6
"""Of a proposed fraction: the last digits of logarithms and sums differ between platforms."""

Coordinate = float | int
Coordinates = Mapping[str, Coordinate]
"""By dimension; an absent dimension has none."""


@dataclass(frozen=True, slots=True)
class EncodedDimension:
    """A parameter, or several zipped parameters."""

    name: str
    members: tuple[Parameter, ...]
    kind: Axis
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
        """How many numbers describe a configuration; an unordered dimension needs one for each of its values."""
        return sum(dimension.kind.columns for dimension in self.dimensions)

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
    domain, name = axis_domain(members), members[0].name
    decode, encode = domain.codec()
    decoded: Callable[[Coordinate], Any] = decode
    encoded: Callable[[Mapping[str, Value]], Coordinate | None]
    if len(members) > 1:
        encoded = _row_of(members, domain.listed)
    else:
        decoded, encoded = (lambda coordinate: (decode(coordinate),)), (lambda values: encode(values[name]))
    conditions = tuple(map(parent_conditions, members))
    return EncodedDimension(group_name(members), members, domain.axis, decoded, encoded, conditions)


def _row_of(
    members: tuple[Parameter, ...], rows: Sequence[Any]
) -> Callable[[Mapping[str, Value]], int | None]:
    """Compile the function from a configuration, which may lack some of the members, to its first row."""
    names = [member.name for member in members]
    known = [{name: identity(value) for name, value in zip(names, row, strict=True)} for row in rows]

    def row_of(configuration: Mapping[str, Value]) -> int | None:
        present = {name: identity(configuration[name]) for name in names if name in configuration}
        return next((at for at, row in enumerate(known) if present.items() <= row.items()), None)

    return row_of
