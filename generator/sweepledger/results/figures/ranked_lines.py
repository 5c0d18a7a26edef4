"""Trials as lines, best first: which of many are drawn, and the colour of each by its rank among all."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from sweepledger.results.figures.svg import CLASSES

MOST_LINES = 160
BEST_LINES = 20
"""Lines that are always drawn."""
MOST_BOLD = 60
LEGEND = ((f"c{CLASSES - 1}", "best fifth"), ("c2", "middle"), ("c0", "worst fifth"))

Line = TypeVar("Line")


def thin_lines(ranked: Sequence[Line]) -> list[Line]:
    """Return the best lines, and every n-th of the others by rank, so that they are spread like all lines."""
    if len(ranked) <= MOST_LINES:
        return list(ranked)
    stride = _stride(len(ranked))
    return [*ranked[:BEST_LINES], *ranked[BEST_LINES + stride - 1 :: stride]]


def thinning_notes(drawn: int, total: int) -> Iterator[str]:
    """Yield which lines are drawn, if not all are."""
    if drawn < total:
        yield f"{drawn} of {total} trials are drawn: the best {BEST_LINES},"
        yield f"and one in {_stride(total)} of the others by rank."


def line_class(rank: int, total: int) -> str:
    """Return the style of a line by its rank among all lines, drawn or not: a fifth of them each."""
    return f"line c{CLASSES - 1 - rank * CLASSES // total}"


def group_class(drawn: int) -> str:
    """Return the style of the element that contains so many lines."""
    return "fine" if drawn > MOST_BOLD else ""


def _stride(total: int) -> int:
    return -(-(total - BEST_LINES) // (MOST_LINES - BEST_LINES))
