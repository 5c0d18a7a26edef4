"""Trials in a frame, by their objective: dots while they can be distinguished, else tiles that count them; or lines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from sweepledger.results import display
from sweepledger.results.figures import svg
from sweepledger.results.figures.axis import Axis, number_axis, objective_axis
from sweepledger.results.figures.layout import (
    EDGE,
    WIDTH,
    Frame,
    close_figure,
    labels,
    mark,
    metric_label,
    tick_label,
)
from sweepledger.results.figures.svg import CLASSES
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import TrialResult

MOST_DOTS = 400
"""More dots would hide each other, and their names would take megabytes."""
HEIGHT = 290
LABEL = 26
"""Height of the label above a frame."""
TILE = 6
CROSS = 8.0
"""Crosses closer than this are drawn as one."""


@dataclass(frozen=True, slots=True)
class PlottedTrial:
    """A trial to draw, its objective, and its number in the order of all trials."""

    outcome: TrialResult
    objective: float
    place: int
    ranked: bool
    """Whether it is eligible."""


Placed = tuple[float, PlottedTrial]
"""A trial and its x."""


def plotted_trials(summary: Summary) -> list[PlottedTrial]:
    """List the trials that ended ok, of all programs, in the order of the tables."""
    return [
        PlottedTrial(outcome, objective, place, summary.is_eligible(outcome))
        for place, outcome in enumerate(summary.outcomes, start=1)
        if (objective := outcome.metric(summary.metric.name)) is not None
    ]


def gutter(spread: ObjectiveScale, height: float) -> float:
    """Return the width that the objective's numbers need at the left."""
    ticks = objective_axis(spread, height, 0).ticks
    return EDGE + 10 + max((svg.text_width(tick_label(tick)) for tick in ticks), default=0.0)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a plot's trials."""

    dots: list[Placed] = field(default_factory=list)
    cells: dict[bool, Counter[tuple[int, int]]] = field(
        default_factory=lambda: {False: Counter(), True: Counter()}
    )
    """Number of trials in each tile, by column and row, for eligible trials (True) and others."""
    beyond: list[float] = field(default_factory=list)
    best: list[Placed] = field(default_factory=list)

    @property
    def densest(self) -> int:
        """Number of trials in the fullest tile."""
        return max((count for cells in self.cells.values() for count in cells.values()), default=0)


