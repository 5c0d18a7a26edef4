"""What a grid walks along: the values of each domain, and the parameters that move as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import assert_never

from generator.structs.domain import (
    Beta,
    Choice,
    Constant,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from generator.structs.space import Parameter, SearchSpace
from generator.structs.values import Value


@dataclass(frozen=True, slots=True)
class Steps:
    """So many multiples of a step from a first value on: exact decimals, computed when asked for."""

    first: Fraction
    step: Fraction
    count: int

    @classmethod
    def between(cls, low: float, high: float, step: float) -> "Steps":
        """Go from low by step; high itself is left out, as in W&B."""
        first, last, by = (Fraction(Decimal(repr(number))) for number in (low, high, step))
        return cls(first, by, ceil((last - first) / by))

    def __getitem__(self, position: int) -> int | float:
        value = self.first + position * self.step
        return value.numerator if value.denominator == 1 else float(value)

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        position = (Fraction(Decimal(repr(value))) - self.first) / self.step
        return position.denominator == 1 and 0 <= position < self.count


def steps(domain: Domain) -> Steps | tuple[Value, ...] | None:
    """Give the values of a domain in a grid's order; None where a grid cannot walk them."""
    match domain:
        case Constant(value):
            return (value,)
        case Choice(values):
            return values
        case IntUniform(low, high):
            return Steps(Fraction(low), Fraction(1), high - low + 1)
        case Quantized(Uniform(low, high), q):
            return Steps.between(low, high, q)
        case Uniform() | LogUniform() | Normal() | LogNormal() | Beta() | Quantized():
            return None
        case _:
            assert_never(domain)


def size(domain: Domain) -> int | None:
    """Count a domain's values in a grid, by arithmetic; None where a grid cannot walk them."""
    found = steps(domain)
    return found.count if isinstance(found, Steps) else None if found is None else len(found)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Parameters that move together; most often a single one."""

    members: tuple[Parameter, ...]
    size: int

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names, in the order written."""
        return tuple(member.name for member in self.members)

    def values(self) -> Sequence[tuple[Value, ...]]:
        """List the members' values at every position."""
        columns = [walked(member.domain) for member in self.members]
        return [tuple(column[at] for column in columns) for at in range(self.size)]


def walked(domain: Domain) -> Steps | tuple[Value, ...]:
    """Give the values of a domain that the rules let into a grid."""
    found = steps(domain)
    assert found is not None, f"a grid cannot walk {domain!r}"
    return found


def dimensions(space: SearchSpace) -> tuple[Dimension, ...]:
    """Put zipped parameters together, each group where its first member is written; all are walkable."""
    return tuple(Dimension(members, _size(members)) for members in space.groups)


def _size(members: tuple[Parameter, ...]) -> int:
    sizes = {size(member.domain) for member in members}
    assert len(sizes) == 1, f"zipped parameters have one length, but got {sizes!r}"
    (only,) = sizes
    assert only is not None, f"a grid cannot walk {members!r}"
    return only
