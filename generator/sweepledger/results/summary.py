"""What a sweep has shown so far: counts, the winner, the best trials, the main effect of each parameter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

from generator.formats.summary import parameter_names
from generator.results.inference import Interval, mean, optimism
from generator.results.inputs import inputs_digest
from generator.results.outcomes import Asked, BatchResults, JudgedBatch, judge, one_a_trial
from generator.results.replicated import Replicated, taken_together
from generator.results.verdict import Field, Verdict, decide, said, warnings
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
    spec_digest: str | None
    """Of the spec as it stood when this was summarised; None where there was none."""
    inputs_digest: str
    """Of the locks, the records and the spec: results/inputs.py says how."""
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
    """The best trial of the newest program that today's spec asks for; None where `verdict` says why.

    With replicates an assignment wins: this is the first of its trials that is ok.
    """
    verdict: Verdict
    reason: str
    """The verdict in words, with the numbers behind it."""
    warnings: tuple[str, ...]
    """What a reader must know before believing the winner."""
    interval: Interval | None
    """Of the winner's mean, 95 %; None without replicates, and where the winner has no second result."""
    optimism: float | None
    """With replicates, how much the best mean is expected to overstate itself by selection alone."""
    replicated: tuple[Replicated, ...]
    """The newest program's assignments, best first, where the sweep has replicates; else empty."""
    top: tuple[Outcome, ...]
    """The best trials of those that may win."""
    effects: tuple[Effect, ...]
    """Of the parameters that vary over the newest program's ok trials, the widest range first."""
    resource: str | None = None
    """The parameter that says what a trial of a search gets; those that go on get more of it."""

    @property
    def lock(self) -> Lock:
        """The newest batch's lock: its metric and its program are the sweep's."""
        return self.batches[-1].lock

    @property
    def best(self) -> float | None:
        """The winner's objective; with replicates the mean over its assignment's."""
        if self.winner is None:
            return None
        return self.replicated[0].mean if self.replicated else self.winner.metric(self.metric.name)

    def is_current(self, outcome: Outcome) -> bool:
        """Tell whether a trial ran the newest program: others are shown, but never ranked."""
        return outcome.program == self.program

    def may_win(self, outcome: Outcome) -> bool:
        """Tell whether a trial ran the newest program and today's spec, as far as known, asks for it."""
        return self.is_current(outcome) and outcome.in_spec is not False


def summarise(
    batches: Iterable[BatchResults],
    *,
    description: str,
    asked: Asked | None = None,
    spec_digest: str | None = None,
) -> Summary:
    """Judge all batches of one sweep; their order does not matter. Raises ValueError if there is none.

    `asked` tells of an assignment and a replicate whether today's spec asks for them; None where nobody can.
    `spec_digest` is the SHA-256 of that spec's file, which lies where the newest lock says.
    """
    judged = _judged(batches, asked)
    lock = judged[-1].lock
    outcomes = one_a_trial(outcome for batch in judged for outcome in batch.outcomes)
    current = [outcome for outcome in outcomes if outcome.program == lock.program.digest]
    eligible = [outcome for outcome in current if outcome.in_spec is not False]
    field = _field(outcomes, eligible, lock)
    verdict = decide(field)
    first = field.ranked[0] if verdict.is_won else None
    return Summary(
        sweep=lock.sweep,
        description=description,
        spec_digest=spec_digest,
        inputs_digest=inputs_digest(judged, lock.spec_path, spec_digest),
        metric=lock.metric,
        program=lock.program.digest,
        batches=judged,
        outcomes=outcomes,
        counts=_counts(outcomes),
        winner=None if first is None else first.trial,
        verdict=verdict,
        reason=said(verdict, field),
        warnings=tuple(warnings(field, outcomes)),
        interval=None if first is None else first.interval,
        optimism=optimism([one.values for one in field.ranked]),
        replicated=taken_together(current, lock.metric) if field.has_replicates else (),
        top=tuple(_ranked(eligible, lock.metric)[:TOP]),
        effects=_effects(current, lock.metric.name),
    )


def _judged(batches: Iterable[BatchResults], asked: Asked | None) -> tuple[JudgedBatch, ...]:
    found = tuple(judge(batch, asked) for batch in sorted(batches, key=lambda batch: batch.lock.number))
    if not found or len({batch.lock.sweep for batch in found}) > 1:
        raise ValueError("the batches must be of one sweep, and at least one")
    return found


def _field(outcomes: Iterable[Outcome], eligible: Sequence[Outcome], lock: Lock) -> Field:
    """Take the trials of every assignment together, and sort these by whether they may win."""
    found, program = taken_together(outcomes, lock.metric), lock.program.digest
    current = [one for one in found if one.trial.program == program]
    return Field(
        ranked=tuple(one for one in current if one.in_spec is not False and one.mean is not None),
        outside=tuple(one for one in current if one.in_spec is False),
        earlier=tuple(one for one in found if one.trial.program != program),
        metric=lock.metric,
        trials=len(eligible),
        # Two rows of one assignment are repetitions, too, whatever number a table made by hand gives them.
        has_replicates=any(one.replicate for one in eligible)
        or any(len(one.trials) > 1 for one in current if one.in_spec is not False),
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
    levels = [Level(value, mean(objectives), len(objectives)) for value, objectives in groups.values()]
    numbers = as_numbers(level.value for level in levels)
    if numbers is not None:
        levels = [level for _, level in sorted(zip(numbers, levels, strict=True), key=itemgetter(0))]
    return Effect(parameter, tuple(levels))


def as_numbers(values: Iterable[Value]) -> list[int | float] | None:
    """Give values as numbers if all of them are; booleans are none, whatever Python says."""
    listed = list(values)
    numbers = [value for value in listed if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers if len(numbers) == len(listed) else None
