"""How often each parameter has each value: counts where values are few, ten bins where they are many."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from generator.plan.bins import Binned, Scale, binned
from generator.structs.domain import Choice, Constant, Domain, IntUniform
from generator.structs.space import Parameter
from generator.structs.sweep import Sweep
from generator.structs.values import Value, identity

__all__ = ["Binned", "Counted", "Coverage", "Covered", "Scale", "coverage"]

FEW = 12
"""So many different values are read one by one; of more, a histogram says more."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many assignments have each value; what the spec names and none has stands there with 0."""

    values: tuple[tuple[Value, int], ...]


@dataclass(frozen=True, slots=True)
class Covered:
    """What assignments do with a parameter, or with a derived value."""

    name: str
    present: int
    """Assignments that have it."""
    values: Counted | Binned
    is_derived: bool = False
    is_conditional: bool = False
    zipped_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """A sweep's parameters as its assignments have them, in the order of the spec."""

    assignments: int
    parameters: tuple[Covered, ...]
    constants: tuple[tuple[str, Value], ...]
    """What the spec fixes for every assignment."""


def coverage(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Coverage:
    """Count what the assignments of a sweep cover."""
    declared: dict[str, list[Parameter]] = {}
    for block in sweep.blocks:
        for parameter in block.space.parameters:
            declared.setdefault(parameter.name, []).append(parameter)
    constants: list[tuple[str, Value]] = []
    parameters: list[Covered] = []
    for name in sweep.columns:
        column = [assignment[name] for assignment in assignments if name in assignment]
        domains = [parameter.domain for parameter in declared.get(name, ())]
        values = _values(column, domains)
        if column and _is_fixed(values, domains, len(assignments)):
            constants.append((name, column[0]))
        else:
            parameters.append(_covered(sweep, name, len(column), values))
    return Coverage(len(assignments), tuple(parameters), tuple(constants))


def _is_fixed(values: Counted | Binned, domains: Sequence[Domain], assignments: int) -> bool:
    is_constant = bool(domains) and all(isinstance(domain, Constant) for domain in domains)
    return is_constant and isinstance(values, Counted) and [n for _, n in values.values] == [assignments]


def _covered(sweep: Sweep, name: str, present: int, values: Counted | Binned) -> Covered:
    spaces = [block.space for block in sweep.blocks]
    groups = [group for space in spaces for group in space.zips if name in group]
    return Covered(
        name,
        present,
        values,
        is_derived=any(name == derived.name for space in spaces for derived in space.derived),
        is_conditional=any(p.name == name and p.when for space in spaces for p in space.parameters),
        zipped_with=tuple(dict.fromkeys(other for group in groups for other in group if other != name)),
    )


def _values(column: Sequence[Value], domains: Sequence[Domain]) -> Counted | Binned:
    counted = _counted(column, [value for domain in domains for value in _written(domain)])
    if not column or len(counted.values) <= FEW or not all(_is_number(value) for value, _ in counted.values):
        return counted
    return binned([value for value in column if isinstance(value, int | float)], domains)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(domain: Domain) -> Iterable[Value]:
    """List the values that a reader of the spec expects to see."""
    match domain:
        case Constant(value):
            return (value,)
        case Choice(values):
            return values
        case IntUniform(low, high) if high - low < FEW:
            return range(low, high + 1)
        case _:
            return ()


def _counted(column: Sequence[Value], written: Sequence[Value]) -> Counted:
    counts = Counter(map(identity, column))
    values = {identity(value): value for value in (*column, *written)}
    expected = dict.fromkeys(map(identity, written))
    others = [key for key in counts if key not in expected]
    if all(_is_number(values[key]) for key in others):
        others.sort(key=lambda key: cast("float", values[key]))
    return Counted(tuple((values[key], counts[key]) for key in (*expected, *others)))
