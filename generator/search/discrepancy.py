"""How evenly assignments fill their space."""

from collections.abc import Mapping, Sequence

from generator.search.axes import Axis, axes
from generator.search.distributions.units import unit
from generator.structs.space import SearchSpace
from generator.structs.values import Value, identity


def coverage_points(space: SearchSpace, assignments: Sequence[Mapping[str, Value]]) -> list[list[float]]:
    """Place assignments in the unit cube: a coordinate for each axis that all of them have a place on."""
    columns = [[_coordinate(axis, assignment) for assignment in assignments] for axis in axes(space)]
    full = [[place for place in column if place is not None] for column in columns]
    kept = [column for column in full if len(column) == len(assignments)]
    return [list(point) for point in zip(*kept, strict=True)]


def _coordinate(axis: Axis, assignment: Mapping[str, Value]) -> float | None:
    if not all(member.name in assignment for member in axis.members):
        return None
    values = [assignment[member.name] for member in axis.members]
    if len(values) == 1:
        return unit(axis.members[0].domain, values[0])
    rows = axis.rows()
    keys = [tuple(map(identity, row)) for row in rows]
    wanted = tuple(map(identity, values))
    return (keys.index(wanted) + 0.5) / len(keys) if wanted in keys else None


def discrepancy(points: Sequence[Sequence[float]]) -> float | None:
    """Measure the centred L2 discrepancy, less is more even; None for no points.

    Every pair is compared: ten thousand points take about a second.
    """
    if not points:
        return None
    # A second, for reviews that show it.
    from scipy.stats import qmc  # type: ignore[import-untyped]  # noqa: PLC0415

    return float(qmc.discrepancy(points, method="CD"))
