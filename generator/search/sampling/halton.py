"""Method halton: the number of a point, its digits mirrored at the point, in another prime base a dimension.

Plain Halton points of large bases lie on lines; so every digit goes through a permutation of its own
(A. B. Owen, "A randomized Halton algorithm in R", 2017), made from the seed and the dimension's name.
"""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING

from generator.search.draws import shuffled, stream
from generator.search.sampling.points import LARGEST, Points, chunks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CELLS = 2**62
"""Mirrored numbers are computed as integers up to this: exact, and finer than a double's fraction."""


def points(seed: int, names: Sequence[str]) -> Points:
    """Yield points without end; a name's coordinates stay as long as its place among the names does."""
    import numpy as np  # noqa: PLC0415  (a fifth of a second, for those who draw so)

    bases = [*islice(primes(), len(names))]
    digits = [permutations(seed, name, base) for name, base in zip(names, bases, strict=True)]
    for chunk in chunks():
        numbers = np.arange(chunk.start, chunk.stop)
        yield [mirrored(numbers, permuted).tolist() for permuted in digits]


def primes() -> Iterator[int]:
    """Yield the prime numbers."""
    found: list[int] = []
    for number in count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield number


def places(base: int) -> int:
    """Count the digits that a mirrored number is computed to."""
    return next(number for number in count() if base ** (number + 1) > _CELLS)


def permutations(seed: int, name: str, base: int) -> list[list[int]]:
    """Make a permutation of the digits for every place after the point."""
    chance = stream(seed, name, purpose="digits")
    starts = range(0, base * places(base), base)
    return [shuffled(chance.words(range(start, start + base))) for start in starts]


def mirrored(numbers: "NDArray[np.int64]", digits: Sequence[Sequence[int]]) -> "NDArray[np.float64]":
    """Mirror numbers at the point, each digit replaced by what stands in its place's list."""
    import numpy as np  # noqa: PLC0415  (as above)

    base = len(digits[0])
    total = np.zeros_like(numbers)
    for permuted in digits:
        numbers, last = np.divmod(numbers, base)
        total = total * base + np.asarray(permuted, dtype=np.int64)[last]
    fractions: NDArray[np.float64] = np.minimum(total / base ** len(digits), LARGEST)
    return fractions
