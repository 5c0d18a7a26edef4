"""The search space: named domains in the order a person wrote them, and what ties them together.

Its meaning, for every method alike: choose a value for each parameter (zipped ones by one common position),
drop the parameters whose conditions do not hold, compute the derived values, and keep the assignment if every
constraint holds. Equal assignments are one.
"""

from dataclasses import dataclass, field

from generator.problems import NOWHERE, Place
from generator.structs.domain import Choice, Domain
from generator.structs.expression import Expression
from generator.structs.values import Value, canonical_json


@dataclass(frozen=True, slots=True)
class Condition:
    """The parameter exists only where another one exists and has one of these values."""

    parameter: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named dimension of the search."""

    name: str
    domain: Domain
    when: tuple[Condition, ...] = ()
    """All of them must hold."""
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Derived:
    """A value computed from others; absent where one of those is."""

    name: str
    expression: Expression
    text: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Constraint:
    """What every assignment must satisfy; one that lacks a value which it asks for satisfies it."""

    expression: Expression
    text: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """All dimensions; their order decides the order of trials, never their identity."""

    parameters: tuple[Parameter, ...]
    zips: tuple[tuple[str, ...], ...] = ()
    """Groups of parameters that move together; each has a Choice of the same length and no probabilities."""
    derived: tuple[Derived, ...] = ()
    """In an order in which each needs only parameters and those before it."""
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"parameter names must differ, but got {self.names!r}")
        zipped = [name for group in self.zips for name in group]
        for parameter in self.parameters:
            values = parameter.domain.values if isinstance(parameter.domain, Choice) else ()
            distinct = {canonical_json(value) for value in values}
            if len(distinct) < len(values) and parameter.name not in zipped:
                raise ValueError(f"the values of a choice must differ, but got {values!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of parameters and derived values, in the order written."""
        parameters = (parameter.name for parameter in self.parameters)
        return (*parameters, *(value.name for value in self.derived))

    @property
    def groups(self) -> tuple[tuple[Parameter, ...], ...]:
        """What moves as one: zipped parameters together, where the first of them is written; others alone."""
        zipped = {name: group for group in self.zips for name in group}
        made: dict[tuple[str, ...], list[Parameter]] = {}
        for parameter in self.parameters:
            made.setdefault(zipped.get(parameter.name, (parameter.name,)), []).append(parameter)
        return tuple(map(tuple, made.values()))

    def __getitem__(self, name: str) -> Parameter:
        """Find a parameter. Raises KeyError."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)
