"""The unit cube of a search space: its axes, the points of configurations in it, and their discrepancy.

Constants have no axis; zipped parameters share an axis.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, cast

from sweepledger.distributions import zipped_domain
from sweepledger.structs.domain import Domain
from sweepledger.structs.space import Dimension, Parameter, SearchSpace
from sweepledger.structs.values import Value


class UndrawableError(Exception):
    """A distribution gives a value that is not a finite number; rules refuse the known cases."""


Axis = tuple[Parameter, ...]
"""One parameter, or zipped parameters with one common index."""


def axis_domain(members: Axis) -> Domain:
    """Return the domain of a parameter, or of zipped parameters, whose values are their rows."""
    if len(members) == 1:
        return members[0].domain
    return zipped_domain(Dimension.of(members).values())


def axis_columns(members: Axis) -> Callable[[Sequence[float]], dict[str, Sequence[Value]]]:
    """Compile the function from coordinates to each member's values. The function raises UndrawableError."""
    drawn, names = axis_domain(members), [member.name for member in members]
    quantile = drawn.quantile()

    def columns(coordinates: Sequence[float]) -> dict[str, Sequence[Value]]:
        try:
            values = [*map(quantile, coordinates)]
        except (ArithmeticError, ValueError) as error:
            raise UndrawableError(names[0]) from error
        if not drawn.is_discrete and not all(map(isfinite, cast(list[float], values))):
            raise UndrawableError(names[0])
        members_values = (values,) if len(names) == 1 else zip(*values, strict=True)
        return dict(zip(names, members_values, strict=True))

    return columns


def _axis_coordinate(members: Axis) -> Callable[[Mapping[str, Value]], float | None]:
    """Compile the function from configurations to coordinates; None: the configuration has none here."""
    coordinate, names = axis_domain(members).coordinate(), [member.name for member in members]

    def of_configuration(configuration: Mapping[str, Value]) -> float | None:
        if not all(name in configuration for name in names):
            return None
        values: Any = tuple(configuration[name] for name in names)
        return coordinate(values if len(names) > 1 else values[0])

    return of_configuration


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
