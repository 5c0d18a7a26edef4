"""Assignments that a person wrote down, completed by the values that hold for all of them."""

from collections.abc import Iterator

from generator.search.settling import Candidate
from generator.structs.domain import Constant
from generator.structs.sweep import Listing


def listed(block: Listing) -> Iterator[Candidate]:
    """Yield each assignment with the constants that it does not name itself."""
    constants = {
        parameter.name: parameter.domain.value
        for parameter in block.space.parameters
        if isinstance(parameter.domain, Constant)
    }
    for assignment in block.assignments:
        yield {**constants, **assignment}
