"""Doubts about the numbers of a program's trials, which a reader must know before relying on them.

Trials with different values that report the same numbers ignore their arguments, or read each other's files. Trials of
one configuration, such as replicates of a deterministic program, may be equal. So may numbers that no trial
changes, or that many programs report: 0, 1, and a constant curve.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

from sweepledger.results.display import count_trials, format_number, one_line
from sweepledger.results.outcomes import METRIC_MISSING
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Curve, SummaryRow, TrialResult, step_restarts
from sweepledger.structs.values import canonical_json

MOST_NAMES = 10
"""Names of other numbers that are listed."""
FEWEST_METRICS = 3
"""Metrics of two trials that agree: of fewer, chance alone may be the reason."""
FEWEST_POINTS = 3
"""Points of a curve, for the same reason."""
FEWEST_CONFIGURATIONS = 3
"""Configurations with one objective from which on their other metrics do not matter."""
MOST_TIED = 20
"""Trials with one number that are looked at in pairs: of a coarse number there are too many."""
MOST_PAIRS = 3
"""Pairs that are named."""
COMMON = frozenset({0.0, 1.0})


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt that a reader must know before relying on a sweep's numbers."""

    text: str
    """One sentence, without a full stop."""
    batches: frozenset[str]
    """The batches that it is about."""


def doubts(trials: Sequence[TrialResult], metrics: Sequence[Metric]) -> tuple[Doubt, ...]:
    """Return the doubts about trials of one program; `metrics` are those of its sweep."""
    return (*_reporting_doubts(trials, metrics), *identical_metrics(trials, metrics))


def _reporting_doubts(trials: Sequence[TrialResult], metrics: Sequence[Metric]) -> Iterator[Doubt]:
    """Yield doubts about metrics of a sweep that no trial of a program reported, and about steps that begin again."""
    ended = [
        (one, one.record.reported)
        for one in trials
        if one.record is not None and (one.status.is_final or one.reason == METRIC_MISSING)
    ]
    names = sorted({name for _, reported in ended for name in reported})
    listed = ", ".join(map(one_line, names[:MOST_NAMES])) or "none"
    compared = [metric.of_curve for metric in metrics[:1]]
    for metric in metrics:
        if ended and metric.name not in names:
            text = f"no trial reports {one_line(metric.name)}; their numbers: {listed}"
            yield Doubt(text, frozenset(one.batch for one, _ in ended))
    again = [
        one
        for one in trials
        if one.record is not None and any(step_restarts(one.record.curve(name)) for name in compared)
    ]
    if again:
        verb = "reports steps" if len(again) == 1 else "report steps"
        text = (
            f"{count_trials(len(again))} {verb} again that were passed, as folds do: "
            "early stopping does not use their curves"
        )
        yield Doubt(text, frozenset(one.batch for one in again))


def identical_metrics(trials: Iterable[TrialResult], metrics: Sequence[Metric]) -> Iterator[Doubt]:
    """Yield doubts about equal numbers of trials of one program; `metrics` are those of its sweep."""
    measured = [one for one in trials if one.status.is_success and _reported(one)]
    batches: dict[str, list[TrialResult]] = defaultdict(list)
    for one in measured:
        batches[one.batch].append(one)
    # Batches of several configurations whose trials report the same numbers throughout.
    equal = [
        batch
        for batch, members in batches.items()
        if len({canonical_json(one.assignment) for one in members}) > 1
        and all(_reported(one) == _reported(members[0]) for one in members)
    ]
    # Several configurations may have one value of each metric of the sweep, whatever else they report.
    objectives = {tuple(_reported(one).get(each.name) for each in metrics) for one in measured}
    is_same = len(objectives) == 1 and None not in next(iter(objectives))
    configurations = {canonical_json(one.assignment) for one in measured}
    if not equal and is_same and len(configurations) >= FEWEST_CONFIGURATIONS:
        shared = _reported(measured[0])
        values = ", ".join(f"{one_line(each.name)} {format_number(shared[each.name])}" for each in metrics)
        yield _ignored(f"all {count_trials(len(measured))} report {values}", batches)
        return
    for batch in equal:
        names = ", ".join(sorted(map(one_line, _reported(batches[batch][0]))))
        text = f"all {count_trials(len(batches[batch]))} of {batch} report the same {names}"
        yield _ignored(text, [batch])
    suspects = [
        pair for pair in _pairs(measured, metrics) if pair[0].batch not in equal or pair[1].batch not in equal
    ]
    if suspects:
        named = suspects[:MOST_PAIRS]
        pairs = "; ".join(f"{first.trial} and {second.trial}" for first, second, _ in named)
        numbers = "; ".join(dict.fromkeys(what for *_, what in named))
        left = len(suspects) - len(named)
        others = f", and {left} more pairs agree" if left else ""
        yield Doubt(
            f"{pairs} have other values, but agree to the last digit in {numbers}{others}: "
            "unless these are coarse, one has read files of the other",
            frozenset(trial.batch for *pair, _ in suspects for trial in pair),
        )


