"""`figures/slices.svg`: the objective over the values of each parameter."""

from collections.abc import Iterator, Sequence

from sweepledger.results import display
from sweepledger.results.figures import layout, svg
from sweepledger.results.figures.axis import Levels, levels, side_by_side
from sweepledger.results.figures.layout import EDGE, WIDTH, Frame
from sweepledger.results.figures.plot import (
    MOST_DOTS,
    Marks,
    Plot,
    PlottedTrial,
    darkening,
    gutter,
    legend,
    remarks,
)
from sweepledger.results.figures.svg import BOLD
from sweepledger.results.importance import Importance, ParameterImportance
from sweepledger.results.summary import Summary
from sweepledger.structs.record import TrialResult
from sweepledger.structs.values import Value, canonical_json

MOST_PANELS = 12
HEIGHT = 170
ROW = 258
BETWEEN = 28
SPREAD = 7.0
"""Distance between trials with the same value, in pixels."""
INSET = 26.0
"""Free pixels at both ends of a parameter's axis, in addition to the axis's margin."""
WIDEST_SPREAD = 60.0
WIDEST_NUMBER_SPREAD = 14.0
"""For numbers: side by side, trials must not look as if they had other values."""
SHARE_OF_GAP = 0.62
SHARE_OF_NUMBER_GAP = 0.2


def draw_slices(summary: Summary, importance: Importance, all_drawn: Sequence[PlottedTrial]) -> str:
    """Return the figure with a plot for each parameter that varies, the most important first."""
    shares = importance.parameters[:MOST_PANELS]
    spread, drawn = importance.scale, [one for one in all_drawn if summary.is_current(one.outcome)]
    tiled = len(drawn) > MOST_DOTS
    means = [("mean", "mean")] if any(map(_has_means, shares)) else []
    current = sum(map(summary.is_current, summary.outcomes))
    entries = list(legend(summary, drawn, spread, tiled=tiled, lost=len(drawn) < current))
    root, top = layout.open_figure(
        summary.sweep,
        f"{summary.metric.name} by parameter",
        description=" ".join(map(_means_text, shares)),
        legend=[*entries[:1], *means, *entries[1:]],
    )
    top += 26
    svg.text(root, layout.metric_label(summary.metric, log=spread.log, prefix="vertical: "), (EDGE, top))
    left, metric = gutter(spread, HEIGHT), summary.metric.name
    panels: list[tuple[Plot, ParameterImportance, Levels, Marks]] = []
    for share, frame in zip(shares, _frames(len(shares), left, top + 44), strict=True):
        plot = Plot.open(root, summary, spread, frame)
        plot.grid(labelled=frame.left == left)
        panels.append((plot, share, *_placed(plot, share.parameter, drawn, tiled=tiled)))
    steps = darkening(max(marks.densest for *_, marks in panels)) if tiled else ()
    for plot, share, across, marks in panels:
        frame, name = plot.frame, share.parameter
        _name(plot, share, log=across.log)
        layout.labels(plot.part, across.ticks, frame, frame.bottom + 24)
        plot.trials(marks, steps)
        lost = (one for one in _with_parameter(summary, name) if one.metric(metric) is None)
        plot.crosses({across.places[canonical_json(one.assignment[name])] for one in lost})
        if _has_means(share):
            _means(plot, share, across)
        plot.winner(marks)
    below = panels[-1][0].frame.bottom + 38
    return layout.close_figure(root, _remarks(summary, importance, drawn, steps), below)


def _with_parameter(summary: Summary, name: str) -> list[TrialResult]:
    return [one for one in summary.outcomes if summary.is_current(one) and name in one.assignment]


