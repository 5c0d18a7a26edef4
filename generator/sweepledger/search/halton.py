"""The sampler halton: radical inverses in one prime base per dimension.

Each digit goes through its own permutation, since plain Halton points of large bases lie on lines (A. B. Owen, "A
randomized Halton algorithm in R", 2017).
"""

from collections.abc import Iterator, Sequence
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from sweepledger.search.random_points import LARGEST_BELOW_ONE, Points, index_chunks
from sweepledger.search.rng import shuffled_indices, stream

_HALTON_CELLS = 2**62
"""Radical inverses are computed as integers up to this limit: exact, and finer than a double's fraction."""


def points(seed: int, names: Sequence[str], _: int) -> Points:
    """Yield points without end; a name's coordinates depend on its position among the names."""
    bases = [*islice(primes(), len(names))]
    digits = [digit_permutations(seed, name, base) for name, base in zip(names, bases, strict=True)]
    for chunk in index_chunks():
        numbers = np.arange(chunk.start, chunk.stop)
        yield [radical_inverse(numbers, permuted).tolist() for permuted in digits]


def primes() -> Iterator[int]:
    """Yield the prime numbers."""
    smaller: list[int] = []
    for number in count(2):
        if all(number % prime for prime in smaller):
            smaller.append(number)
            yield number


def digit_count(base: int) -> int:
    """Return the number of digits of a radical inverse."""
    return next(number for number in count() if base ** (number + 1) > _HALTON_CELLS)


def digit_permutations(seed: int, name: str, base: int) -> list[list[int]]:
    """Return a permutation of the digits for every position after the point."""
    digits = stream(seed, name, purpose="digits")
    starts = range(0, base * digit_count(base), base)
    return [shuffled_indices(digits.words(range(start, start + base))) for start in starts]


def radical_inverse(numbers: NDArray[np.int64], digits: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Mirror the digits of numbers at the point, and permute the digits of each position."""
    base = len(digits[0])
    total = np.zeros_like(numbers)
    for permuted in digits:
        numbers, last = np.divmod(numbers, base)
        total = total * base + np.asarray(permuted, dtype=np.int64)[last]
    fractions: NDArray[np.float64] = np.minimum(total / base ** len(digits), LARGEST_BELOW_ONE)
    return fractions
