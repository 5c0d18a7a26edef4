"""The search space: named domains in the order of the spec, with conditions, derived values and constraints.

All methods interpret it in the same way: choose a value for each parameter (the parameters of a zip group share
one position), drop the parameters whose conditions are false, compute the derived values, and keep the
configuration if every constraint is true. Equal configurations count once.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from sweepledger.structs.domain import Domain
from sweepledger.structs.expression import Expression
from sweepledger.structs.values import Value, identity


class Condition(Struct, frozen=True):
    """The parameter exists only if another one exists and has one of these values."""

    parameter: str
    values: tuple[Value, ...]


class Parameter(Struct, frozen=True):
    """One named hyperparameter."""

    name: str
    domain: Domain
    when: tuple[Condition, ...] = ()
    """All of them must be true."""


class DerivedValue(Struct, frozen=True):
    """A value computed from others; absent if one of those is."""

    name: str
    expression: Expression
    text: str


class Constraint(Struct, frozen=True):
    """An expression that every configuration must satisfy; a configuration without one of its names satisfies it."""

    expression: Expression
    text: str


class SearchSpace(Struct, frozen=True):
    """All parameters; their order decides the order of trials, never their identity."""

    parameters: tuple[Parameter, ...]
    zips: tuple[tuple[str, ...], ...] = ()
    """Zip groups; their parameters have choices of one length, without probabilities."""
    derived: tuple[DerivedValue, ...] = ()
    """In an order in which each depends only on parameters and earlier derived values."""
    constraints: tuple[Constraint, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of parameters and derived values, in the order of the spec."""
        parameters = (parameter.name for parameter in self.parameters)
        return (*parameters, *(value.name for value in self.derived))

    @property
    def constants(self) -> dict[str, Value]:
        """The values of the parameters that have only one, in the order written."""
        return {
            parameter.name: parameter.domain.listed[0]
            for parameter in self.parameters
            if parameter.domain.is_constant
        }

    @property
    def groups(self) -> tuple[tuple[Parameter, ...], ...]:
        """Zip groups at the place of their first parameter, and all other parameters alone."""
        zipped = {name: group for group in self.zips for name in group}
        groups: dict[tuple[str, ...], list[Parameter]] = {}
        for parameter in self.parameters:
            groups.setdefault(zipped.get(parameter.name, (parameter.name,)), []).append(parameter)
        return tuple(map(tuple, groups.values()))

    def __getitem__(self, name: str) -> Parameter:
        """Return a parameter by name. Raises KeyError."""
        return {parameter.name: parameter for parameter in self.parameters}[name]


ParentConditions = tuple[tuple[str, frozenset[Hashable]], ...]

Group = TypeVar("Group")

KnownParents = Mapping[str, Hashable]
"""The known parents of conditions: the identity of a value, or a marker object."""


def parent_conditions(parameter: Parameter) -> ParentConditions:
    """Return a parameter's conditions, all of which must be true."""
    return tuple(
        (condition.parameter, frozenset(map(identity, condition.values))) for condition in parameter.when
    )


def may_exist(conditions: ParentConditions, known: KnownParents) -> bool:
    """Return whether conditions can be true, given the known parents; a zip group can hide others."""
    return all(parent not in known or known[parent] in identities for parent, identities in conditions)


def group_name(members: Iterable[Parameter]) -> str:
    """Return the name of a group of zipped parameters, which does not depend on their order."""
    return " ".join(sorted(member.name for member in members))


def parents_first(groups: Iterable[Group], members: Callable[[Group], Sequence[Parameter]]) -> list[Group]:
    """Sort groups of parameters so that each follows the parents of its members, unless zips form a cycle."""
    left, ordered = list(groups), list[Group]()
    while left:
        waiting = {member.name for group in left for member in members(group)}
        ready = [group for group in left if not parents(members(group)) & waiting] or left[:1]
        ordered += ready
        left = [group for group in left if group not in ready]
    return ordered


def parents(members: Iterable[Parameter]) -> set[str]:
    """Return the names of the parameters that conditions name, without the members' own."""
    members = tuple(members)
    names = {condition.parameter for member in members for condition in member.when}
    return names - {member.name for member in members}