def _placed(plot: Plot, name: str, drawn: Sequence[PlottedTrial], *, tiled: bool) -> tuple[Levels, Marks]:
    """Return the positions of a parameter's values, and the marks of trials; trials with one value are side by side."""
    trials = _with_parameter(plot.summary, name)
    values = {canonical_json(each.assignment[name]): each.assignment[name] for each in trials}
    across = levels([*values.values()], plot.frame.left + INSET, plot.frame.right - INSET)
    here = [one for one in drawn if name in one.outcome.assignment]
    room = (
        min(WIDEST_NUMBER_SPREAD, SHARE_OF_NUMBER_GAP * across.gap)
        if across.ordered
        else min(WIDEST_SPREAD, SHARE_OF_GAP * across.gap)
    )
    keys = [canonical_json(one.outcome.assignment[name]) for one in here]
    positions = side_by_side(keys, across.places, room, widest=SPREAD)
    return across, plot.marks(zip(positions, here, strict=True), tiled=tiled)


def _frames(count: int, left: float, top: float) -> Iterator[Frame]:
    columns = 1 if count == 1 else 2
    width = (WIDTH - EDGE - left - (columns - 1) * BETWEEN) / columns
    for number in range(count):
        row, column = divmod(number, columns)
        yield Frame(left + column * (width + BETWEEN), top + row * ROW, width, HEIGHT)


def _means_text(share: ParameterImportance) -> str:
    if not _has_means(share):
        return f"{share.parameter}: no more than chance."
    # The digits that the README has.
    means = [group.mean for group in share.groups]
    width = max(means) - min(means)
    groups = [
        f"{_span(group.first, group.last)} has mean {display.format_within(group.mean, width)}"
        for group in share.groups[:8]
    ]
    return f"{share.parameter}: {', '.join(groups)}{', and more' if len(share.groups) > len(groups) else ''}."


def _span(first: Value, last: Value) -> str:
    one, other = display.format_value(first), display.format_value(last)
    return one if one == other else f"{one} to {other}"


def _remarks(
    summary: Summary, importance: Importance, drawn: Sequence[PlottedTrial], steps: Sequence[int]
) -> Iterator[str]:
    shares, spread = importance.parameters[:MOST_PANELS], importance.scale
    yield from remarks(summary, drawn, spread, steps)
    if len(importance.parameters) > len(shares):
        yield f"The most important {len(shares)} of {len(importance.parameters)} parameters are drawn."
    if any(share.is_grouped for share in shares):
        yield "Means of parameters with many values are those of groups of neighbouring values."
    if any(share.share is not None for share in shares):
        yield "Percentages are the importance of the parameters."
    groups = [group for share in shares if _has_means(share) for group in share.groups]
    if any(not spread.holds(group.mean) for group in groups):
        yield "Means beyond the axis are drawn at its end."


def _has_means(share: ParameterImportance) -> bool:
    """Return whether means show an effect beyond chance and any value has several trials, so that means are drawn."""
    return share.is_significant and any(group.trials > 1 for group in share.groups)


def _name(plot: Plot, share: ParameterImportance, *, log: bool) -> None:
    frame, y = plot.frame, plot.frame.top - 12
    notes = [*["log"] * log, *([] if share.share is None else [display.format_percent(share.share)])]
    for (kind, size), aside in zip(layout.SIZES, (", ".join(notes), "log" * log), strict=True):
        room = frame.width - svg.text_width(aside, size) - 14
        svg.text(
            plot.part,
            layout.cut_name(share.parameter, room / BOLD, size),
            (frame.left, y),
            kind=f"head {kind}",
        )
        if aside:
            svg.text(plot.part, aside, (frame.right, y), kind=kind, anchor="end")


def _means(plot: Plot, share: ParameterImportance, across: Levels) -> None:
    places = [
        (across.places[canonical_json(group.first)] + across.places[canonical_json(group.last)]) / 2
        for group in share.groups
    ]
    points = list(zip(places, [plot.height(group.mean) for group in share.groups], strict=True))
    if across.ordered:
        svg.path(plot.part, "mean", [("L" if number else "M", *at) for number, at in enumerate(points)])
    for at in points:
        layout.mark(plot.part, "level", at)
