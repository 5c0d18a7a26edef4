"""Parameter importance: the share of the objective's variance, or why it cannot be determined.

The share is the parameter's main effect in an additive model, fitted by backfitting (Friedman and Stuetzle,
1981): eta squared (R. A. Fisher, 1925) minus its value by chance alone, which is epsilon squared (Kelley,
1935). On a full grid it is the main effect of functional ANOVA, which Hutter, Hoos and Leyton-Brown (2014)
estimate with a forest. Numbers with many values are grouped with their neighbours. Nothing is sampled.
"""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sweepledger.formats.summary_csv import parameter_names
from sweepledger.results.inference import mean, median
from sweepledger.results.objective_scale import ObjectiveScale
from sweepledger.results.summary import Summary, as_numbers
from sweepledger.structs.record import TrialResult
from sweepledger.structs.values import Value, canonical_json

ABSENT = -1
"""Group number of a trial that does not have the parameter."""
MOST_ROUNDS = 50
TOLERANCE = 1e-7
"""Smallest change of a position, between 0 and 1, that counts."""

GroupNumbers = Sequence[int]
"""The group number of each trial, or ABSENT."""


@dataclass(frozen=True, slots=True)
class AdditiveModel:
    """The effects of the parameters, and the residuals."""

    explained: tuple[float, ...]
    """Sum of the squares of each parameter's effects over the trials."""
    left: float
    """Sum of the squared residuals."""
    total: float
    """The sum of all these. If parameters are slightly confounded, it differs a little from that of the trials."""
    free: int
    """Degrees of freedom of the residuals."""


def fit_additive_model(parts: Sequence[float], kinds: Sequence[GroupNumbers]) -> AdditiveModel:
    """Fit the positions of trials by the groups that they belong to."""
    mean = math.fsum(parts) / len(parts)
    left = [part - mean for part in parts]
    counts: list[list[int]] = []
    for each in kinds:
        members = Counter(each)
        counts.append([members[kind] for kind in range(max(each) + 1)])
    effects = [[0.0] * len(count) for count in counts]
    for _ in range(MOST_ROUNDS):
        changes = [_improve(left, *each) for each in zip(kinds, counts, effects, strict=True)]
        if max(changes, default=0.0) < TOLERANCE:
            break
    explained = tuple(
        math.fsum(number * effect * effect for number, effect in zip(count, effect_of, strict=True))
        for count, effect_of in zip(counts, effects, strict=True)
    )
    remains = math.fsum(each * each for each in left)
    free = len(parts) - 1 - sum(len(count) - 1 for count in counts)
    return AdditiveModel(explained, remains, math.fsum([*explained, remains]), free)


def _improve(left: list[float], kinds: GroupNumbers, counts: Sequence[int], effects: list[float]) -> float:
    """Move the effects of one parameter to the means of the residuals, and return the largest change."""
    sums = [0.0] * len(counts)
    for kind, value in zip(kinds, left, strict=True):
        if kind != ABSENT:
            sums[kind] += value
    middle = math.fsum(sums) / sum(counts)
    changes = [value / count - middle for value, count in zip(sums, counts, strict=True)]
    for place, kind in enumerate(kinds):
        if kind != ABSENT:
            left[place] -= changes[kind]
    for kind, change in enumerate(changes):
        effects[kind] += change
    return max(map(abs, changes))


CONFOUNDED = 0.6
"""Threshold of Cramer's V corrected for bias (Bergsma, 2013): 0 is independent, 1 is identical."""
FEWEST_SHARED = 8
MOST_COMPARED = 40
"""Number of parameters that are compared in pairs; hundreds would take minutes."""


def confounding_leaders(kinds: Sequence[GroupNumbers]) -> list[int | None]:
    """Return for each parameter the first parameter with which it is confounded; None if there is none."""
    leaders: list[int | None] = []
    for number, one in enumerate(kinds):
        firsts = (other for other in range(min(number, MOST_COMPARED)) if leaders[other] is None)
        leaders.append(next((first for first in firsts if cramers_v(kinds[first], one) > CONFOUNDED), None))
    return leaders


