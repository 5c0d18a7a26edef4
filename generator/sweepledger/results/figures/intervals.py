"""`figures/intervals.svg`: with replicates, the mean of each configuration with its interval, best first."""

import math
from xml.etree.ElementTree import Element

from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results import display
from sweepledger.results.best_trial import ConfigurationResults
from sweepledger.results.figures import layout, svg
from sweepledger.results.figures.axis import Axis, number_axis
from sweepledger.results.summary import Summary

MOST_ROWS = 24
NAMES = 250
"""Width of the configurations at the left."""
ROW = 30
DOT = 2.6


def draw_intervals(summary: Summary) -> str:
    """Return the figure of the means with their 95 % intervals and trials."""
    listed = [one for one in summary.replicated if one.is_ranked]
    rows = listed[:MOST_ROWS]
    best = [("best", "best mean")] if summary.winner is not None else []
    root, top = layout.open_figure(
        summary.sweep,
        f"{summary.metric.name} of the configurations",
        description=f"Means of {len(rows)} configurations with their 95 % intervals, best first.",
        legend=[*best, ("level", "mean"), ("mean", "95 % interval"), ("trial", "trial")],
    )
    top += 30
    frame = layout.Frame(
        layout.EDGE + NAMES, top, layout.WIDTH - 2 * layout.EDGE - NAMES, ROW * len(rows) + 12
    )
    part = svg.group(root)
    svg.box(part, "frame", (frame.left, frame.top, frame.width, frame.height), radius=4)
    drawn = [value for one in rows for value in (*one.values, *_interval(one))]
    across = number_axis(drawn, frame.left, frame.right, ticks=5)
    for tick in across.ticks:
        x = across.at(tick)
        svg.line(part, "grid", (x, frame.top), (x, frame.bottom))
    layout.labels(part, [(across.at(tick), tick) for tick in across.ticks], frame, frame.bottom + 24)
    names = parameter_names(one.trial for one in rows)
    shown = {name: {display.format_value(one.assignment.get(name)) for one in rows} for name in names}
    varied = [name for name in names if len(shown[name]) > 1]
    for number, one in enumerate(rows):
        y = frame.top + 6 + ROW * (number + 0.5)
        _row(svg.group(root), one, across, y, is_best=number == 0 and summary.winner is not None)
        values = {name: one.assignment[name] for name in varied if name in one.assignment}
        for kind, size in layout.SIZES:
            label = layout.cut(display.format_values(values) or one.trial.trial, NAMES - 12, size)
            svg.text(root, label, (layout.EDGE, y + 5), kind=kind)
    svg.text(root, layout.direction(summary.metric.goal), (frame.right, frame.bottom + 52), anchor="end")
    single = any(one.interval is None for one in rows)
    remarks = ["A configuration with a single result has no interval."] * single
    remarks += [f"The best {len(rows)} of {len(listed)} configurations."] * (len(rows) < len(listed))
    return layout.close_figure(root, remarks, frame.bottom + 52)


def _interval(one: ConfigurationResults) -> tuple[float, ...]:
    """Return both ends of an interval if it can be drawn; an interval of very large numbers may be infinite."""
    return one.interval if one.interval and all(map(math.isfinite, one.interval)) else ()


def _row(part: Element, one: ConfigurationResults, across: Axis, y: float, *, is_best: bool) -> None:
    ends = [across.at(end) for end in _interval(one)]
    if ends:
        svg.line(part, "mean", (ends[0], y), (ends[1], y))
    for value in one.values:
        svg.dot(part, "trial", (across.at(value), y), radius=DOT)
    assert one.mean is not None
    layout.mark(part, "best" if is_best else "level", (across.at(one.mean), y))
