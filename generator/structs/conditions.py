"""Conditions in the form that is fast to look up: a parent, and the identities of the values it must have."""

from collections.abc import Hashable, Mapping

from generator.structs.space import Parameter
from generator.structs.values import identity

Allowed = tuple[tuple[str, frozenset[Hashable]], ...]

Known = Mapping[str, Hashable]
"""What parents are, as far as it is known: the identity of a value, or a mark of its own."""


def allowed(parameter: Parameter) -> Allowed:
    """Give a parameter's conditions; all of them must hold."""
    return tuple(
        (condition.parameter, frozenset(map(identity, condition.values))) for condition in parameter.when
    )


def may_exist(conditions: Allowed, known: Known) -> bool:
    """Tell whether conditions hold, as far as the parents are known: a zip can hide one for a while."""
    return all(parent not in known or known[parent] in identities for parent, identities in conditions)
