"""`figures/intervals.svg`: with replicates, each assignment's mean and how sure it is, best first."""

import math
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from generator.formats.summary import parameter_names
from generator.results import words
from generator.results.figures import svg
from generator.results.figures.axis import Axis, number_axis
from generator.results.figures.page import EDGE, WIDTH, Frame, cut, direction, head, labels, mark, notes
from generator.results.figures.style import NARROW_SIZE, WIDE_SIZE
from generator.results.replicated import Replicated
from generator.results.summary import Summary

MOST_ROWS = 24
NAMES = 250
"""Room for the assignments at the left."""
ROW = 30
DOT = 2.6


def intervals(summary: Summary) -> str:
    """Draw the 95 % intervals of the means, and the trials that they come from."""
    listed = [one for one in summary.replicated if one.mean is not None and one.in_spec is not False]
    rows = listed[:MOST_ROWS]
    title = f"{summary.metric.name} of the assignments"
    told = f"Means of {len(rows)} assignments with their 95 % intervals, best first."
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=told)
    best = [("best", "winner")] if summary.winner is not None else []
    entries = [*best, ("level", "mean"), ("mean", "95 % interval"), ("trial", "trial")]
    top = head(root, title, entries) + 30
    frame = Frame(EDGE + NAMES, top, WIDTH - 2 * EDGE - NAMES, ROW * len(rows) + 12)
    part = svg.group(root)
    svg.box(part, "frame", (frame.left, frame.top, frame.width, frame.height), radius=4)
    across = number_axis(_ends(rows), frame.left, frame.right, ticks=5)
    for tick in across.ticks:
        x = across.at(tick)
        svg.line(part, "grid", (x, frame.top), (x, frame.bottom))
    labels(part, [(across.at(tick), tick) for tick in across.ticks], frame, frame.bottom + 24)
    varied = _varied(rows)
    for number, one in enumerate(rows):
        y = frame.top + 6 + ROW * (number + 0.5)
        _row(svg.group(root), one, across, y, is_best=number == 0 and summary.winner is not None)
        _name(root, one, varied, y)
    svg.text(root, direction(summary.metric.goal), (frame.right, frame.bottom + 52), anchor="end")
    return svg.close(root, notes(root, _remarks(rows, listed), frame.bottom + 52))


def _ends(rows: Sequence[Replicated]) -> list[float]:
    ends = [value for one in rows for value in one.values]
    for one in rows:
        ends += _interval(one)
    return ends


def _interval(one: Replicated) -> tuple[float, ...]:
    """Give both ends of an interval that can be drawn: of numbers as wide as floats it may be infinite."""
    if one.interval is None or not all(map(math.isfinite, (one.interval.low, one.interval.high))):
        return ()
    return one.interval.low, one.interval.high


def _row(part: Element, one: Replicated, across: Axis, y: float, *, is_best: bool) -> None:
    ends = [across.at(end) for end in _interval(one)]
    if ends:
        svg.line(part, "mean", (ends[0], y), (ends[1], y))
    for value in one.values:
        svg.dot(part, "trial", (across.at(value), y), radius=DOT)
    assert one.mean is not None
    mark(part, "best" if is_best else "level", (across.at(one.mean), y))


def _name(root: Element, one: Replicated, varied: Sequence[str], y: float) -> None:
    text = ", ".join(
        f"{name} {words.plain(one.assignment[name])}" for name in varied if name in one.assignment
    )
    for kind, size in (("wide", WIDE_SIZE), ("narrow", NARROW_SIZE)):
        svg.text(root, cut(text or one.trial.trial, NAMES - 12, size), (EDGE, y + 5), kind=kind)


def _varied(rows: Sequence[Replicated]) -> list[str]:
    """Name the parameters in which these differ; all are alike where there is one."""
    names = parameter_names(one.trial for one in rows)
    return [name for name in names if len({words.plain(one.assignment.get(name)) for one in rows}) > 1]


def _remarks(rows: Sequence[Replicated], listed: Sequence[Replicated]) -> Iterator[str]:
    if any(one.interval is None for one in rows):
        yield "An assignment with a single result has no interval."
    if len(rows) < len(listed):
        yield f"The best {len(rows)} of {len(listed)} assignments."
