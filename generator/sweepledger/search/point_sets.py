"""The samplers random, latin-hypercube, halton and sobol: points of the unit cube, in chunks.

The seed and the names of the dimensions determine every coordinate, which is at least 0 and less than 1.
halton: each digit goes through its own permutation, since plain Halton points of large bases lie on lines
(A. B. Owen, "A randomized Halton algorithm in R", 2017).
sobol: SciPy's points (Joe and Kuo's direction numbers) with Matoušek's scrambling ("On the L2-discrepancy for
anchored boxes", 1998): in base 2, digits are multiplied by a lower triangular matrix and shifted, which keeps
a net a net. Why not SciPy's own scrambling: docs/decisions/0001-scrambling.md.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING

from sweepledger.distributions.scipy_modules import import_scipy
from sweepledger.search.rng import STEP, shuffled_indices, stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Points = Iterator[Sequence[Sequence[float]]]

LARGEST_BELOW_ONE = 1 - 2.0**-53
"""The largest double below 1, for sums that round up."""

_FIRST_CHUNK = 2**6
_MAX_CHUNK = 2**12
"""Most sweeps need only the first chunk; small chunks avoid computing many unused points."""


def index_chunks() -> Iterator[range]:
    """Yield ranges of point numbers from 0, without end; sizes are powers of two that double at first."""
    start = 0
    for size in chain(
        (_FIRST_CHUNK << number for number in range((_MAX_CHUNK // _FIRST_CHUNK).bit_length())),
        repeat(_MAX_CHUNK),
    ):
        yield range(start, start + size)
        start += size


def random_points(seed: int, names: Sequence[str]) -> Points:
    """Yield points without end; a name's coordinates do not depend on other names."""
    streams = [stream(seed, name, purpose="random") for name in names]
    for numbers in index_chunks():
        yield [stream_.uniforms(numbers) for stream_ in streams]


def latin_hypercube_points(seed: int, names: Sequence[str], count: int) -> Points:
    """Yield `count` points in one chunk; a name's coordinates depend on the count but not on other names."""
    yield [_latin_hypercube_coordinates(seed, name, count) for name in names]


def _latin_hypercube_coordinates(seed: int, name: str, count: int) -> list[float]:
    numbers = range(count)
    strata = shuffled_indices(stream(seed, name, purpose="strata").words(numbers))
    offsets = stream(seed, name, purpose="places").uniforms(numbers)
    return [
        min((stratum + offset) / count, LARGEST_BELOW_ONE)
        for stratum, offset in zip(strata, offsets, strict=True)
    ]


_HALTON_CELLS = 2**62
"""Radical inverses are computed as integers up to this limit: exact, and finer than a double's fraction."""


def halton_points(seed: int, names: Sequence[str]) -> Points:
    """Yield points without end; a name's coordinates depend on its position among the names."""
    import numpy as np  # noqa: PLC0415  (the import takes a fifth of a second)

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


def radical_inverse(numbers: "NDArray[np.int64]", digits: Sequence[Sequence[int]]) -> "NDArray[np.float64]":
    """Mirror the digits of numbers at the point, and permute the digits of each position."""
    import numpy as np  # noqa: PLC0415  (as above)

    base = len(digits[0])
    total = np.zeros_like(numbers)
    for permuted in digits:
        numbers, last = np.divmod(numbers, base)
        total = total * base + np.asarray(permuted, dtype=np.int64)[last]
    fractions: NDArray[np.float64] = np.minimum(total / base ** len(digits), LARGEST_BELOW_ONE)
    return fractions


_SOBOL_BITS = 30
"""Binary digits of SciPy's points, of which there are 2^30."""

_SOBOL_DIGITS = 53
"""Binary digits of scrambled points: the matrix has more rows than columns, so that lower digits differ, too."""


def sobol_points(seed: int, names: Sequence[str]) -> Points:
    """Yield 2^30 points; a name's coordinates depend on its position among the names."""
    import numpy as np  # noqa: PLC0415

    qmc = import_scipy("stats.qmc", "method: sobol requires")
    engine = qmc.Sobol(len(names), scramble=False, bits=_SOBOL_BITS)
    scrambles = [scramble_matrix(seed, name) for name in names]
    for chunk in index_chunks():
        if chunk.stop > 1 << _SOBOL_BITS:
            return
        plain = (engine.random(len(chunk)) * (1 << _SOBOL_BITS)).astype(np.int64)
        yield [
            (scramble_digits(plain[:, axis], *scramble) * STEP).tolist()
            for axis, scramble in enumerate(scrambles)
        ]


def scramble_matrix(seed: int, name: str) -> tuple[list[int], int]:
    """Return the matrix's columns, the first for the highest digit, and the shift: 53 binary digits each."""
    words = [
        word >> (64 - _SOBOL_DIGITS)
        for word in stream(seed, name, purpose="scramble").words(range(_SOBOL_BITS + 1))
    ]
    tops = [1 << (_SOBOL_DIGITS - 1 - number) for number in range(_SOBOL_BITS)]
    # Ones on the diagonal, zeros above it, random digits below it.
    return [top | (word & (top - 1)) for top, word in zip(tops, words[:_SOBOL_BITS], strict=True)], words[
        _SOBOL_BITS
    ]


def scramble_digits(plain: "NDArray[np.int64]", matrix: Sequence[int], shift: int) -> "NDArray[np.int64]":
    """Multiply binary digits by a matrix and add the shift, modulo 2."""
    import numpy as np  # noqa: PLC0415  (as above)

    total = np.full_like(plain, shift)
    for number, column in enumerate(matrix):
        total ^= (plain >> (_SOBOL_BITS - 1 - number) & 1) * column
    return total
