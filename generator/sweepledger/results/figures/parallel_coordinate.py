"""`figures/parallel.svg`: every trial as a line through its values, down to its objective (parallel coordinates).

The axes are horizontal, one below the other, so that any number of names and values stays readable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element

from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results.figures import plot, svg
from sweepledger.results.figures.axis import Levels, levels, objective_axis
from sweepledger.results.figures.page import (
    EDGE,
    WIDTH,
    Frame,
    cut,
    cut_name,
    direction,
    labels,
    notes,
    open_figure,
)
from sweepledger.results.figures.svg import BOLD, NARROW_SIZE, WIDE_SIZE
from sweepledger.results.importance import Importance
from sweepledger.results.summary import Summary
from sweepledger.structs.values import canonical_json

MOST_AXES = 12
NAMES = 190
"""Width of the names at the left."""
STEP = 104
LABELS = 30
"""Height of the labels below an axis, where no line is drawn."""
BAND = 30.0
"""Width of the widest band into which lines through one value are spread."""
SHARE_OF_GAP = 0.6
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """An axis across the figure, and the position at which each drawn trial crosses it."""

    name: str
    asides: tuple[str, ...]
    y: float
    ticks: tuple[tuple[float, str | float], ...]
    crossings: tuple[float, ...]


def draw_parallel_coordinate(
    summary: Summary, importance: Importance, all_drawn: Sequence[plot.PlottedTrial]
) -> str:
    """Return the figure of the newest program's trials; the best are drawn last, so that no other hides them."""
    ranked = _ranked(summary, all_drawn)
    drawn = plot.thin_lines(ranked)
    names = {each.parameter for each in importance.parameters[:MOST_AXES]}
    # In the order of the spec, which the author chose; the slices are ordered by importance.
    listed = parameter_names(trial.outcome for trial in sorted(drawn, key=lambda trial: trial.place))
    ordered = [name for name in listed if name in names]
    best = [("chosen", "best")] if summary.winner is not None else []
    root, top = open_figure(
        summary.sweep,
        "parallel coordinates of all trials",
        description=f"{len(drawn)} trials as lines through {', '.join(ordered)} to {summary.metric.name}.",
        legend=[*best, *plot.LEGEND],
    )
    top += 40
    frame = Frame(EDGE + NAMES, top, WIDTH - 2 * EDGE - NAMES, STEP * len(ordered))
    towards = int(summary.metric.sort_key(1))
    rows = [_row(name, drawn, frame, top + number * STEP, towards) for number, name in enumerate(ordered)]
    rows.append(_objective(summary, importance, drawn, frame))
    _lines(root, summary, rows, drawn, ranked)
    for row in rows:
        _axis(root, row, frame)
    return svg.close(
        root, notes(root, _remarks(importance, drawn, ranked), frame.bottom + 22 + 23 * len(rows[-1].asides))
    )


def _ranked(summary: Summary, drawn: Sequence[plot.PlottedTrial]) -> list[plot.PlottedTrial]:
    best_first = summary.metric.sort_key
    current = [trial for trial in drawn if summary.is_current(trial.outcome)]
    return sorted(current, key=lambda trial: (best_first(trial.objective), trial.outcome.trial, trial.place))


def _remarks(
    importance: Importance, drawn: Sequence[plot.PlottedTrial], ranked: Sequence[plot.PlottedTrial]
) -> Iterator[str]:
    yield "Lines through the same value are spread by their results."
    yield from plot.thinning_notes(len(drawn), len(ranked))
    if len(importance.parameters) > MOST_AXES:
        yield f"The most important {MOST_AXES} of {len(importance.parameters)} parameters are drawn."
    if importance.scale.beyond:
        yield f"{importance.scale.beyond} trials beyond the last axis are drawn at its end."


