"""The interface of a model that proposes candidates, and the evidence that it receives.

Evidence has one entry per configuration, in an order that does not depend on the order of the records.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, mean
from typing import Protocol

from sweepledger.search.adaptive.observations import Observation, sort_observations
from sweepledger.search.configurations import Configuration
from sweepledger.search.encoding import Coordinate, Coordinates, EncodedDimension, EncodedSpace
from sweepledger.structs.metric import Impute
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
    coordinates: Coordinates
    state: Status
    """`ok`, `pruned` (the values are the last that it reported), or `failed`."""
    values: Values | None
    """Means over replicates; None if it failed."""
    round: int | None


def encode_evidence(
    sweep: Sweep, space: EncodedSpace, observations: Iterable[Observation]
) -> Iterator[Evidence]:
    """Yield the results of each configuration that lies in the space; missing and cancelled trials do not count."""
    metrics = sweep.metrics
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
        """Return the metric values assigned to diverged trials; None if no trial is ok."""
        if not extremes:
            return None
        latest_values = trial.values or [worst for worst, _ in extremes]
        return tuple(
            {Impute.WORST: worst, Impute.BEST: best, Impute.LATEST: latest}[metric.impute]
            for metric, (worst, best), latest in zip(metrics, extremes, latest_values, strict=True)
        )

    for first, *others in groups.values():
        coordinates = space.encode(first.configuration)
        state, values = _combined((first, *others), imputed)
        if coordinates is not None and state is not None:
            yield Evidence(first.configuration, coordinates, state, values, first.round)


def _combined(
    group: Iterable[Observation], imputed: Callable[[Observation], Values | None]
) -> tuple[Status | None, Values | None]:
    """Return the state of a configuration, and the means of its replicates; neither if no trial counts."""
    counted: list[Values] = []
    pruned: list[Values] = []
    state = None
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
                state = Status.FAILED
    if counted or pruned:
        means = tuple(map(_mean, zip(*(counted or pruned), strict=True)))
        return Status.OK if counted else Status.PRUNED, means
    return state, None


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
        """Add a configuration without results that was not just proposed, so that later proposals avoid it."""


ProposerFactory = Callable[[Sweep, AdaptiveSearch, EncodedSpace, Sequence[Evidence], int], Proposer]
"""The function `create_proposer` of a method's module; the last argument is the seed."""
