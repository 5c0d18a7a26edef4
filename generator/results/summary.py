"""What a sweep has shown so far: counts, the winner, the best trials, the main effect of each parameter."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

from generator.formats.summary import parameter_names
from generator.results.outcomes import BatchResults, JudgedBatch, judge, one_a_trial
from generator.structs.batch import Lock
from generator.structs.record import Outcome, Status
from generator.structs.sweep import Goal, Metric
from generator.structs.values import Value, canonical_json

TOP = 10


@dataclass(frozen=True, slots=True)
class Level:
    """One value of a parameter and how the trials with it did."""

    value: Value
    mean: float
    count: int


@dataclass(frozen=True, slots=True)
class Effect:
    """The main effect of a parameter: the mean objective at each of its values, whatever the others were."""

    parameter: str
    levels: tuple[Level, ...]
    """At least two; ascending where all are numbers, else in the order in which they first appear."""

    @property
    def range(self) -> float:
        """How far the means lie apart."""
        means = [level.mean for level in self.levels]
        return max(means) - min(means)


@dataclass(frozen=True, slots=True)
class Summary:
    """A sweep's results as one value: every file of its results folder follows from it."""

    sweep: str
    description: str
    metric: Metric
    program: str
    """Digest of the newest program, 64 hex digits."""
    batches: tuple[JudgedBatch, ...]
    """By number."""
    outcomes: tuple[Outcome, ...]
    """One a trial, by batch and row."""
    counts: Mapping[Status, int]
    """Of every status, zero included."""
    winner: Outcome | None
    """The best trial of the newest program; None if none of them is ok."""
    top: tuple[Outcome, ...]
    """The best trials of the newest program, the winner first."""
    effects: tuple[Effect, ...]
    """Of the parameters that vary over the newest program's ok trials, the widest range first."""

    @property
    def lock(self) -> Lock:
        """The newest batch's lock: its metric and its program are the sweep's."""
        return self.batches[-1].lock

    @property
    def best(self) -> float | None:
        """The winner's objective."""
        return None if self.winner is None else self.winner.metric(self.metric.name)

    def is_current(self, outcome: Outcome) -> bool:
        """Tell whether a trial ran the newest program: others are shown, but never ranked."""
        return outcome.program == self.program


def summarise(batches: Iterable[BatchResults], *, description: str) -> Summary:
    """Judge all batches of one sweep; their order does not matter. Raises ValueError if there is none."""
    judged = tuple(judge(batch) for batch in sorted(batches, key=lambda batch: batch.lock.number))
    if not judged or len({batch.lock.sweep for batch in judged}) > 1:
        raise ValueError("the batches must be of one sweep, and at least one")
    lock = judged[-1].lock
    outcomes = one_a_trial(outcome for batch in judged for outcome in batch.outcomes)
    program = lock.program.digest
    current = [outcome for outcome in outcomes if outcome.program == program]
    ranked = _ranked(current, lock.metric)
    return Summary(
        sweep=lock.sweep,
        description=description,
        metric=lock.metric,
        program=program,
        batches=judged,
        outcomes=outcomes,
        counts=_counts(outcomes),
        winner=ranked[0] if ranked else None,
        top=tuple(ranked[:TOP]),
        effects=_effects(current, lock.metric.name),
    )


def _counts(outcomes: Iterable[Outcome]) -> Mapping[Status, int]:
    counts = dict.fromkeys(Status, 0)
    for outcome in outcomes:
        counts[outcome.status] += 1
    return MappingProxyType(counts)


def _ranked(outcomes: Iterable[Outcome], metric: Metric) -> list[Outcome]:
    sign = -1 if metric.goal is Goal.MAXIMIZE else 1
    scored = [
        (sign * value, outcome.trial, position, outcome)
        for position, outcome in enumerate(outcomes)
        if (value := outcome.metric(metric.name)) is not None
    ]
    return [outcome for *_, outcome in sorted(scored)]


def _effects(outcomes: Sequence[Outcome], metric: str) -> tuple[Effect, ...]:
    effects = (_effect(name, outcomes, metric) for name in parameter_names(outcomes))
    varied = [effect for effect in effects if len(effect.levels) > 1]
    return tuple(sorted(varied, key=lambda effect: -effect.range))


def _effect(parameter: str, outcomes: Iterable[Outcome], metric: str) -> Effect:
    groups: dict[str, tuple[Value, list[float]]] = {}
    for outcome in outcomes:
        objective = outcome.metric(metric)
        if objective is None or parameter not in outcome.assignment:
            continue
        value = outcome.assignment[parameter]
        groups.setdefault(canonical_json(value), (value, []))[1].append(objective)
    levels = [Level(value, _mean(objectives), len(objectives)) for value, objectives in groups.values()]
    numbers = as_numbers(level.value for level in levels)
    if numbers is not None:
        levels = [level for _, level in sorted(zip(numbers, levels, strict=True), key=itemgetter(0))]
    return Effect(parameter, tuple(levels))


def as_numbers(values: Iterable[Value]) -> list[int | float] | None:
    """Give values as numbers if all of them are; booleans are none, whatever Python says."""
    listed = list(values)
    numbers = [value for value in listed if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers if len(numbers) == len(listed) else None


def _mean(values: Sequence[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)