@dataclass(frozen=True, slots=True)
class Plot:
    """A frame, the element it is drawn in, and the objective's axis."""

    summary: Summary
    part: Element
    frame: Frame
    spread: ObjectiveScale
    axis: Axis

    @classmethod
    def open(cls, root: Element, summary: Summary, spread: ObjectiveScale, frame: Frame) -> "Plot":
        """Draw an empty frame with the scale of the objective."""
        part = svg.group(root)
        svg.box(part, "frame", (frame.left, frame.top, frame.width, frame.height), radius=4)
        # The crosses of trials without a result are at the bottom, outliers at the bad end of the axis.
        axis = objective_axis(spread, frame.bottom - 14, frame.top + 10, ticks=max(3, int(frame.height / 45)))
        return cls(summary, part, frame, spread, axis)

    @classmethod
    def across_page(
        cls,
        root: Element,
        summary: Summary,
        spread: ObjectiveScale,
        metric: Metric,
        *,
        top: float,
        height: float = HEIGHT,
    ) -> "Plot":
        """Draw an empty frame over the whole width of a figure, below the label of its axis."""
        left = EDGE if spread.is_empty else gutter(spread, height)
        svg.text(root, metric_label(metric, log=spread.log), (EDGE, top + LABEL))
        return cls.open(root, summary, spread, Frame(left, top + LABEL + 12, WIDTH - EDGE - left, height))

    def grid(self, *, labelled: bool) -> None:
        """Draw a line at every tick of the objective, and its number at the left."""
        for tick in self.axis.ticks:
            y = self.axis.at(tick)
            svg.line(self.part, "grid", (self.frame.left, y), (self.frame.right, y))
            if labelled:
                svg.text(self.part, tick_label(tick), (self.frame.left - 8, y + 5), anchor="end")

    def numbers(self, values: Sequence[float]) -> Axis:
        """Draw an axis that contains some numbers below the frame, and return it."""
        frame, across = self.frame, number_axis(values, self.frame.left, self.frame.right)
        labels(self.part, [(across.at(tick), tick) for tick in across.ticks], frame, frame.bottom + 24)
        return across

    def close(self, root: Element, caption: str, sentences: Iterable[str]) -> str:
        """Write the label of the horizontal axis and notes below the frame; return the text of the file."""
        below = self.frame.bottom + 52
        svg.text(root, caption, (self.frame.left + self.frame.width / 2, below), anchor="middle")
        return close_figure(root, sentences, below)

    def height(self, value: float) -> float:
        """Return the position of a value of the objective; values outside the scale are at its end."""
        return self.axis.at(min(max(value, self.spread.low), self.spread.high))

    def marks(self, placed: Iterable[Placed], *, tiled: bool) -> Marks:
        """Return the marks of these trials. With tiles, most trials are only counted."""
        best = winners(self.summary)
        marks = Marks()
        for item in placed:
            x, trial = item
            if not self.spread.holds(trial.objective):
                marks.beyond.append(x)
            elif tiled:
                row = int(self.axis.at(trial.objective) - self.frame.top) // TILE
                marks.cells[trial.ranked][int(x - self.frame.left) // TILE, row] += 1
            else:
                marks.dots.append(item)
            if trial.ranked and trial.outcome.trial in best:
                marks.best.append(item)
        return marks

    def trials(self, marks: Marks, steps: Sequence[int]) -> None:
        """Draw marks, in grey for trials that are not eligible; tiles get darker at `steps` of trials."""
        for kind, ranked in (("retired", False), ("trial", True)):
            for item in marks.dots:
                if item[1].ranked is ranked:
                    mark(self.part, kind, self._point(item), self._story(item[1]))
        for kind, ranked in (("old", False), ("tile", True)):
            for darkness in range(CLASSES):
                drawn = (
                    f"M{svg.pixels(self.frame.left + column * TILE)} {svg.pixels(self.frame.top + row * TILE)}"
                    f"h{TILE}v{TILE}h-{TILE}z"
                    for (column, row), count in sorted(marks.cells[ranked].items())
                    if sum(count >= step for step in steps) == darkness + 1
                )
                svg.draw(self.part, f"{kind} d{darkness}", "".join(drawn))
        goal = self.summary.metric.goal
        y = self.frame.top + 6 if goal is Goal.MINIMIZE else self.frame.bottom - 6
        for x in apart(marks.beyond):
            mark(self.part, beyond(goal), (x, y))

    def crosses(self, places: Iterable[float]) -> None:
        """Draw crosses at the bottom for trials without a result."""
        for x in apart(places):
            mark(self.part, "cross", (x, self.frame.bottom - 7))

    def winner(self, marks: Marks) -> None:
        """Draw the best trial if it is among these; with replicates, all trials of its configuration."""
        for item in marks.best:
            mark(self.part, "best", self._point(item), self._story(item[1]))

    def _point(self, placed: Placed) -> svg.Point:
        return placed[0], self.axis.at(placed[1].objective)

    def _story(self, trial: PlottedTrial) -> str:
        result = f"{self.summary.metric.name} {display.format_number(trial.objective)}"
        return f"{trial.outcome.trial}: {result} with {display.format_values(trial.outcome.assignment)}"


def beyond_axis(spread: ObjectiveScale) -> Iterator[str]:
    """Yield a note on the number of trials that a figure omits, if any."""
    if spread.beyond:
        yield f"{display.count_trials(spread.beyond)} beyond the axis: not drawn."


def beyond(goal: Goal) -> str:
    """Return the mark of trials with values beyond the axis."""
    return "beyond up" if goal is Goal.MINIMIZE else "beyond down"


def darkening(densest: int) -> tuple[int, ...]:
    """Return the numbers of trials at which a tile gets darker."""
    factor = next(factor for factor in range(2, densest + 3) if factor ** (CLASSES - 1) * 2 >= densest)
    return tuple(factor**power for power in range(CLASSES))


def apart(places: Iterable[float]) -> Iterator[float]:
    """Yield the positions that are far enough from the previous one."""
    last = float("-inf")
    for x in sorted(places):
        if x - last >= CROSS:
            yield x
            last = x


def winners(summary: Summary) -> frozenset[str]:
    """Return the ids of the best trial, or of all trials of the best configuration."""
    if summary.winner is None:
        return frozenset()
    return (
        frozenset(one.trial for one in summary.replicated[0].trials)
        if summary.replicated
        else frozenset({summary.winner.trial})
    )


def legend(
    summary: Summary, drawn: Sequence[PlottedTrial], spread: ObjectiveScale, *, tiled: bool, lost: bool
) -> Iterator[tuple[str, str]]:
    """Yield the legend of the marks that are drawn."""
    ranked = sum(trial.ranked for trial in drawn)
    if ranked:
        yield ("tile", "few to many trials") if tiled else ("trial", "trial")
    if len(drawn) > ranked:
        yield ("old" if tiled else "retired", "not ranked")
    if summary.winner is not None:
        yield "best", "best"
    if spread.beyond:
        yield beyond(summary.metric.goal), "beyond the axis"
    if lost:
        yield "cross", "no result"


def remarks(
    summary: Summary, drawn: Sequence[PlottedTrial], spread: ObjectiveScale, steps: Sequence[int]
) -> Iterator[str]:
    """Yield the rules of drawing, unless each trial is a dot at its objective."""
    if spread.beyond:
        count = sum(not spread.holds(trial.objective) for trial in drawn)
        worst = display.format_number(spread.worst)
        yield f"{count} of {len(drawn)} trials are beyond the axis, the worst at {worst}."
    if steps:
        thresholds = ", ".join(map(str, steps))
        yield f"{len(drawn)} trials, counted in tiles of {TILE} by {TILE} pixels."
        yield f"Tiles get darker at {thresholds} trials."
    if any(not summary.is_current(trial.outcome) for trial in drawn):
        yield "Trials of an earlier program are not ranked."
    if any(trial.outcome.in_spec is False for trial in drawn):
        yield "Trials that the spec no longer contains are not ranked."
