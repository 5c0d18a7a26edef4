"""Every combination of every domain."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import assert_never

from generator.structs.space import Choice, Constant, Domain, SearchSpace
from generator.structs.values import Value


def grid(space: SearchSpace) -> Iterator[Mapping[str, Value]]:
    """Yield all assignments; the last parameter varies fastest."""
    for values in itertools.product(*(_values(parameter.domain) for parameter in space.parameters)):
        yield dict(zip(space.names, values, strict=True))


def size(space: SearchSpace) -> int:
    """Count the assignments without making them."""
    return math.prod(len(_values(parameter.domain)) for parameter in space.parameters)


def _values(domain: Domain) -> tuple[Value, ...]:
    match domain:
        case Constant(value):
            return (value,)
        case Choice(values):
            return values
        case _:
            assert_never(domain)