def _row(name: str, drawn: Sequence[plot.PlottedTrial], frame: Frame, y: float, towards: int) -> ParallelAxis:
    values = {
        canonical_json(t.outcome.assignment[name]): t.outcome.assignment[name]
        for t in sorted(drawn, key=lambda trial: trial.place)
        if name in t.outcome.assignment
    }
    everywhere = all(name in trial.outcome.assignment for trial in drawn)
    left = frame.left + BAND / 2 + (0 if everywhere else 110)
    across = levels(list(values.values()), left, frame.right - BAND / 2)
    assignments = [trial.outcome.assignment for trial in drawn]
    keys = [canonical_json(each[name]) if name in each else "" for each in assignments]
    places = across.places if everywhere else {**across.places, "": frame.left + 46}
    absent = () if everywhere else ((places[""], ABSENT),)
    return ParallelAxis(
        name,
        ("log scale",) * across.log,
        y,
        (*absent, *across.ticks),
        tuple(_spread(keys, places, across, towards)),
    )


def _spread(keys: Sequence[str], places: dict[str, float], across: Levels, towards: int) -> Iterator[float]:
    """Yield positions side by side, by rank, for lines through the same value."""
    many = {key: keys.count(key) for key in set(keys)}
    seen = dict.fromkeys(many, 0)
    room = min(BAND, SHARE_OF_GAP * across.gap)
    for key in keys:
        step = min(3.0, room / many[key]) * towards
        yield round(places[key] + (seen[key] - (many[key] - 1) / 2) * step, 1)
        seen[key] += 1


def _objective(
    summary: Summary, importance: Importance, drawn: Sequence[plot.PlottedTrial], frame: Frame
) -> ParallelAxis:
    spread = importance.scale
    axis = objective_axis(spread, frame.left, frame.right)
    ticks = tuple((axis.at(tick), tick) for tick in axis.ticks)
    crossings = tuple(axis.at(spread.at(spread.part(trial.objective))) for trial in drawn)
    asides = (direction(summary.metric.goal), *("log scale",) * spread.log)
    return ParallelAxis(summary.metric.name, asides, frame.bottom, ticks, crossings)


def _lines(
    root: Element,
    summary: Summary,
    rows: Sequence[ParallelAxis],
    drawn: Sequence[plot.PlottedTrial],
    ranked: Sequence[plot.PlottedTrial],
) -> None:
    part = svg.group(root, plot.group_class(len(drawn)))
    best = plot.winners(summary)
    ranks = {trial.place: rank for rank, trial in enumerate(ranked)}
    for number in reversed(range(len(drawn))):
        trial = drawn[number]
        kind = "chosen" if trial.outcome.trial in best else plot.line_class(ranks[trial.place], len(ranked))
        svg.draw(part, kind, _curve([(row.crossings[number], row.y) for row in rows]))


def _curve(points: Sequence[svg.Point]) -> str:
    """Return a path that goes on below the labels of each axis, and bends between them."""
    steps = []
    for (x, up), (left, down) in pairwise(points):
        y = up + LABELS
        half = svg.pixels((y + down) / 2)
        steps.append(
            f"M{svg.pixels(x)} {svg.pixels(y)}"
            f"C{svg.pixels(x)} {half} {svg.pixels(left)} {half} {svg.pixels(left)} {svg.pixels(down)}"
        )
    return "".join(steps)


def _axis(root: Element, row: ParallelAxis, frame: Frame) -> None:
    part = svg.group(root)
    svg.line(part, "axis", (frame.left, row.y), (frame.right, row.y))
    for x, _ in row.ticks:
        svg.line(part, "axis", (x, row.y - 4), (x, row.y + 4))
    labels(part, row.ticks, frame, row.y + 23)
    for kind, size in (("wide", WIDE_SIZE), ("narrow", NARROW_SIZE)):
        svg.text(part, cut_name(row.name, (NAMES - 12) / BOLD, size), (EDGE, row.y + 5), kind=f"head {kind}")
        for number, aside in enumerate(row.asides):
            svg.text(part, cut(aside, NAMES - 12, size), (EDGE, row.y + 28 + number * 23), kind=kind)
