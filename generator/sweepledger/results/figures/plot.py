"""Trials in a frame, by their objective: dots while they can be told apart, else tiles that count them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from generator.results import words
from generator.results.figures import svg
from generator.results.figures.axis import Axis, objective_axis
from generator.results.figures.page import EDGE, Frame, mark, shown
from generator.results.figures.style import CLASSES
from generator.results.spread import Spread
from generator.results.summary import Summary
from generator.structs.record import Outcome
from generator.structs.sweep import Goal

MOST_DOTS = 400
"""Beyond it they would hide each other, and their names, which nobody points at, make megabytes."""
TILE = 6
CROSS = 8.0
"""Crosses closer than this are one."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A trial that may be drawn, its objective, and its place in the order of all."""

    outcome: Outcome
    objective: float
    place: int
    ranked: bool
    """Whether it may win."""


Placed = tuple[float, Scored]
"""A trial and how far to the right it stands."""


def scored(summary: Summary) -> list[Scored]:
    """List the trials that ended ok, of all programs, in the order of the tables."""
    return [
        Scored(outcome, objective, place, summary.may_win(outcome))
        for place, outcome in enumerate(summary.outcomes, start=1)
        if (objective := outcome.metric(summary.metric.name)) is not None
    ]


def gutter(spread: Spread, height: float) -> float:
    """Tell how much room the objective's numbers need at the left."""
    ticks = objective_axis(spread, height, 0).ticks
    return EDGE + 10 + max((svg.text_width(shown(tick)) for tick in ticks), default=0.0)


@dataclass(frozen=True, slots=True)
class Marks:
    """What of a plot's trials is to be drawn, and how."""

    dots: list[Placed] = field(default_factory=list)
    cells: dict[bool, Counter[tuple[int, int]]] = field(
        default_factory=lambda: {False: Counter(), True: Counter()}
    )
    """Trials in each tile, by column and row; apart those that may win."""
    beyond: list[float] = field(default_factory=list)
    best: list[Placed] = field(default_factory=list)

    @property
    def densest(self) -> int:
        """Count the trials in the fullest tile."""
        return max((count for cells in self.cells.values() for count in cells.values()), default=0)


