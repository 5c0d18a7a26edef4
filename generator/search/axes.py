"""The dimensions of the cube that points lie in: constants have none, zipped parameters share one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import cast

from generator.search.distributions.quantiles import position, quantile_of
from generator.structs.domain import Choice, Constant, IntUniform
from generator.structs.space import Parameter, SearchSpace
from generator.structs.values import Value

Columns = Callable[[Sequence[float]], dict[str, Sequence[Value]]]


class UndrawableError(Exception):
    """A distribution gives something that is no number; the rules refuse those that are known to."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter, or several that take their values at one common position."""

    members: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """What its draws are keyed by, in whatever order they are zipped; names hold no spaces."""
        return " ".join(sorted(member.name for member in self.members))

    def columns(self) -> Columns:
        """Compile the function from coordinates to each member's values."""
        names = [member.name for member in self.members]
        if len(self.members) == 1:
            return _drawn(self.members[0])
        rows = self.rows()
        values = list(zip(*rows, strict=True))

        def together(coordinates: Sequence[float]) -> dict[str, Sequence[Value]]:
            places = [position(u, len(rows)) for u in coordinates]
            return {name: [column[at] for at in places] for name, column in zip(names, values, strict=True)}

        return together

    def rows(self) -> list[tuple[Value, ...]]:
        """List what zipped members are at each of their positions."""
        return list(zip(*map(_values, self.members), strict=True))


def _drawn(member: Parameter) -> Columns:
    """Compile a parameter's quantile function. What it makes raises UndrawableError."""
    alone, is_drawn = quantile_of(member.domain), not isinstance(member.domain, Choice | IntUniform)

    def columns(coordinates: Sequence[float]) -> dict[str, Sequence[Value]]:
        try:
            values = [*map(alone, coordinates)]
        except (ArithmeticError, ValueError) as error:
            raise UndrawableError(member.name) from error
        if is_drawn and not all(map(isfinite, cast(list[float], values))):
            raise UndrawableError(member.name)
        return {member.name: values}

    return columns


def _values(member: Parameter) -> tuple[Value, ...]:
    assert isinstance(member.domain, Choice), f"only lists of values are zipped, but got {member!r}"
    return member.domain.values


def axes(space: SearchSpace) -> tuple[Axis, ...]:
    """List a space's axes in the order written; a group stands where the first of its members does."""
    return tuple(
        Axis(members)
        for members in space.groups
        if len(members) > 1 or not isinstance(members[0].domain, Constant)
    )
