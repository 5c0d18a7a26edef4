"""The sampler sobol: SciPy's points (Joe and Kuo's direction numbers) with Matoušek's scrambling.

"On the L2-discrepancy for anchored boxes", 1998: in base 2, digits are multiplied by a lower triangular matrix and
shifted, which keeps a net a net. Why not SciPy's own scrambling: docs/decisions/0001-scrambling.md.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sweepledger.distributions.scipy_modules import import_scipy
from sweepledger.search.random_points import Points, index_chunks
from sweepledger.search.rng import STEP, stream

_SOBOL_BITS = 30
"""Binary digits of SciPy's points, of which there are 2^30."""

_SOBOL_DIGITS = 53
"""Binary digits of scrambled points: the matrix has more rows than columns, so that lower digits differ, too."""


def points(seed: int, names: Sequence[str], _: int) -> Points:
    """Yield 2^30 points; a name's coordinates depend on its position among the names."""
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
    *rows, shift = words
    return [top | (word & (top - 1)) for top, word in zip(tops, rows, strict=True)], shift


def scramble_digits(plain: NDArray[np.int64], matrix: Sequence[int], shift: int) -> NDArray[np.int64]:
    """Multiply binary digits by a matrix and add the shift, modulo 2."""
    total = np.full_like(plain, shift)
    for number, column in enumerate(matrix):
        total ^= (plain >> (_SOBOL_BITS - 1 - number) & 1) * column
    return total
