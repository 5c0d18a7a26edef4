"""Which parameters moved together, so that no analysis can tell their effects apart."""

import math
from collections import Counter
from collections.abc import Sequence

from generator.results.additive import ABSENT, Kinds

CONFOUNDED = 0.6
"""Of Cramer's V corrected for bias (Bergsma, 2013): 0 is independent, 1 is one and the same."""
FEWEST_SHARED = 8
MOST_COMPARED = 40
"""Of parameters: the pairs of hundreds would take minutes."""


def clusters(kinds: Sequence[Kinds]) -> list[int | None]:
    """Give of each parameter the first one that it moved with; None of those that moved by themselves."""
    leaders: list[int | None] = []
    for number, one in enumerate(kinds):
        firsts = (other for other in range(min(number, MOST_COMPARED)) if leaders[other] is None)
        leaders.append(next((first for first in firsts if association(kinds[first], one) > CONFOUNDED), None))
    return leaders


def association(one: Kinds, other: Kinds) -> float:
    """Tell by 0 to 1 how far two groupings go together, over the trials that are in both."""
    cells = Counter(zip(one, other, strict=True))
    both = {pair: count for pair, count in cells.items() if ABSENT not in pair}
    rows, columns = Counter[int](), Counter[int]()
    for (row, column), count in both.items():
        rows[row] += count
        columns[column] += count
    total = sum(both.values())
    if min(len(rows), len(columns)) < 2 or total < FEWEST_SHARED:  # noqa: PLR2004 - one group tells nothing
        return 0.0
    square = math.fsum(count * count / (rows[a] * columns[b]) for (a, b), count in both.items()) - 1
    corrected = max(0.0, square - (len(rows) - 1) * (len(columns) - 1) / (total - 1))
    least = min(len(groups) - (len(groups) - 1) ** 2 / (total - 1) for groups in (rows, columns)) - 1
    return math.sqrt(min(1.0, corrected / least)) if least > 0 else 0.0
