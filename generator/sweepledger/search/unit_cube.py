"""The unit cube of a search space: its axes, the points of configurations in it, and their discrepancy.

Constants have no axis; zipped parameters share one.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import cast

from sweepledger.distributions.rounding import index_at
from sweepledger.structs.combinations import Dimension
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.values import Value, identity

ColumnFunction = Callable[[Sequence[float]], dict[str, Sequence[Value]]]
CoordinateFunction = Callable[[Mapping[str, Value]], float | None]


class UndrawableError(Exception):
    """A distribution gives a value that is not a finite number; rules refuse the known cases."""


Axis = tuple[Parameter, ...]
"""One parameter, or zipped parameters with one common index."""


def axis_columns(members: Axis) -> ColumnFunction:
    """Compile the function from coordinates to each member's values."""
    if len(members) == 1:
        return _quantile_columns(members[0])
    names = [member.name for member in members]
    rows = Dimension.of(members).values()
    values = list(zip(*rows, strict=True))

    def zipped_columns(coordinates: Sequence[float]) -> dict[str, Sequence[Value]]:
        indices = [index_at(u, len(rows)) for u in coordinates]
        return {name: [column[at] for at in indices] for name, column in zip(names, values, strict=True)}

    return zipped_columns


def _axis_coordinate(members: Axis) -> CoordinateFunction:
    """Compile the function from configurations to coordinates; None: the configuration has none here."""
    names = [member.name for member in members]
    if len(names) == 1:
        of_value = members[0].domain.coordinate()
        return lambda configuration: of_value(configuration[names[0]]) if names[0] in configuration else None
    keys = [tuple(map(identity, row)) for row in Dimension.of(members).values()]

    def zipped_coordinate(configuration: Mapping[str, Value]) -> float | None:
        if not all(name in configuration for name in names):
            return None
        key = tuple(identity(configuration[name]) for name in names)
        return (keys.index(key) + 0.5) / len(keys) if key in keys else None

    return zipped_coordinate


def _quantile_columns(member: Parameter) -> ColumnFunction:
    """Compile a parameter's quantile function. The compiled function raises UndrawableError."""
    quantile, is_drawn = member.domain.quantile(), not member.domain.is_discrete

    def columns(coordinates: Sequence[float]) -> dict[str, Sequence[Value]]:
        try:
            values = [*map(quantile, coordinates)]
        except (ArithmeticError, ValueError) as error:
            raise UndrawableError(member.name) from error
        if is_drawn and not all(map(isfinite, cast(list[float], values))):
            raise UndrawableError(member.name)
        return {member.name: values}

    return columns


def axes(space: SearchSpace) -> tuple[Axis, ...]:
    """List a space's axes in the order written; a zip group comes where its first member is."""
    return tuple(members for members in space.groups if len(members) > 1 or not members[0].domain.is_constant)


def unit_points(space: SearchSpace, configurations: Sequence[Mapping[str, Value]]) -> list[list[float]]:
    """Return the points of configurations: a coordinate for each axis that all of them have a value on."""
    columns = [list(map(_axis_coordinate(axis), configurations)) for axis in axes(space)]
    present = [[coordinate for coordinate in column if coordinate is not None] for column in columns]
    complete = [column for column in present if len(column) == len(configurations)]
    return [list(point) for point in zip(*complete, strict=True)]


def discrepancy(points: Sequence[Sequence[float]]) -> float | None:
    """Compute the centred L2 discrepancy, where less is more even; None for no points.

    F. J. Hickernell, "A generalized discrepancy and quadrature error bound", 1998, equation 5.1c. The time is
    quadratic: ten thousand points take a few seconds.
    """
    if not points:
        return None
    import numpy as np  # noqa: PLC0415  (the import takes a fifth of a second, and only plans need it)

    centred = np.abs(np.asarray(points, dtype=np.float64) - 0.5)
    columns = np.ascontiguousarray(np.asarray(points, dtype=np.float64).T)
    count, dimensions = centred.shape
    single = np.prod(1 + centred / 2 - centred**2 / 2, axis=1).sum()
    double = 0.0
    for number in range(count):  # each pair once; a matrix of all pairs could exceed the memory
        product = np.ones(count - number)
        for axis in range(dimensions):
            rest = columns[axis, number:]
            distance = np.abs(rest - rest[0])
            product *= 1 + (centred[number:, axis] + centred[number, axis] - distance) / 2
        double += 2 * product.sum() - product[0]
    return float((13 / 12) ** dimensions - 2 / count * single + double / count**2)
