"""What a block draws: points of the unit cube by its method, turned into values by each domain."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from generator.search.axes import axes
from generator.search.sampling import halton, latin_hypercube, random_, sobol
from generator.search.sampling.points import Points
from generator.structs.domain import Constant
from generator.structs.sweep import Draw, Sampler
from generator.structs.values import Value


def candidates(block: Draw) -> Iterator[dict[str, Value]]:
    """Yield assignments with a value for every parameter, in the order written.

    Conditions and constraints are the caller's. There is no end to them, except that latin-hypercube gives as
    many as the cap, sobol 2^30, and a space of constants its only one.
    """
    found = axes(block.space)
    names = [parameter.name for parameter in block.space.parameters]
    constants = {
        parameter.name: parameter.domain.value
        for parameter in block.space.parameters
        if isinstance(parameter.domain, Constant)
    }
    if not found:
        yield constants
        return
    compiled = [axis.columns() for axis in found]
    for chunk in _points(block, [axis.name for axis in found]):
        columns: dict[str, Sequence[Value]] = {
            name: [value] * len(chunk[0]) for name, value in constants.items()
        }
        for values_of, coordinates in zip(compiled, chunk, strict=True):
            columns |= values_of(coordinates)
        for values in zip(*(columns[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))


def _points(block: Draw, names: list[str]) -> Points:
    match block.sampler:
        case Sampler.RANDOM:
            return random_.points(block.seed, names)
        case Sampler.SOBOL:
            return sobol.points(block.seed, names)
        case Sampler.HALTON:
            return halton.points(block.seed, names)
        case Sampler.LATIN_HYPERCUBE:
            return latin_hypercube.points(block.seed, names, block.cap)
        case _:
            assert_never(block.sampler)


def unbalanced(block: Draw) -> str | None:
    """Say why a block's count spoils its evenness, and what would do; None where all is well."""
    if block.sampler is not Sampler.SOBOL or block.cap.bit_count() == 1:
        return None
    less = 1 << (block.cap.bit_length() - 1)
    return f"sobol points are even at powers of two only: must be {less} or {2 * less}, got {block.cap}"
