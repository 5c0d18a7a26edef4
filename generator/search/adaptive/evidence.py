"""Recorded trials as evidence: one entry an assignment, in an order of its own, whoever lists them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from generator.search.adaptive.values import Observation
from generator.search.settling import Assignment
from generator.structs.adaptive import Impute
from generator.structs.record import Status
from generator.structs.sweep import Metric
from generator.structs.values import canonical_json

Values = tuple[float, ...]


class State(StrEnum):
    """What a model is told of an assignment."""

    OK = "ok"
    PRUNED = "pruned"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Evidence:
    """An assignment with all its replicates."""

    assignment: Assignment
    state: State
    values: Values | None
    """The mean over replicates; None where it failed."""
    round: int | None
    trial: str
    """The full digest of its first replicate."""
    parent: str | None = None


def in_order(observations: Iterable[Observation]) -> list[Observation]:
    """Sort trials: those of other sweeps first, then by round; equals by what they are."""
    return sorted(observations, key=lambda one: (one.round or 0, one.trial, one.replicate))


def key_of(assignment: Assignment) -> str:
    """Name an assignment by its content."""
    return canonical_json(assignment)


def gathered(observations: Iterable[Observation], metrics: Sequence[Metric]) -> list[Evidence]:
    """Make one entry of each assignment's replicates; trials that left nothing make none."""
    groups: dict[tuple[bool, str], list[Observation]] = {}
    ordered = in_order(observations)
    for one in ordered:
        groups.setdefault((one.round is None, key_of(one.assignment)), []).append(one)
    fine = [one.values for one in ordered if one.status is Status.OK and one.values is not None]
    worst, best = _extremes(fine, metrics)
    impute = _Imputation(metrics, worst, best)
    return [found for group in groups.values() for found in _entry(group, impute)]


@dataclass(frozen=True, slots=True)
class _Imputation:
    metrics: Sequence[Metric]
    worst: Values | None
    best: Values | None

    def of(self, one: Observation) -> Values | None:
        """Say what a diverged trial counts as; None as long as no trial is ok."""
        if self.worst is None or self.best is None:
            return None
        given = one.values or self.worst
        choice = zip(self.metrics, self.worst, self.best, given, strict=True)
        return tuple(
            {Impute.WORST: worst, Impute.BEST: best, Impute.LATEST: latest}[metric.impute]
            for metric, worst, best, latest in choice
        )


def _extremes(fine: Sequence[Values], metrics: Sequence[Metric]) -> tuple[Values | None, Values | None]:
    if not fine:
        return None, None
    worst, best = list(fine[0]), list(fine[0])
    for values in fine[1:]:
        for at, (metric, value) in enumerate(zip(metrics, values, strict=True)):
            worst[at] = value if metric.better(worst[at], value) else worst[at]
            best[at] = value if metric.better(value, best[at]) else best[at]
    return tuple(worst), tuple(best)


def _entry(group: Sequence[Observation], impute: _Imputation) -> Iterator[Evidence]:
    first = group[0]
    counted: list[Values] = []
    pruned: list[Values] = []
    has_failed = False
    for one in group:
        match one.status.kind:
            case Status.OK if one.values is not None:
                counted.append(one.values)
            case Status.DIVERGED if (values := impute.of(one)) is not None:
                counted.append(values)
            case Status.MISSING | Status.CANCELLED:
                pass
            case _ if one.status == PRUNED and one.values is not None:
                pruned.append(one.values)
            case _:
                has_failed = True
    if counted or pruned:
        state = State.OK if counted else State.PRUNED
        means = tuple(map(fmean, zip(*(counted or pruned), strict=True)))
        yield Evidence(first.assignment, state, means, first.round, first.trial, first.parent)
    elif has_failed:
        yield Evidence(first.assignment, State.FAILED, None, first.round, first.trial, first.parent)


PRUNED = "pruned"
"""The status of a trial that was ended early; its values are the last that it reported."""