def cramers_v(one: GroupNumbers, other: GroupNumbers) -> float:
    """Return the association of two groupings, 0 to 1, over the trials that both contain."""
    cells = Counter(zip(one, other, strict=True))
    both = {pair: count for pair, count in cells.items() if ABSENT not in pair}
    rows, columns = Counter[int](), Counter[int]()
    for (row, column), count in both.items():
        rows[row] += count
        columns[column] += count
    total = sum(both.values())
    if min(len(rows), len(columns)) < 2 or total < FEWEST_SHARED:  # noqa: PLR2004 - one group tells nothing
        return 0.0
    square = math.fsum(count * count / (rows[a] * columns[b]) for (a, b), count in both.items()) - 1
    corrected = max(0.0, square - (len(rows) - 1) * (len(columns) - 1) / (total - 1))
    least = min(len(groups) - (len(groups) - 1) ** 2 / (total - 1) for groups in (rows, columns)) - 1
    return math.sqrt(min(1.0, corrected / least)) if least > 0 else 0.0


FEWEST_TRIALS = 8
"""Fewer trials do not allow a share."""
FEWEST_A_GROUP = 2
"""Average number of trials per group; with fewer, effects cannot be separated from noise."""
FEWEST_FREE = 5
"""Degrees of freedom that an estimate of the noise needs."""
MOST_GROUPS = 8
FEWEST_MERGED = 16
"""Number of trials from which on neighbours are grouped."""
MOST_LEVELS = 16
MOST_TRIALS = 20_000
"""More trials change no digit that is shown."""


@dataclass(frozen=True, slots=True)
class ValueGroup:
    """Trials with one value of a parameter, or with neighbouring numbers."""

    first: Value
    last: Value
    mean: float
    """Of the objectives, outliers included."""
    median: float
    trials: int


@dataclass(frozen=True, slots=True)
class ParameterImportance:
    """The importance of one parameter, and the objective for each of its values."""

    parameter: str
    groups: tuple[ValueGroup, ...]
    """At least two; numbers ascend."""
    share: float | None = None
    """Explained share of the variance, 0 to 1; None if it is not available."""
    reason: str = ""
    """Why the share is not available, else empty."""
    is_significant: bool = True
    """Whether a parameter without any effect seldom seems to explain as much."""
    chance: float | None = None
    """The share that a parameter without any effect seldom reaches; None if it is not available."""
    confounded: tuple[str, ...] = ()
    """Parameters that are confounded with this one: the share is that of all of them."""

    @property
    def is_grouped(self) -> bool:
        """Whether a group has several values."""
        return any(canonical_json(group.first) != canonical_json(group.last) for group in self.groups)

    @property
    def has_means(self) -> bool:
        """Whether the groups have enough trials for means to show more than single trials."""
        return sum(group.trials for group in self.groups) >= FEWEST_A_GROUP * len(self.groups)


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of all parameters that vary."""

    scale: ObjectiveScale
    """The shares are those of positions on it; means and medians are those of the objectives."""
    parameters: tuple[ParameterImportance, ...]
    """The largest share first; then those without a share, the widest distance between means first."""
    rest: float | None
    """Share of interactions and noise, which no main effect explains; None if no share is available."""


Scored = Sequence[tuple[TrialResult, float]]
"""Trials and their objectives, or positions on the scale."""


def importance(summary: Summary) -> Importance:
    """Return the share of the variance of the newest program's ok trials that each parameter explains."""
    metric = summary.metric
    scored = [
        (outcome, objective)
        for outcome in summary.outcomes
        if summary.is_current(outcome) and (objective := outcome.metric(metric.name)) is not None
    ]
    scale = ObjectiveScale.of([objective for _, objective in scored], metric.goal)
    if len(scored) > MOST_TRIALS:
        # By id, which is a digest: every n-th trial of a grid would leave out values.
        scored = sorted(scored, key=lambda each: (each[0].trial, each[0].replicate))[:MOST_TRIALS]
    parts = [(outcome, scale.part(objective)) for outcome, objective in scored]
    grouped = [_grouped(name, scored) for name in parameter_names(outcome for outcome, _ in scored)]
    parameters, rest = _measured([each for each in grouped if len(each[0].groups) > 1], parts)

    def order(parameter: ParameterImportance) -> tuple[float, float]:
        means = [scale.part(group.mean) for group in parameter.groups]
        return -1.0 if parameter.share is None else parameter.share, max(means) - min(means)

    return Importance(scale, tuple(sorted(parameters, key=order, reverse=True)), rest)


