"""A figure as a page: title, legend, notes, and labels that never meet at either size of letters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.etree.ElementTree import Element

from generator.results import words
from generator.results.figures import svg
from generator.results.figures.style import BOLD, NARROW_SIZE, TITLE, WIDE_SIZE
from generator.structs.sweep import Goal

WIDTH = 720
"""What hosts give a README's column, about: there a figure is shown at its own size."""
EDGE = 16
LINE = 27
"""Between two lines of text."""
DOT = 4.2
LABEL_GAP = 8
SHORTEST_CUT = 4
SWATCH = 9
FRONT = 0.4
"""Of a shortened name's room."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of a figure in which marks stand."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.top + self.height


def head(root: Element, title: str, entries: Sequence[tuple[str, str]]) -> float:
    """Write the title and explain the marks; tell how far down they reach."""
    room = (WIDTH - 2 * EDGE) / TITLE / BOLD
    for kind, size in (("title wide", WIDE_SIZE), ("title narrow", NARROW_SIZE)):
        svg.text(root, cut(title, room, size), (EDGE, 34), kind=kind)
    return max(_legend(root, entries, *kind) for kind in (("wide", WIDE_SIZE), ("narrow", NARROW_SIZE)))


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


def notes(root: Element, sentences: Iterable[str], top: float) -> float:
    """Write what to know of the figure below it; tell how far down it reaches."""
    room = int((WIDTH - 2 * EDGE) / svg.text_width("n"))
    y = top
    for line in (line for sentence in sentences for line in wrap(words.one_line(sentence), room)):
        y += LINE
        svg.text(root, line, (EDGE, y))
    return y + EDGE


def labels(
    parent: Element, ticks: Sequence[tuple[float, str | float]], frame: Frame, y: float, kind: str = ""
) -> None:
    """Write what fits below a frame, for wide pages and for narrow ones: no label meets another."""
    wide, narrow = (list(fitting(ticks, frame, size)) for size in (WIDE_SIZE, NARROW_SIZE))
    for chosen, others, name in ((wide, narrow, "wide"), (narrow, wide, "narrow")):
        for place in chosen:
            if place in others and name == "narrow":
                continue
            shown = kind if place in others else f"{kind} {name}".strip()
            svg.text(parent, place[1], (place[0], y), kind=shown, anchor="middle")


def fitting(
    ticks: Sequence[tuple[float, str | float]], frame: Frame, size: float
) -> Iterator[tuple[float, str]]:
    """Choose the labels that stand free: text is cut to its room, a number is whole or left out."""
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
            label = shown(value)
        half = svg.text_width(label, size) / 2
        if x - half >= free and x + half <= frame.right + LABEL_GAP:
            yield x, label
            free = x + half + LABEL_GAP


def shown(number: float) -> str:
    """Write a number of an axis, as short as it can be."""
    text = min(words.plain(number), words.short(number), key=len)
    return text.replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def cut(text: str, room: float, size: float = NARROW_SIZE) -> str:
    """Shorten a line to the pixels there are for it, and say so."""
    line = words.one_line(text)
    if svg.text_width(line, size) <= room:
        return line
    room -= svg.text_width("…", size)
    while line and svg.text_width(line, size) > room:
        line = line[:-1]
    return f"{line.rstrip()}…" if line else ""


def cut_name(name: str, room: float, size: float = NARROW_SIZE) -> str:
    """Shorten a name in its middle: names of one sweep often begin alike."""
    line = words.one_line(name)
    if svg.text_width(line, size) <= room:
        return line
    start = cut(line, room * FRONT, size).rstrip("…")
    rest = room - svg.text_width(f"{start}…", size)
    end = cut(line[::-1], rest + svg.text_width("…", size), size).rstrip("…")[::-1]
    return f"{start}…{end}"


def direction(goal: Goal) -> str:
    """Say which end of the objective's axis is good."""
    return "higher is better" if goal is Goal.MAXIMIZE else "lower is better"


def mark(parent: Element, kind: str, at: svg.Point, title: str = "") -> None:
    """Draw one of the marks that a legend explains."""
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
