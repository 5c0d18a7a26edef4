"""`figures/slices.svg`: the objective against each parameter, side by side: whatever the others were."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from generator.results import words
from generator.results.figures import svg
from generator.results.figures.axis import Levels, levels
from generator.results.figures.page import EDGE, WIDTH, Frame, cut_name, direction, head, labels, mark, notes
from generator.results.figures.plot import (
    MOST_DOTS,
    Marks,
    Placed,
    Plot,
    Scored,
    darkening,
    gutter,
    legend,
    remarks,
)
from generator.results.figures.style import BOLD, NARROW_SIZE, WIDE_SIZE
from generator.results.importance import Importance, Share
from generator.results.summary import Summary
from generator.structs.record import Outcome
from generator.structs.values import Value, canonical_json

MOST_PANELS = 12
HEIGHT = 170
ROW = 258
BETWEEN = 28
SPREAD = 7.0
"""Between trials that share a value, in pixels."""
INSET = 26.0
"""Free at both ends of a parameter's axis, beside the axis's own margin."""
WIDEST_SPREAD = 60.0
SHARE_OF_GAP = 0.62


def slices(summary: Summary, importance: Importance, all_drawn: Sequence[Scored]) -> str:
    """Draw a small plot for each parameter that varies, the one that moves the objective most first."""
    shares = importance.shares[:MOST_PANELS]
    spread, drawn = importance.spread, [one for one in all_drawn if summary.is_current(one.outcome)]
    tiled = len(drawn) > MOST_DOTS
    title = f"{summary.metric.name} by parameter"
    told = " ".join(_told(share) for share in shares)
    root = svg.canvas(WIDTH, title=f"{summary.sweep}: {title}", description=told)
    means = [("mean", "mean")] if any(map(_has_means, shares)) else []
    current = sum(map(summary.is_current, summary.outcomes))
    entries = list(legend(summary, drawn, spread, tiled=tiled, lost=len(drawn) < current))
    top = head(root, title, [*entries[:1], *means, *entries[1:]]) + 26
    aside = f" ({direction(summary.metric.goal)}{', log scale' if spread.log else ''})"
    metric = cut_name(summary.metric.name, WIDTH - 2 * EDGE - svg.text_width(f"up: {aside}"))
    svg.text(root, f"up: {metric}{aside}", (EDGE, top))
    panels = []
    for share, frame in zip(shares, _frames(len(shares), gutter(spread, HEIGHT), top + 44), strict=True):
        plot = Plot.open(root, summary, spread, frame)
        plot.grid(labelled=frame.left == gutter(spread, HEIGHT))
        panels.append(Slice.of(plot, share, drawn, tiled=tiled))
    steps = darkening(max(panel.marks.densest for panel in panels)) if tiled else ()
    for panel in panels:
        panel.draw(steps)
    below = panels[-1].plot.frame.bottom + 38
    return svg.close(root, notes(root, _remarks(summary, importance, drawn, steps), below))


def _frames(count: int, left: float, top: float) -> Iterator[Frame]:
    columns = 1 if count == 1 else 2
    width = (WIDTH - EDGE - left - (columns - 1) * BETWEEN) / columns
    for number in range(count):
        row, column = divmod(number, columns)
        yield Frame(left + column * (width + BETWEEN), top + row * ROW, width, HEIGHT)


def _told(share: Share) -> str:
    groups = [
        f"{_span(group.first, group.last)} has mean {words.short(group.mean)}" for group in share.groups[:8]
    ]
    return f"{share.parameter}: {', '.join(groups)}{', and more' if len(share.groups) > len(groups) else ''}."


def _span(first: Value, last: Value) -> str:
    one, other = words.plain(first), words.plain(last)
    return one if one == other else f"{one} to {other}"


def _remarks(
    summary: Summary, importance: Importance, drawn: Sequence[Scored], steps: Sequence[int]
) -> Iterator[str]:
    shares, spread = importance.shares[:MOST_PANELS], importance.spread
    yield from remarks(summary, drawn, spread, steps)
    if len(importance.shares) > len(shares):
        yield f"{len(shares)} of {len(importance.shares)} parameters: those that moved it most."
    if any(share.is_grouped for share in shares):
        yield "Where there are many values the means are of neighbours in equal groups."
    if any(map(_has_means, shares)) and (spread.beyond or spread.log):
        yield "Means are of the trials as they are drawn."


def _has_means(share: Share) -> bool:
    """Tell whether any value was tried more than once: else the means are the trials."""
    return any(group.trials > 1 for group in share.groups)


@dataclass(frozen=True, slots=True)
class Slice:
    """The plot of one parameter."""

    plot: Plot
    share: Share
    across: Levels
    marks: Marks
    lost: Sequence[Outcome]
    """Trials with the parameter and without a result."""

    @classmethod
    def of(cls, plot: Plot, share: Share, drawn: Sequence[Scored], *, tiled: bool) -> "Slice":
        """Place the trials that have the parameter."""
        name, metric, frame = share.parameter, plot.summary.metric.name, plot.frame
        all_here = [o for o in plot.summary.outcomes if plot.summary.is_current(o) and name in o.assignment]
        across = levels(_values(all_here, name), frame.left + INSET, frame.right - INSET)
        placed = _side_by_side([one for one in drawn if name in one.outcome.assignment], name, across)
        marks = plot.marks(placed, tiled=tiled)
        return cls(plot, share, across, marks, [each for each in all_here if each.metric(metric) is None])

    def draw(self, steps: Sequence[int]) -> None:
        """Draw names, marks and means."""
        plot, frame, name = self.plot, self.plot.frame, self.share.parameter
        _name(plot, self.share, log=self.across.log)
        labels(plot.part, self.across.ticks, frame, frame.bottom + 24)
        plot.trials(self.marks, steps)
        plot.crosses({self.across.places[canonical_json(each.assignment[name])] for each in self.lost})
        if _has_means(self.share):
            _means(plot, self.share, self.across)
        plot.winner(self.marks)


def _values(outcomes: Sequence[Outcome], name: str) -> list[Value]:
    return list({canonical_json(o.assignment[name]): o.assignment[name] for o in outcomes}.values())


def _name(plot: Plot, share: Share, *, log: bool) -> None:
    frame, y = plot.frame, plot.frame.top - 12
    told = [*["log"] * log, *([] if share.share is None else [f"share {words.percent(share.share)}"])]
    for kind, size, aside in (("wide", WIDE_SIZE, ", ".join(told)), ("narrow", NARROW_SIZE, "log" * log)):
        room = frame.width - svg.text_width(aside, size) - 14
        svg.text(
            plot.part, cut_name(share.parameter, room / BOLD, size), (frame.left, y), kind=f"head {kind}"
        )
        if aside:
            svg.text(plot.part, aside, (frame.right, y), kind=kind, anchor="end")


def _means(plot: Plot, share: Share, across: Levels) -> None:
    places = [
        (across.places[canonical_json(group.first)] + across.places[canonical_json(group.last)]) / 2
        for group in share.groups
    ]
    points = [(x, plot.axis.at(group.mean)) for x, group in zip(places, share.groups, strict=True)]
    if across.ordered:
        svg.path(plot.part, "mean", [("L" if number else "M", *at) for number, at in enumerate(points)])
    for at in points:
        mark(plot.part, "level", at)


def _side_by_side(here: Sequence[Scored], parameter: str, across: Levels) -> Iterator[Placed]:
    """Place trials that share a value in their order, inside the value's own room."""
    many = Counter(canonical_json(trial.outcome.assignment[parameter]) for trial in here)
    seen = Counter[str]()
    room = min(WIDEST_SPREAD, SHARE_OF_GAP * across.gap)
    for trial in here:
        key = canonical_json(trial.outcome.assignment[parameter])
        step = min(SPREAD, room / many[key])
        yield round(across.places[key] + (seen[key] - (many[key] - 1) / 2) * step, 1), trial
        seen[key] += 1
