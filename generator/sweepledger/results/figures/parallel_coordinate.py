"""`figures/parallel.svg`: every trial as a line through its values, down to its objective.

The axes lie flat, one below the other: names and values are read as they are written, however many there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from generator.formats.summary import parameter_names
from generator.results.figures import svg
from generator.results.figures.axis import Levels, levels, objective_axis
from generator.results.figures.page import EDGE, WIDTH, Frame, cut, cut_name, direction, head, labels, notes
from generator.results.figures.plot import Scored, winners
from generator.results.figures.style import BOLD, CLASSES, NARROW_SIZE, WIDE_SIZE
from generator.results.importance import Importance
from generator.results.summary import Summary
from generator.structs.sweep import Goal
from generator.structs.values import Value, canonical_json

MOST_AXES = 12
MOST_LINES = 160
MOST_BOLD = 60
BEST_LINES = 20
NAMES = 190
"""Room for the names at the left."""
STEP = 86
BAND = 30.0
"""Widest band into which lines through one value are spread."""
SHARE_OF_GAP = 0.6
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Row:
    """An axis across the figure, and where each drawn trial crosses it."""

    name: str
    asides: tuple[str, ...]
    y: float
    ticks: tuple[tuple[float, str | float], ...]
    crossings: tuple[float, ...]


def parallel(summary: Summary, importance: Importance, all_drawn: Sequence[Scored]) -> str:
    """Draw the trials of the newest program as lines, the better the later, so that none hides the best."""
    ranked = _ranked(summary, all_drawn)
    drawn = _thinned(ranked)
    names = {share.parameter for share in importance.shares[:MOST_AXES]}
    # In the order of the spec, which the author chose: by importance are the slices.
    found = parameter_names(trial.outcome for trial in sorted(drawn, key=lambda trial: trial.place))
    ordered = [name for name in found if name in names]
    title = "every trial through its values"
    told = f"{len(drawn)} trials as lines through {', '.join(ordered)} to {summary.metric.name}."
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=told)
    entries = [
        (f"c{number}", name)
        for number, name in ((CLASSES - 1, "best fifth"), (2, "middle"), (0, "worst fifth"))
    ]
    best = [("chosen", "best")] if summary.winner is not None else []
    top = head(root, title, [*best, *entries]) + 40
    frame = Frame(EDGE + NAMES, top, WIDTH - 2 * EDGE - NAMES, STEP * len(ordered))
    towards = -1 if summary.metric.goal is Goal.MAXIMIZE else 1
    rows = [_row(name, drawn, frame, top + number * STEP, towards) for number, name in enumerate(ordered)]
    rows.append(_objective(summary, importance, drawn, frame))
    _lines(root, summary, rows, drawn, ranked)
    for row in rows:
        _axis(root, row, frame)
    return svg.close(
        root, notes(root, _remarks(importance, drawn, ranked), frame.bottom + 22 + 23 * len(rows[-1].asides))
    )


def _ranked(summary: Summary, drawn: Sequence[Scored]) -> list[Scored]:
    sign = -1 if summary.metric.goal is Goal.MAXIMIZE else 1
    current = [trial for trial in drawn if summary.is_current(trial.outcome)]
    return sorted(current, key=lambda trial: (sign * trial.objective, trial.outcome.trial, trial.place))


def _thinned(ranked: Sequence[Scored]) -> list[Scored]:
    """Keep the best, and of the others every n-th by rank: what is kept has the spread of all."""
    if len(ranked) <= MOST_LINES:
        return list(ranked)
    rest = ranked[BEST_LINES:]
    return [*ranked[:BEST_LINES], *rest[_stride(ranked) - 1 :: _stride(ranked)]]


def _stride(ranked: Sequence[Scored]) -> int:
    return -(-(len(ranked) - BEST_LINES) // (MOST_LINES - BEST_LINES))


def _remarks(importance: Importance, drawn: Sequence[Scored], ranked: Sequence[Scored]) -> Iterator[str]:
    yield "Lines through one value are spread by their results."
    if len(drawn) < len(ranked):
        yield f"{len(drawn)} of {len(ranked)} trials are drawn: the best {BEST_LINES},"
        yield f"and by rank one in {_stride(ranked)} of the others."
    if len(importance.shares) > MOST_AXES:
        yield f"{MOST_AXES} of {len(importance.shares)} parameters: those that moved it most."
    if importance.spread.beyond:
        yield f"{importance.spread.beyond} trials worse than the last axis end at its end."


def _row(name: str, drawn: Sequence[Scored], frame: Frame, y: float, towards: int) -> Row:
    values = {
        canonical_json(t.outcome.assignment[name]): t.outcome.assignment[name]
        for t in sorted(drawn, key=lambda trial: trial.place)
        if name in t.outcome.assignment
    }
    everywhere = all(name in trial.outcome.assignment for trial in drawn)
    left = frame.left + BAND / 2 + (0 if everywhere else 110)
    across = levels(list(values.values()), left, frame.right - BAND / 2)
    keys = [_key(trial, name) for trial in drawn]
    places = across.places if everywhere else {**across.places, "": frame.left + 46}
    absent = () if everywhere else ((places[""], ABSENT),)
    return Row(
        name,
        ("log scale",) * across.log,
        y,
        (*absent, *across.ticks),
        tuple(_spread(keys, places, across, towards)),
    )


def _key(trial: Scored, name: str) -> str:
    values: dict[str, Value] = dict(trial.outcome.assignment)
    return canonical_json(values[name]) if name in values else ""


def _spread(keys: Sequence[str], places: dict[str, float], across: Levels, towards: int) -> Iterator[float]:
    """Place lines that share a value side by side by rank, as their objectives lie on the last axis."""
    many = {key: keys.count(key) for key in set(keys)}
    seen = dict.fromkeys(many, 0)
    room = min(BAND, SHARE_OF_GAP * across.gap)
    for key in keys:
        step = min(3.0, room / many[key]) * towards
        yield round(places[key] + (seen[key] - (many[key] - 1) / 2) * step, 1)
        seen[key] += 1


def _objective(summary: Summary, importance: Importance, drawn: Sequence[Scored], frame: Frame) -> Row:
    spread = importance.spread
    axis = objective_axis(spread, frame.left, frame.right)
    ticks = tuple((axis.at(tick), tick) for tick in axis.ticks)
    crossings = tuple(axis.at(spread.at(spread.part(trial.objective))) for trial in drawn)
    asides = (direction(summary.metric.goal), *("log scale",) * spread.log)
    return Row(summary.metric.name, asides, frame.bottom, ticks, crossings)


def _lines(
    root: Element, summary: Summary, rows: Sequence[Row], drawn: Sequence[Scored], ranked: Sequence[Scored]
) -> None:
    part = svg.group(root, "fine" if len(drawn) > MOST_BOLD else "")
    best = winners(summary)
    ranks = {trial.place: rank for rank, trial in enumerate(ranked)}
    for number in reversed(range(len(drawn))):
        trial = drawn[number]
        # By rank among all, drawn or not; a fifth each.
        fifth = CLASSES - 1 - ranks[trial.place] * CLASSES // len(ranked)
        kind = "chosen" if trial.outcome.trial in best else f"line c{fifth}"
        svg.draw(part, kind, _curve([(row.crossings[number], row.y) for row in rows]))


def _curve(points: Sequence[svg.Point]) -> str:
    """Go straight through every axis and bend between them."""
    x, y = points[0]
    steps = [f"M{svg.pixels(x)} {svg.pixels(y)}"]
    for left, down in points[1:]:
        half = svg.pixels((y + down) / 2)
        steps.append(
            f"C{svg.pixels(x)} {half} {svg.pixels(left)} {half} {svg.pixels(left)} {svg.pixels(down)}"
        )
        x, y = left, down
    return "".join(steps)


def _axis(root: Element, row: Row, frame: Frame) -> None:
    part = svg.group(root)
    svg.line(part, "axis", (frame.left, row.y), (frame.right, row.y))
    for x, _ in row.ticks:
        svg.line(part, "axis", (x, row.y - 4), (x, row.y + 4))
    labels(part, row.ticks, frame, row.y + 23, kind="halo")
    for kind, size in (("wide", WIDE_SIZE), ("narrow", NARROW_SIZE)):
        svg.text(part, cut_name(row.name, (NAMES - 12) / BOLD, size), (EDGE, row.y + 5), kind=f"head {kind}")
        for number, aside in enumerate(row.asides):
            svg.text(part, cut(aside, NAMES - 12, size), (EDGE, row.y + 28 + number * 23), kind=kind)
