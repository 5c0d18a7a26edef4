"""Optuna's samplers as proposers: evidence in, proposals out; no file and no database.

The only module that uses Optuna's study; imported only by rounds that need it. It calls private methods of Optuna, so
pyproject.toml limits its version.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Self, assert_never

from sweepledger.errors import ToolError
from sweepledger.search.adaptive.proposer import Evidence, Proposer
from sweepledger.search.encoding import DECIMALS, Coordinate, Coordinates, EncodedDimension, EncodedSpace
from sweepledger.structs.domain import Categorical, Ordinal, UnitInterval
from sweepledger.structs.record import Status
from sweepledger.structs.sweep import Sweep

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState
except ImportError as error:
    raise ToolError.missing_library("the methods tpe and nsga2 require Optuna", extra="adaptive") from error

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Optuna requires the times of a trial, but the samplers do not use them."""

STATES = {Status.OK: TrialState.COMPLETE, Status.PRUNED: TrialState.PRUNED, Status.FAILED: TrialState.FAIL}


class _Recorded(FrozenTrial):
    """A trial whose deep copy is itself; Optuna's storage copies trials, which would take most of the time."""

    def __deepcopy__(self, _: Mapping[int, Any]) -> Self:
        return self


def optuna_proposer(
    sweep: Sweep, sampler: BaseSampler, space: EncodedSpace, evidence: Sequence[Evidence]
) -> Proposer:
    """Return the proposer with one of Optuna's samplers, which is created within `without_warnings`."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    directions = [StudyDirection[metric.goal.name] for metric in sweep.metrics]
    with without_warnings():
        return _OptunaProposer(optuna.create_study(sampler=sampler, directions=directions), space, evidence)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence Optuna's warnings about experimental features; its version is limited and recorded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _OptunaProposer:
    """A study in memory; accepted proposals stay open in it, so that the next ones avoid them."""

    version = f"optuna {optuna.__version__}"

    def __init__(self, study: optuna.Study, space: EncodedSpace, evidence: Sequence[Evidence]) -> None:
        self.study = study
        self.distributions = {dimension.name: _distribution(dimension) for dimension in space.dimensions}
        self.study.add_trials(
            [self._trial(entry.coordinates, STATES[entry.state], entry.values) for entry in evidence]
        )
        self.trial: Trial | None = None

    def begin(self) -> None:
        """Begin a new proposal."""
        with without_warnings():
            self.trial = self.study.ask()

    def propose(self, dimension: EncodedDimension) -> Coordinate:
        """Propose the candidate's coordinate in a dimension."""
        assert self.trial is not None
        value = self.trial._suggest(dimension.name, self.distributions[dimension.name])  # noqa: SLF001
        return round(float(value), DECIMALS) if isinstance(dimension.kind, UnitInterval) else int(value)

    def end(self, *, accepted: bool) -> None:
        """End the proposal: an accepted one counts as running, a rejected one as failed."""
        assert self.trial is not None
        if not accepted:
            self.study.tell(self.trial, state=TrialState.FAIL)

    def add_pending(self, coordinates: Coordinates) -> None:
        """Add a configuration without results as a running trial."""
        self.study.add_trial(self._trial(coordinates, TrialState.RUNNING))

    def _trial(
        self, coordinates: Coordinates, state: TrialState, values: Sequence[float] | None = None
    ) -> FrozenTrial:
        last = values[0] if values and state is TrialState.PRUNED else None
        return _Recorded(
            number=-1,
            trial_id=-1,
            state=state,
            value=None,
            values=None if state is not TrialState.COMPLETE or values is None else list(values),
            datetime_start=LONG_AGO,
            datetime_complete=None if state is TrialState.RUNNING else LONG_AGO,
            params=dict(coordinates),
            distributions={name: self.distributions[name] for name in coordinates},
            user_attrs={},
            system_attrs={},
            intermediate_values={} if last is None else {0: last},
        )


def _distribution(dimension: EncodedDimension) -> BaseDistribution:
    match dimension.kind:
        case UnitInterval():
            return FloatDistribution(0.0, 1.0)
        case Ordinal(count):
            return IntDistribution(0, count - 1)
        case Categorical(count):
            return CategoricalDistribution(tuple(range(count)))
        case _:
            assert_never(dimension.kind)
