"""A figure as a page: title, legend, notes, and labels that do not overlap at either font size."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.etree.ElementTree import Element

from sweepledger.results import display
from sweepledger.results.figures import svg
from sweepledger.results.figures.svg import BOLD, NARROW_SIZE, TITLE, WIDE_SIZE
from sweepledger.structs.metric import Goal, Metric

WIDTH = 720
"""About the width of a README's column on code hosts, where a figure has its own size."""
EDGE = 16
LINE = 27
"""Distance between two lines of text."""
DOT = 4.2
LABEL_GAP = 8
SHORTEST_CUT = 4
SWATCH = 9
SIZES = (("wide", WIDE_SIZE), ("narrow", NARROW_SIZE))
"""Kinds of text, of which a page shows one by its width, and their sizes."""
FRONT = 0.4
"""Share of a shortened name's width that its start gets."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of a figure that contains marks."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """X of its right side."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Y of its lower side."""
        return self.top + self.height


def open_figure(
    sweep: str, title: str, *, description: str, legend: Sequence[tuple[str, str]]
) -> tuple[Element, float]:
    """Return a new figure with its title and the legend of its marks, and the height of both."""
    root = svg.canvas(WIDTH, title=f"{sweep}: {title}", description=description)
    room = (WIDTH - 2 * EDGE) / TITLE / BOLD
    for kind, size in SIZES:
        svg.text(root, cut(title, room, size), (EDGE, 34), kind=f"title {kind}")
    return root, max(_legend(root, legend, *kind) for kind in SIZES)


def metric_label(metric: Metric, *, log: bool = False, prefix: str = "") -> str:
    """Return the label of a metric's axis: name, good direction and scale."""
    suffix = f" ({direction(metric.goal)}{', log scale' if log else ''})"
    room = WIDTH - 2 * EDGE - svg.text_width(prefix + suffix)
    return prefix + cut_name(metric.name, room) + suffix


def _legend(root: Element, entries: Sequence[tuple[str, str]], kind: str, size: float) -> float:
    part = svg.group(root, kind)
    x, y = float(EDGE + SWATCH), 64.0
    for name, meaning in entries:
        needed = 1.2 * size + svg.text_width(meaning, size)
        if x > EDGE + SWATCH and x + needed > WIDTH - EDGE:
            x, y = float(EDGE + SWATCH), y + LINE
        mark(part, name, (x, y - size * 0.35))
        svg.text(part, meaning, (x + 16, y))
        x += needed + 20
    return y + 8


def close_figure(root: Element, sentences: Iterable[str], top: float) -> str:
    """Write notes below a figure, and return the text of its file."""
    room = int((WIDTH - 2 * EDGE) / svg.text_width("n"))
    y = top
    for line in (line for sentence in sentences for line in wrap(display.one_line(sentence), room)):
        y += LINE
        svg.text(root, line, (EDGE, y))
    return svg.close(root, y + EDGE)


def labels(parent: Element, ticks: Sequence[tuple[float, str | float]], frame: Frame, y: float) -> None:
    """Write the labels that fit below a frame, for wide and for narrow pages: no label overlaps another."""
    wide, narrow = (list(fitting(ticks, frame, size)) for size in (WIDE_SIZE, NARROW_SIZE))
    for place in dict.fromkeys((*wide, *narrow)):
        kind = "narrow" if place not in wide else "" if place in narrow else "wide"
        svg.text(parent, place[1], (place[0], y), kind=kind, anchor="middle")


def fitting(
    ticks: Sequence[tuple[float, str | float]], frame: Frame, size: float
) -> Iterator[tuple[float, str]]:
    """Yield the labels that do not overlap: text is cut to the free width, a number is complete or omitted."""
    ordered = sorted(ticks, key=lambda tick: tick[0])
    free = frame.left - LABEL_GAP
    for number, (x, value) in enumerate(ordered):
        if isinstance(value, str):
            after = ordered[number + 1][0] if number + 1 < len(ordered) else 2 * frame.right - x
            before = ordered[number - 1][0] if number else 2 * frame.left - x
            label = cut(value, min(after - x, x - before) - LABEL_GAP, size)
            if len(label) < min(SHORTEST_CUT, len(value)):
                continue
        else:
            label = tick_label(value)
        half = svg.text_width(label, size) / 2
        if x - half >= free and x + half <= frame.right + LABEL_GAP:
            yield x, label
            free = x + half + LABEL_GAP


def tick_label(number: float) -> str:
    """Return a number of an axis in its shortest form."""
    text = min(display.format_value(number), display.format_number(number), key=len)
    return text.replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def cut(text: str, room: float, size: float = NARROW_SIZE) -> str:
    """Return a line shortened to a width in pixels, with an ellipsis."""
    line = display.one_line(text)
    if svg.text_width(line, size) <= room:
        return line
    room -= svg.text_width("…", size)
    while line and svg.text_width(line, size) > room:
        line = line[:-1]
    return f"{line.rstrip()}…" if line else ""


def cut_name(name: str, room: float, size: float = NARROW_SIZE) -> str:
    """Return a name shortened in its middle, because names of one sweep often have the same beginning."""
    line = display.one_line(name)
    if svg.text_width(line, size) <= room:
        return line
    start = cut(line, room * FRONT, size).rstrip("…")
    rest = room - svg.text_width(f"{start}…", size)
    end = cut(line[::-1], rest + svg.text_width("…", size), size).rstrip("…")[::-1]
    return f"{start}…{end}"


def direction(goal: Goal) -> str:
    """Return the good end of a metric's axis as text."""
    return "higher is better" if goal is Goal.MAXIMIZE else "lower is better"


def mark(parent: Element, kind: str, at: svg.Point, title: str = "") -> None:
    """Draw one of the marks of a legend."""
    x, y = at
    match kind:
        case "cross":
            steps = [("M", x - 3, y - 3), ("L", x + 3, y + 3), ("M", x - 3, y + 3), ("L", x + 3, y - 3)]
            svg.path(parent, kind, steps)
        case "beyond up":
            svg.path(parent, "beyond", [("M", x - 4, y + 4), ("L", x + 4, y + 4), ("L", x, y - 4)])
        case "beyond down":
            svg.path(parent, "beyond", [("M", x - 4, y - 4), ("L", x + 4, y - 4), ("L", x, y + 4)])
        case "best":
            svg.dot(parent, "best", at, radius=DOT, title=title)
            svg.dot(parent, "ring", at, radius=DOT + 3)
        case "level":
            svg.dot(parent, "level", at, radius=DOT - 0.8)
        case "record" | "chosen" | "mean":
            svg.line(parent, kind, (x - SWATCH, y), (x + SWATCH, y))
        case "tile" | "old":
            svg.box(parent, f"{kind} d4", (x - 5, y - 5, 5, 10))
            svg.box(parent, f"{kind} d1", (x, y - 5, 5, 10))
        case _ if kind.startswith("c"):
            svg.line(parent, f"swatch {kind}", (x - SWATCH, y), (x + SWATCH, y))
        case _:
            svg.dot(parent, kind, at, radius=DOT, title=title)
