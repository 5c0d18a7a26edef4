"""How much each parameter moves the objective: its share of the variance, and when that cannot be told.

The share is that of the parameter's main effect in an additive model (`additive`): eta squared of the
analysis of variance (R. A. Fisher, 1925), less what chance alone would give: epsilon squared (Kelley, 1935).
On a full grid it is the main effect's part of the functional analysis of variance that Hutter, Hoos and
Leyton-Brown (2014) estimate with a forest. Numbers with many values are put into groups of neighbours first.
Nothing is sampled.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from generator.formats.summary import parameter_names
from generator.results.additive import ABSENT, Fit, Kinds, fit
from generator.results.confounding import clusters
from generator.results.spread import Spread
from generator.results.summary import Summary, as_numbers
from generator.structs.record import Outcome
from generator.structs.values import Value, canonical_json

FEWEST_TRIALS = 8
"""Fewer say nothing about shares."""
FEWEST_A_GROUP = 2
"""On average; with fewer, groups and chance cannot be told apart."""
FEWEST_FREE = 5
"""Degrees of freedom that chance must be left to be known."""
MOST_GROUPS = 8
FEWEST_MERGED = 16
"""Trials that make groups of four."""
MOST_LEVELS = 16
MOST_TRIALS = 20_000
"""More change no digit that is shown."""


@dataclass(frozen=True, slots=True)
class Group:
    """Trials with one value of a parameter, or with neighbouring numbers."""

    first: Value
    last: Value
    mean: float
    """The objective at the mean of their places on the spread."""
    trials: int


@dataclass(frozen=True, slots=True)
class Share:
    """What can be said of one parameter."""

    parameter: str
    groups: tuple[Group, ...]
    """At least two; numbers ascend."""
    share: float | None = None
    """Of the variance, 0 to 1; None where it cannot be told."""
    untold: str = ""
    """Why it cannot be told, else empty."""
    by_chance: bool = False
    """Whether values without any effect would often seem to have as much."""
    together: tuple[str, ...] = ()
    """Parameters whose values went with its own: the share is of all of them."""

    @property
    def is_grouped(self) -> bool:
        """Tell whether groups hold several values."""
        return any(canonical_json(group.first) != canonical_json(group.last) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Importance:
    """Of all parameters that vary, the largest first; the untold last, the farthest means first."""

    spread: Spread
    shares: tuple[Share, ...]
    rest: float | None
    """What no main effect explains: interactions and noise; None where no share can be told."""


Scored = Sequence[tuple[Outcome, float]]
"""Trials and their places on the spread."""


def importance(summary: Summary) -> Importance:
    """Share the variance of the newest program's ok trials out to the parameters."""
    metric = summary.metric
    scored = [
        (outcome, objective)
        for outcome in summary.outcomes
        if summary.is_current(outcome) and (objective := outcome.metric(metric.name)) is not None
    ]
    spread = Spread.of([objective for _, objective in scored], metric.goal)
    parts = [(outcome, spread.part(objective)) for outcome, objective in scored]
    if len(parts) > MOST_TRIALS:
        # By id, which is a digest: every n-th of a grid would miss values.
        parts = sorted(parts, key=lambda each: (each[0].trial, each[0].replicate))[:MOST_TRIALS]
    grouped = [_grouped(name, parts, spread) for name in parameter_names(outcome for outcome, _ in parts)]
    shares, rest = _measured([each for each in grouped if len(each[0].groups) > 1], parts)
    return Importance(spread, tuple(sorted(shares, key=lambda each: _rank(each, spread), reverse=True)), rest)


def _rank(share: Share, spread: Spread) -> tuple[float, float]:
    places = [spread.part(group.mean) for group in share.groups]
    return -1.0 if share.share is None else share.share, max(places) - min(places)


