"""`figure.svg`: the objective against each parameter, and over the trials in their order.

What is drawn where; shapes and colours are in `svg`, scales in `axis`.
"""

import itertools
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from generator.results import svg, words
from generator.results.axis import Axis, levels
from generator.results.message import best
from generator.results.panel import (
    EDGE,
    HEADER,
    INSET,
    PANEL,
    PLOT,
    WIDTH,
    Frame,
    Panel,
    Scored,
    cut,
    mark,
    spread,
)
from generator.results.summary import Effect, Summary
from generator.structs.record import Status
from generator.structs.values import canonical_json

FIGURE_FILE = "figure.svg"

MOST_PANELS = 12
MOST_TOLD = 8
"""Values described for those who listen: they have no patience for a hundred."""
MOST_NUMBERS = 20
"""Labels of five digits fit so often."""


def figure(summary: Summary) -> str:
    """Draw a sweep's results as SVG: the same bytes for the same results, anywhere."""
    effects = summary.effects[:MOST_PANELS]
    columns = {1: 1, 2: 2, 4: 2}.get(len(effects), 3)
    rows = -(-len(effects) // columns)
    height = HEADER + (rows + 1) * PANEL
    root = svg.canvas(WIDTH, height, title=_title(summary), description=_description(summary, effects))
    _header(root, summary)
    scored = tuple(_scored(summary))
    for number, effect in enumerate(effects):
        row, column = divmod(number, columns)
        panel = Panel.open(root, summary, Frame.at(row, column, columns), scored)
        panel.grid(labelled=column == 0)
        _parameter(panel, effect, [trial for trial in scored if summary.is_current(trial.outcome)])
    _order(Panel.open(root, summary, Frame.at(rows, 0, 1), scored), scored)
    return svg.to_text(root)


def _title(summary: Summary) -> str:
    return f"{summary.sweep}: {summary.metric.name} by parameter and by trial"


def _description(summary: Summary, effects: Sequence[Effect]) -> str:
    done = f"{summary.counts[Status.OK]} of {len(summary.outcomes)} trials ended ok, {best(summary)}."
    return " ".join([done, *(_means(effect) for effect in effects)])


def _means(effect: Effect) -> str:
    told = [
        f"{words.plain(level.value)} has mean {words.short(level.mean)}"
        for level in effect.levels[:MOST_TOLD]
    ]
    return f"{effect.parameter}: {', '.join(told)}{', and more' if len(effect.levels) > MOST_TOLD else ''}."


def _scored(summary: Summary) -> Iterator[Scored]:
    for place, outcome in enumerate(summary.outcomes, start=1):
        objective = outcome.metric(summary.metric.name)
        if objective is not None:
            yield Scored(outcome, objective, place)


def _header(root: Element, summary: Summary) -> None:
    svg.text(root, summary.sweep, (EDGE, 40), kind="title")
    ok, total = summary.counts[Status.OK], len(summary.outcomes)
    metric = f"{cut(summary.metric.name, 40)}, {summary.metric.goal}"
    svg.text(root, f"{metric} · {ok} of {total} trials ok · {cut(best(summary), 60)}", (EDGE, 61))
    x = float(EDGE + 7)
    for kind, name, shown in (
        ("trial", "trial", ok > 0),
        ("level", "mean", any(_has_means(effect) for effect in summary.effects)),
        ("best", "best", summary.winner is not None),
        ("cross", "diverged, failed or missing", ok < total),
    ):
        if shown:
            mark(root, kind, (x, 82))
            svg.text(root, name, (x + 13, 86))
            x += 40 + svg.text_width(name)


def _has_means(effect: Effect) -> bool:
    """Tell whether any value was tried more than once: else the means are the trials."""
    return any(level.count > 1 for level in effect.levels)


def _parameter(panel: Panel, effect: Effect, scored: Sequence[Scored]) -> None:
    has_means = _has_means(effect)
    panel.name(effect.parameter, f"range {effect.range:.3g}" if has_means else "")
    values = [level.value for level in effect.levels]
    across = levels(values, panel.frame.left + INSET, panel.frame.right - INSET)
    panel.labels(across.ticks)
    placed = spread(scored, effect.parameter, across)
    panel.trials(placed)
    if has_means:
        places = (across.places[canonical_json(level.value)] for level in effect.levels)
        means = [(x, panel.axis.at(level.mean)) for x, level in zip(places, effect.levels, strict=True)]
        if across.ordered:
            svg.path(panel.part, "mean", [("L" if number else "M", *at) for number, at in enumerate(means)])
        for at in means:
            mark(panel.part, "level", at)
    panel.winner(placed)


def _order(panel: Panel, scored: Sequence[Scored]) -> None:
    part, frame, total = panel.part, panel.frame, len(panel.summary.outcomes)
    panel.name("every trial, in the order of the tables", "line: best so far" if scored else "")
    panel.grid(labelled=True)
    pad = 0.5 + total / 100
    across = Axis(1 - pad, total + pad, frame.left, frame.right, log=False, ticks=())
    _seams(panel, across)
    panel.labels([(across.at(number), float(number)) for number in _numbers(total)])
    if not scored:
        middle = (frame.left + frame.width / 2, frame.top + PLOT / 2)
        svg.text(part, "no trial has ended ok", middle, anchor="middle")
    svg.path(part, "record", _record(panel, across, scored))
    placed = [(across.at(trial.place), trial) for trial in scored]
    panel.trials(placed)
    drawn = {trial.place for trial in scored}
    for x in sorted({across.at(place) for place in range(1, total + 1) if place not in drawn}):
        mark(part, "cross", (x, frame.bottom - 7))
    panel.winner(placed)


def _numbers(total: int) -> Iterator[int]:
    """Count in steps that give a readable axis, the first trial included."""
    steps = (factor * 10**power for power in range(9) for factor in (1, 2, 5))
    step = next(step for step in steps if total / step <= MOST_NUMBERS)
    yield from sorted({1, *range(step, total + 1, step)})


def _seams(panel: Panel, across: Axis) -> None:
    batches = [outcome.batch for outcome in panel.summary.outcomes]
    for place, (before, after) in enumerate(itertools.pairwise(batches), start=1):
        if before != after:
            x = across.at(place + 0.5)
            svg.line(panel.part, "seam", (x, panel.frame.top), (x, panel.frame.bottom))


def _record(panel: Panel, across: Axis, scored: Sequence[Scored]) -> Iterator[tuple[str, float, float]]:
    """Draw the best so far as stairs, over the newest program's trials."""
    summary, best_y = panel.summary, None
    so_far: Scored | None = None
    for trial in scored:
        if not summary.is_current(trial.outcome):
            continue
        if so_far is not None and not summary.metric.better(trial.objective, so_far.objective):
            continue
        x, y = across.at(trial.place), panel.axis.at(trial.objective)
        yield ("M", x, y) if best_y is None else ("L", x, best_y)
        yield ("L", x, y)
        so_far, best_y = trial, y
    if best_y is not None:
        yield ("L", across.at(len(summary.outcomes)), best_y)
