"""The interface of a model that proposes candidates, and the evidence that it receives.

Evidence has one entry per configuration, in an order that does not depend on the order of the records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, mean
from typing import Protocol

from sweepledger.search.adaptive.observations import Observation, sort_observations
from sweepledger.search.configurations import Configuration
from sweepledger.search.encoding import Coordinate, Coordinates, EncodedDimension, EncodedSpace
from sweepledger.structs.metric import Impute, Metric
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json

Values = tuple[float, ...]


class ModelError(Exception):
    """The model of a method cannot propose this round, for a reason that is the same on every machine."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The recorded results of one configuration with all its replicates."""

    configuration: Configuration
    state: Status
    """`ok`, `pruned` (the values are the last that it reported), or `failed`."""
    values: Values | None
    """Means over replicates; None if it failed."""
    round: int | None
    trial: str
    """The full digest of its first replicate."""
    parent: str | None = None
    coordinates: Coordinates = field(default_factory=dict)
    """Where it is in an encoded space; empty until it is encoded."""


def gather_evidence(observations: Iterable[Observation], metrics: Sequence[Metric]) -> list[Evidence]:
    """Combine the replicates of each configuration; missing and cancelled trials do not count."""
    groups: dict[tuple[bool, str], list[Observation]] = {}
    ordered = sort_observations(observations)
    for trial in ordered:
        groups.setdefault((trial.round is None, canonical_json(trial.configuration)), []).append(trial)
    ok = [trial.values for trial in ordered if trial.status is Status.OK and trial.values is not None]
    # The worst and the best value of each metric; nothing if no trial is ok.
    extremes = [
        sorted((min(column), max(column)), reverse=metric.better(min(column), max(column)))
        for metric, column in zip(metrics, zip(*ok, strict=True), strict=False)
    ]

    def imputed(trial: Observation) -> Values | None:
        """Return the values that a diverged trial counts as; None if no trial is ok."""
        if not extremes:
            return None
        latest_values = trial.values or [worst for worst, _ in extremes]
        return tuple(
            {Impute.WORST: worst, Impute.BEST: best, Impute.LATEST: latest}[metric.impute]
            for metric, (worst, best), latest in zip(metrics, extremes, latest_values, strict=True)
        )

    return [evidence for group in groups.values() for evidence in _combine(group, imputed)]


def _combine(
    group: Sequence[Observation], imputed: Callable[[Observation], Values | None]
) -> Iterator[Evidence]:
    first = group[0]
    counted: list[Values] = []
    pruned: list[Values] = []
    has_failed = False
    for trial in group:
        match trial.status.kind:
            case Status.OK if trial.values is not None:
                counted.append(trial.values)
            case Status.DIVERGED if (values := imputed(trial)) is not None:
                counted.append(values)
            case Status.MISSING | Status.CANCELLED:
                pass
            case Status.PRUNED if trial.values is not None:
                pruned.append(trial.values)
            case _:
                has_failed = True
    if counted or pruned:
        state = Status.OK if counted else Status.PRUNED
        means = tuple(map(_mean, zip(*(counted or pruned), strict=True)))
        yield Evidence(first.configuration, state, means, first.round, first.trial, first.parent)
    elif has_failed:
        yield Evidence(first.configuration, Status.FAILED, None, first.round, first.trial, first.parent)


def _mean(values: Sequence[float]) -> float:
    try:
        return fmean(values)
    except OverflowError:  # of the sum, although the mean is a number
        return mean(values)


class Proposer(Protocol):
    """A model that knows all evidence and proposes one candidate after another."""

    @property
    def version(self) -> str:
        """The library that proposes, and its version."""

    def begin(self) -> None:
        """Begin a new proposal."""

    def propose(self, dimension: EncodedDimension) -> Coordinate:
        """Propose the candidate's coordinate in a dimension."""

    def end(self, *, accepted: bool) -> None:
        """End the proposal; later proposals avoid an accepted candidate."""

    def add_pending(self, coordinates: Coordinates) -> None:
        """Take note of a configuration without results that it did not just propose, so that later ones avoid it."""


def encode_evidence(
    sweep: Sweep, space: EncodedSpace, observations: Sequence[Observation]
) -> Iterator[Evidence]:
    """Yield the evidence that lies in the space."""
    for evidence in gather_evidence(observations, sweep.metrics):
        coordinates = space.encode(evidence.configuration)
        if coordinates is not None:
            yield replace(evidence, coordinates=coordinates)


ProposerFactory = Callable[[Sweep, AdaptiveSearch, EncodedSpace, Sequence[Evidence], int], Proposer]
"""The function `create_proposer` of a method's module; the last argument is the seed."""