def _measured(varied: Sequence[tuple[Share, Kinds]], parts: Scored) -> tuple[list[Share], float | None]:
    """Give the shares of all that vary, and the rest."""
    leaders = clusters([kinds for _, kinds in varied])
    told = [(share, kinds) for (share, kinds), leader in zip(varied, leaders, strict=True) if leader is None]
    followers = [
        replace(share, untold=f"its values went with those of {varied[leader][0].parameter}")
        for (share, _), leader in zip(varied, leaders, strict=True)
        if leader is not None
    ]
    model, why = _model(told, parts)
    if model is None:
        return [replace(share, untold=why) for share, _ in told] + followers, None
    names = [share.parameter for share, _ in varied]
    shares = []
    for number, (share, _) in enumerate(told):
        own = names.index(share.parameter)
        together = tuple(name for name, leader in zip(names, leaders, strict=True) if leader == own)
        shares.append(_share(replace(share, together=together), model, model.explained[number]))
    rest = max(0.0, 1.0 - math.fsum(share.share or 0.0 for share in shares))
    return [*shares, *followers], rest


def _model(told: Sequence[tuple[Share, Kinds]], parts: Scored) -> tuple[Fit | None, str]:
    """Fit what can be fitted, or say why it cannot."""
    wanted = 1 + sum(len(share.groups) - 1 for share, _ in told) + FEWEST_FREE
    if len(parts) < max(FEWEST_TRIALS, wanted):
        return None, f"{len(parts)} ok trials are too few: it takes {max(FEWEST_TRIALS, wanted)}"
    model = fit([part for _, part in parts], [kinds for _, kinds in told])
    return (model, "") if model.total > 0 else (None, "all objectives are equal")


def _share(share: Share, model: Fit, explained: float) -> Share:
    free, noise = len(share.groups) - 1, model.left / model.free
    measured = min(1.0, max(0.0, (explained - free * noise) / model.total))
    # Without any effect this quotient has an F distribution: two deviations above its mean are rare.
    mean = model.free / (model.free - 2)
    deviation = mean * math.sqrt(2 * (free + model.free - 2) / (free * (model.free - 4)))
    return replace(share, share=measured, by_chance=explained <= free * noise * (mean + 2 * deviation))


Item = tuple[int, Value, float]
"""A trial's place, its value, its place on the spread."""


def _grouped(name: str, parts: Scored, spread: Spread) -> tuple[Share, Kinds]:
    items = [
        (place, outcome.assignment[name], part)
        for place, (outcome, part) in enumerate(parts)
        if name in outcome.assignment
    ]
    groups = _groups(items)
    kinds = array("i", [ABSENT]) * len(parts)
    for number, group in enumerate(groups):
        for place, *_ in group:
            kinds[place] = number
    return Share(name, tuple(_group(group, spread) for group in groups)), kinds


def _groups(items: Sequence[Item]) -> list[list[Item]]:
    """Put trials with one value together; of numbers with many values, neighbours, evenly as ties allow."""
    levels: dict[str, list[Item]] = {}
    for item in items:
        levels.setdefault(canonical_json(item[1]), []).append(item)
    numbers = as_numbers(level[0][1] for level in levels.values())
    if numbers is None:
        return list(levels.values())
    ordered = [
        level for _, level in sorted(zip(numbers, levels.values(), strict=True), key=lambda pair: pair[0])
    ]
    few = len(ordered) <= MOST_LEVELS and len(items) >= FEWEST_A_GROUP * len(ordered)
    if few or len(items) < FEWEST_MERGED:
        return ordered
    return _merged(ordered, len(items), min(MOST_GROUPS, max(2, math.isqrt(len(items)))))


def _merged(ordered: Sequence[list[Item]], total: int, count: int) -> list[list[Item]]:
    groups: list[list[Item]] = [[]]
    seen = 0
    for level in ordered:
        if groups[-1] and seen * count >= len(groups) * total:
            groups.append([])
        groups[-1].extend(level)
        seen += len(level)
    return groups


def _group(items: Sequence[Item], spread: Spread) -> Group:
    part = math.fsum(part for *_, part in items) / len(items)
    return Group(items[0][1], items[-1][1], spread.at(part), len(items))
