"""Every combination of every domain."""

import itertools
from collections.abc import Iterator, Mapping

from generator.structs.domain import Choice, Constant, Domain
from generator.structs.space import SearchSpace
from generator.structs.values import Value


def grid(space: SearchSpace) -> Iterator[Mapping[str, Value]]:
    """Yield all assignments; the last parameter varies fastest."""
    for values in itertools.product(*(_values(parameter.domain) for parameter in space.parameters)):
        yield dict(zip(space.names, values, strict=True))


def _values(domain: Domain) -> tuple[Value, ...]:
    match domain:
        case Constant(value):
            return (value,)
        case Choice(values):
            return values
        case _:
            raise NotImplementedError
