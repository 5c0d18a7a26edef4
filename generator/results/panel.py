"""A panel of the figure: its frame, its grid and labels, and the marks that are put on it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from generator.results import svg, words
from generator.results.axis import Axis, Levels, objective_axis
from generator.results.summary import Summary
from generator.structs.record import Outcome
from generator.structs.values import canonical_json

WIDTH = 860
EDGE = 28
GUTTER = 46
"""Left of a row of panels, for the objective's numbers."""
BETWEEN = 22
HEADER = 104
PANEL = 236
TOP = 26
PLOT = 160
"""A panel is its name, the plot, and the labels below it."""
MOST_TITLED = 400
"""Beyond it dots become one path: names that nobody will point at would make megabytes."""
SPREAD = 5.0
"""Between trials that share a value, in pixels."""
INSET = 15.0
"""Free at both ends of a parameter's axis, beside the axis's own margin."""
WIDEST_SPREAD = 42.0
SHARE_OF_GAP = 0.6
LONGEST_LABEL = 14
NAME_SIZE = 13
DOT = 4.2


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot area of a panel."""

    left: float
    top: float
    width: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.top + PLOT

    @classmethod
    def at(cls, row: int, column: int, columns: int) -> "Frame":
        """Place the frame of a panel in a row of so many."""
        width = (WIDTH - 2 * EDGE - GUTTER - (columns - 1) * BETWEEN) / columns
        return cls(EDGE + GUTTER + column * (width + BETWEEN), HEADER + row * PANEL + TOP, width)


@dataclass(frozen=True, slots=True)
class Scored:
    """A trial that may be drawn, its objective, and its place in the order of all."""

    outcome: Outcome
    objective: float
    place: int


Placed = tuple[float, Scored]
"""A trial and how far to the right it stands."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: the element it is drawn in, and the objective's axis."""

    summary: Summary
    part: Element
    frame: Frame
    axis: Axis

    @classmethod
    def open(cls, root: Element, summary: Summary, frame: Frame, scored: Sequence[Scored]) -> "Panel":
        """Draw an empty panel."""
        part = svg.group(root)
        svg.box(part, "frame", (frame.left, frame.top, frame.width, PLOT), radius=5)
        # The crosses of trials without a result stand at the bottom.
        axis = objective_axis([trial.objective for trial in scored], frame.bottom - 8, frame.top + 4)
        return cls(summary, part, frame, axis)

    def name(self, name: str, aside: str = "") -> None:
        """Write what the panel shows, and at the right what to know of it."""
        y = self.frame.top - 10
        room = int((self.frame.width - svg.text_width(aside) - 12) / svg.text_width("m", NAME_SIZE))
        svg.text(self.part, cut(name, room), (self.frame.left, y), kind="head")
        if aside:
            svg.text(self.part, aside, (self.frame.right, y), anchor="end")

    def grid(self, *, labelled: bool) -> None:
        """Draw a line at every tick of the objective, and its number at the left of a row of panels."""
        for tick in self.axis.ticks:
            y = self.axis.at(tick)
            svg.line(self.part, "grid", (self.frame.left, y), (self.frame.right, y))
            if labelled:
                svg.text(self.part, words.short(tick), (self.frame.left - 8, y + 4), anchor="end")

    def labels(self, ticks: Sequence[tuple[float, str | float]]) -> None:
        """Write what fits below the frame: a label that would meet the one before it is left out."""
        free = self.frame.left - BETWEEN / 2
        for x, value in sorted(ticks, key=lambda tick: tick[0]):
            label = cut(value if isinstance(value, str) else _number(value), LONGEST_LABEL)
            half = svg.text_width(label) / 2
            if x - half >= free and x + half <= self.frame.right + BETWEEN / 2:
                svg.text(self.part, label, (x, self.frame.bottom + 18), anchor="middle")
                free = x + half + 6

    def trials(self, placed: Sequence[Placed]) -> None:
        """Draw a dot for every trial, paler for those of an older program."""
        for kind, current in (("retired", False), ("trial", True)):
            chosen = [item for item in placed if self.summary.is_current(item[1].outcome) is current]
            if len(placed) > MOST_TITLED:
                spots = sorted({self._point(item) for item in chosen})
                svg.path(self.part, f"{kind}s", [(command, *spot) for spot in spots for command in "ML"])
                continue
            for item in chosen:
                mark(self.part, kind, self._point(item), self._story(item[1]))

    def winner(self, placed: Sequence[Placed]) -> None:
        """Mark the winner, where it is among these."""
        for item in placed:
            if item[1].outcome is self.summary.winner:
                mark(self.part, "best", self._point(item), self._story(item[1]))

    def _point(self, placed: Placed) -> svg.Point:
        return placed[0], self.axis.at(placed[1].objective)

    def _story(self, trial: Scored) -> str:
        values = ", ".join(f"{name} {words.plain(value)}" for name, value in trial.outcome.assignment.items())
        return (
            f"{trial.outcome.trial}: {self.summary.metric.name} {words.short(trial.objective)} with {values}"
        )


def spread(scored: Sequence[Scored], parameter: str, across: Levels) -> list[Placed]:
    """Place trials side by side where they share a value, in their order, inside the value's own room."""
    here = [trial for trial in scored if parameter in trial.outcome.assignment]
    keys = [canonical_json(trial.outcome.assignment[parameter]) for trial in here]
    many, seen = Counter(keys), Counter[str]()
    room = min(WIDEST_SPREAD, SHARE_OF_GAP * across.gap)
    placed = []
    for key, trial in zip(keys, here, strict=True):
        step = min(SPREAD, room / many[key])
        placed.append((round(across.places[key] + (seen[key] - (many[key] - 1) / 2) * step, 1), trial))
        seen[key] += 1
    return placed


def _number(value: float) -> str:
    return min(words.plain(value), words.short(value), key=len)


def cut(text: str, length: int) -> str:
    """Shorten a line to at most so many characters, and say so."""
    line = words.one_line(text)
    return line if len(line) <= length else line[: max(length - 1, 1)] + "…"


def mark(parent: Element, kind: str, at: svg.Point, title: str = "") -> None:
    """Draw one of the marks that the legend explains."""
    x, y = at
    match kind:
        case "cross":
            steps = [("M", x - 3, y - 3), ("L", x + 3, y + 3), ("M", x - 3, y + 3), ("L", x + 3, y - 3)]
            svg.path(parent, kind, steps)
        case "best":
            svg.dot(parent, "best", at, radius=DOT, title=title)
            svg.dot(parent, "ring", at, radius=DOT + 3)
        case "level":
            svg.dot(parent, "level", at, radius=DOT - 0.8)
        case _:
            svg.dot(parent, kind, at, radius=DOT, title=title)