def _ignored(what: str, batches: Iterable[str]) -> Doubt:
    return Doubt(f"{what}, whatever their values: does the program use its arguments?", frozenset(batches))


def _reported(trial: TrialResult) -> Mapping[str, float]:
    metrics = {} if trial.record is None else trial.record.metrics
    return {name: value for name, value in metrics.items() if value is not None}


def _pairs(
    trials: Sequence[TrialResult], metrics: Sequence[Metric]
) -> list[tuple[TrialResult, TrialResult, str]]:
    """Return the pairs of trials with different values and equal numbers, in order of trials, with these numbers."""
    configurations = [canonical_json(one.assignment) for one in trials]
    agreed = dict(_equal_metrics(trials, metrics[0].name))
    # Others may agree by right, as the schedule of a learning rate does.
    agreed |= _equal_curves(trials, {metrics[0].of_curve, *(metric.name for metric in metrics)})
    return [
        (trials[one], trials[other], agreed[one, other])
        for one, other in sorted(agreed)
        if configurations[one] != configurations[other]
        if trials[one].trial != trials[other].parent and trials[other].trial != trials[one].parent
    ]


def _equal_curves(
    trials: Sequence[TrialResult], names: AbstractSet[str]
) -> Iterator[tuple[tuple[int, int], str]]:
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, one in enumerate(trials):
        for name, curve in one.record.curves.items() if one.record else ():
            if name not in names:
                continue
            # The text of a recorded curve is compared, not its points: to read all of them takes seconds.
            text = curve.text if isinstance(curve, Curve) else canonical_json(curve)
            places[name, text].append(place)
    for (_, text), equal in places.items():
        points = Curve(text) if len(equal) > 1 else ()
        if len(points) >= FEWEST_POINTS and len({value for _, value in points}) > 1:
            for pair in combinations(equal[:MOST_TIED], 2):
                yield pair, f"a curve of {len(points)} points"


def _equal_metrics(trials: Sequence[TrialResult], objective: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the pairs of places with enough metrics in common.

    A metric that all trials have in common shows nothing, such as the number of epochs, unless the objective is
    one of these.
    """
    tied: dict[tuple[str, float], list[int]] = defaultdict(list)
    values: dict[str, set[float]] = defaultdict(set)
    for place, one in enumerate(trials):
        for name, value in _reported(one).items():
            values[name].add(value)
            if value not in COMMON:
                tied[name, value].append(place)
    shared: dict[tuple[int, int], dict[float, str]] = defaultdict(dict)
    for (name, value), places in sorted(tied.items()):
        if len(values[name]) > 1 or len(values[objective]) == 1:
            for pair in combinations(places[:MOST_TIED], 2):
                # One number under two names is one agreement.
                shared[pair].setdefault(value, name)
    for pair, names in shared.items():
        if len(names) >= FEWEST_METRICS:
            yield pair, ", ".join(sorted(map(one_line, names.values())))


def may_be_identical(rows: Sequence[SummaryRow], objective: str) -> bool:
    """Return whether rows of one program have a number in common that `identical_metrics` could report.

    Without one, no record needs to be read. A number that all rows have in common counts for the objective only.
    """
    configurations: dict[tuple[str, float], str] = {}
    values: dict[str, set[float]] = defaultdict(set)
    for row in rows:
        for name, value in row.metrics.items():
            values[name].add(value)
    return any(
        configurations.setdefault((name, value), key) != key
        for row in rows
        for key in [canonical_json(row.assignment)]
        for name, value in row.metrics.items()
        if name == objective or len(values[name]) > 1
    )
