"""Method sobol: SciPy's points (Joe and Kuo's direction numbers), scrambled by our own keys.

The scrambling is Matoušek's ("On the L2-discrepancy for anchored boxes", 1998): digits are multiplied by a
lower triangular matrix and shifted, in base 2 and for each dimension, which keeps a net a net.
Why not SciPy's own: docs/decisions/0001-scrambling.md.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from generator.search.draws import STEP, stream
from generator.search.sampling.points import Points, chunks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BITS = 30
"""Of SciPy's points: as many as it can give are 2^30."""

_DIGITS = 53
"""Of ours: the matrix has more rows than columns, so that points do not share their lower digits."""


def points(seed: int, names: Sequence[str]) -> Points:
    """Yield 2^30 points; a name's coordinates stay as long as its place among the names does."""
    # A second, for those who draw so.
    import numpy as np  # noqa: PLC0415
    from scipy.stats import qmc  # type: ignore[import-untyped]  # noqa: PLC0415

    engine = qmc.Sobol(len(names), scramble=False, bits=_BITS)
    scrambles = [columns(seed, name) for name in names]
    for chunk in chunks():
        if chunk.stop > 1 << _BITS:
            return
        plain = (engine.random(len(chunk)) * (1 << _BITS)).astype(np.int64)
        yield [
            (scrambled(plain[:, axis], *scramble) * STEP).tolist() for axis, scramble in enumerate(scrambles)
        ]


def columns(seed: int, name: str) -> tuple[list[int], int]:
    """Make the matrix's columns, the first for the highest digit, and the shift: 53 binary digits each."""
    words = [
        word >> (64 - _DIGITS) for word in stream(seed, name, purpose="scramble").words(range(_BITS + 1))
    ]
    tops = [1 << (_DIGITS - 1 - number) for number in range(_BITS)]
    # A one on the diagonal, zeros above it, chance below it.
    return [top | (word & (top - 1)) for top, word in zip(tops, words[:_BITS], strict=True)], words[_BITS]


def scrambled(plain: "NDArray[np.int64]", matrix: Sequence[int], shift: int) -> "NDArray[np.int64]":
    """Multiply binary digits by a matrix, and shift them, without carrying."""
    import numpy as np  # noqa: PLC0415  (as above)

    total = np.full_like(plain, shift)
    for number, column in enumerate(matrix):
        total ^= (plain >> (_BITS - 1 - number) & 1) * column
    return total