@dataclass(frozen=True, slots=True)
class Plot:
    """A frame, the element it is drawn in, and the objective's axis."""

    summary: Summary
    part: Element
    frame: Frame
    spread: Spread
    axis: Axis

    @classmethod
    def open(cls, root: Element, summary: Summary, spread: Spread, frame: Frame) -> "Plot":
        """Draw an empty frame."""
        part = svg.group(root)
        svg.box(part, "frame", (frame.left, frame.top, frame.width, frame.height), radius=4)
        # The crosses of trials without a result stand at the bottom, those beyond the axis at its bad end.
        axis = objective_axis(spread, frame.bottom - 14, frame.top + 10, ticks=max(3, int(frame.height / 45)))
        return cls(summary, part, frame, spread, axis)

    def grid(self, *, labelled: bool) -> None:
        """Draw a line at every tick of the objective, and its number at the left."""
        for tick in self.axis.ticks:
            y = self.axis.at(tick)
            svg.line(self.part, "grid", (self.frame.left, y), (self.frame.right, y))
            if labelled:
                svg.text(self.part, shown(tick), (self.frame.left - 8, y + 5), anchor="end")

    def marks(self, placed: Iterable[Placed], *, tiled: bool) -> Marks:
        """Sort out what is to be drawn of these trials; of tiles, all that is kept of most is a number."""
        best = winners(self.summary)
        found = Marks()
        for item in placed:
            x, trial = item
            if not self.spread.holds(trial.objective):
                found.beyond.append(x)
            elif tiled:
                row = int(self.axis.at(trial.objective) - self.frame.top) // TILE
                found.cells[trial.ranked][int(x - self.frame.left) // TILE, row] += 1
            else:
                found.dots.append(item)
            if trial.ranked and trial.outcome.trial in best:
                found.best.append(item)
        return found

    def trials(self, marks: Marks, steps: Sequence[int]) -> None:
        """Draw these, grey what may not win; tiles get fuller in colour at steps."""
        for kind, ranked in (("retired", False), ("trial", True)):
            for item in marks.dots:
                if item[1].ranked is ranked:
                    mark(self.part, kind, self._point(item), self._story(item[1]))
        for kind, ranked in (("old", False), ("tile", True)):
            self._tiles(kind, marks.cells[ranked], steps)
        goal = self.summary.metric.goal
        y = self.frame.top + 6 if goal is Goal.MINIMIZE else self.frame.bottom - 6
        for x in apart(marks.beyond):
            mark(self.part, beyond(goal), (x, y))

    def crosses(self, places: Iterable[float]) -> None:
        """Mark at the bottom where trials without a result stand."""
        for x in apart(places):
            mark(self.part, "cross", (x, self.frame.bottom - 7))

    def winner(self, marks: Marks) -> None:
        """Mark the winner, where it is among these: with replicates all trials of its assignment."""
        for item in marks.best:
            mark(self.part, "best", self._point(item), self._story(item[1]))

    def _tiles(self, kind: str, cells: Counter[tuple[int, int]], steps: Sequence[int]) -> None:
        for darkness in range(CLASSES):
            drawn = (
                f"M{svg.pixels(self.frame.left + column * TILE)} {svg.pixels(self.frame.top + row * TILE)}"
                f"h{TILE}v{TILE}h-{TILE}z"
                for (column, row), count in sorted(cells.items())
                if sum(count >= step for step in steps) == darkness + 1
            )
            svg.draw(self.part, f"{kind} d{darkness}", "".join(drawn))

    def _point(self, placed: Placed) -> svg.Point:
        return placed[0], self.axis.at(placed[1].objective)

    def _story(self, trial: Scored) -> str:
        values = ", ".join(f"{name} {words.plain(value)}" for name, value in trial.outcome.assignment.items())
        metric = self.summary.metric.name
        return f"{trial.outcome.trial}: {metric} {words.short(trial.objective)} with {values}"


def beyond(goal: Goal) -> str:
    """Name the mark of trials that are worse than the axis reaches."""
    return "beyond up" if goal is Goal.MINIMIZE else "beyond down"


def darkening(densest: int) -> tuple[int, ...]:
    """Choose the numbers of trials at which a tile gets fuller in colour."""
    factor = next(factor for factor in range(2, densest + 3) if factor ** (CLASSES - 1) * 2 >= densest)
    return tuple(factor**power for power in range(CLASSES))


def apart(places: Iterable[float]) -> Iterator[float]:
    """Leave out places that are too near to the one before."""
    last = float("-inf")
    for x in sorted(places):
        if x - last >= CROSS:
            yield x
            last = x


def winners(summary: Summary) -> frozenset[str]:
    """Give the ids of the trials that won."""
    if summary.winner is None:
        return frozenset()
    return (
        frozenset(one.trial for one in summary.replicated[0].trials)
        if summary.replicated
        else frozenset({summary.winner.trial})
    )


def legend(
    summary: Summary, drawn: Sequence[Scored], spread: Spread, *, tiled: bool, lost: bool
) -> Iterator[tuple[str, str]]:
    """Explain the marks that are there."""
    ranked = sum(trial.ranked for trial in drawn)
    if ranked:
        yield ("tile", "few to many trials") if tiled else ("trial", "trial")
    if len(drawn) > ranked:
        yield ("old" if tiled else "retired", "not ranked")
    if summary.winner is not None:
        yield "best", "best"
    if spread.beyond:
        yield beyond(summary.metric.goal), "worse than the axis"
    if lost:
        yield "cross", "not ok"


def remarks(summary: Summary, drawn: Sequence[Scored], spread: Spread, steps: Sequence[int]) -> Iterator[str]:
    """Say by which rules trials were drawn, where not each is a dot at its place."""
    if spread.beyond:
        count = sum(not spread.holds(trial.objective) for trial in drawn)
        yield f"Worse than the axis: {count} of {len(drawn)}, the worst {words.short(spread.worst)}."
    if steps:
        told = ", ".join(map(str, steps))
        yield f"{len(drawn)} trials, counted in tiles of {TILE} by {TILE} pixels."
        yield f"Tiles get fuller at {told} trials."
    if any(not summary.is_current(trial.outcome) for trial in drawn):
        yield "Trials of an older program are not ranked."
    if any(trial.outcome.in_spec is False for trial in drawn):
        yield "What the spec asks for no more is not ranked."