def _measured(
    varied: Sequence[tuple[ParameterImportance, GroupNumbers]], parts: Scored
) -> tuple[list[ParameterImportance], float | None]:
    """Return all parameters with their shares, or the reason why a share is not available, and the remaining share."""
    leaders = confounding_leaders([numbers for _, numbers in varied])
    separate = [each for each, leader in zip(varied, leaders, strict=True) if leader is None]
    followers = [
        replace(parameter, reason=f"confounded with {varied[leader][0].parameter}")
        for (parameter, _), leader in zip(varied, leaders, strict=True)
        if leader is not None
    ]
    needed = max(FEWEST_TRIALS, 1 + sum(len(parameter.groups) - 1 for parameter, _ in separate) + FEWEST_FREE)
    reason = f"{len(parts)} ok trials are too few, at least {needed} are needed"
    if len(parts) >= needed:
        model = fit_additive_model([part for _, part in parts], [numbers for _, numbers in separate])
        reason = "" if model.total > 0 else "all values of the objective are equal"
    if reason:
        return [replace(parameter, reason=reason) for parameter, _ in separate] + followers, None
    names = [parameter.parameter for parameter, _ in varied]
    measured = []
    for number, (parameter, _) in enumerate(separate):
        own = names.index(parameter.parameter)
        confounded = tuple(name for name, leader in zip(names, leaders, strict=True) if leader == own)
        measured.append(_share(replace(parameter, confounded=confounded), model, model.explained[number]))
    rest = max(0.0, 1.0 - math.fsum(parameter.share or 0.0 for parameter in measured))
    return [*measured, *followers], rest


def _share(parameter: ParameterImportance, model: AdditiveModel, explained: float) -> ParameterImportance:
    free, noise = len(parameter.groups) - 1, model.left / model.free
    share = min(1.0, max(0.0, (explained - free * noise) / model.total))
    # Without any effect this quotient has an F distribution: two deviations above its mean are rare.
    mean = model.free / (model.free - 2)
    deviation = mean * math.sqrt(2 * (free + model.free - 2) / (free * (model.free - 4)))
    reach = free * noise * (mean + 2 * deviation)
    chance = min(1.0, max(0.0, (reach - free * noise) / model.total))
    return replace(parameter, share=share, is_significant=explained > reach, chance=chance)


Item = tuple[int, Value, float]
"""A trial's index, its value, its objective."""


def _grouped(name: str, scored: Scored) -> tuple[ParameterImportance, GroupNumbers]:
    items = [
        (place, outcome.assignment[name], objective)
        for place, (outcome, objective) in enumerate(scored)
        if name in outcome.assignment
    ]
    groups: list[ValueGroup] = []
    kinds = array("i", [ABSENT]) * len(scored)
    for number, group in enumerate(_groups(items)):
        for place, *_ in group:
            kinds[place] = number
        objectives = [objective for *_, objective in group]
        groups.append(ValueGroup(group[0][1], group[-1][1], mean(objectives), median(objectives), len(group)))
    return ParameterImportance(name, tuple(groups)), kinds


def _groups(items: Sequence[Item]) -> list[list[Item]]:
    """Return trials grouped by value; numbers with many values, with their neighbours, evenly if ties allow."""
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
    count = min(MOST_GROUPS, max(2, math.isqrt(len(items))))
    groups: list[list[Item]] = [[]]
    seen = 0
    for level in ordered:
        if groups[-1] and seen * count >= len(groups) * len(items):
            groups.append([])
        groups[-1].extend(level)
        seen += len(level)
    return groups
