"""Optuna's samplers as proposers: evidence in, proposals out; no file and no database.

The only module that uses Optuna's study; imported only by rounds that need it. It calls private methods of Optuna, so
pyproject.toml limits its version.
"""

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, assert_never

from sweepledger.errors import ToolError
from sweepledger.search.adaptive.proposer import EncodedEvidence, Proposer
from sweepledger.search.encoding import DECIMALS, Coordinate, Coordinates, EncodedDimension, EncodedSpace
from sweepledger.structs.domain import Categorical, Ordinal, UnitInterval
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch, Method
from sweepledger.structs.sweep import Sweep

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler, TPESampler
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState

    from sweepledger.search.adaptive.nsga2 import RoundwiseNSGAII
except ImportError as error:
    raise ToolError.missing_library("the methods tpe and nsga2 require Optuna", extra="adaptive") from error

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Optuna requires the times of a trial, but the samplers do not use them."""

CANDIDATES = 64
"""TPE's candidates per proposal. Its default of 24 works as well, but another number would change all rounds."""

STATES = {
    Status.OK: TrialState.COMPLETE,
    Status.PRUNED: TrialState.PRUNED,
    Status.FAILED: TrialState.FAIL,
}


class _Recorded(FrozenTrial):
    """A trial without deep copies, which the storage would make and which would take most of the time."""

    def __deepcopy__(self, _: Mapping[int, Any]) -> Self:
        return self


def create_optuna_proposer(
    sweep: Sweep, search: AdaptiveSearch, space: EncodedSpace, evidence: Sequence[EncodedEvidence], seed: int
) -> Proposer:
    """Create the proposer of tpe or nsga2."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Optuna warns of experimental features; its version is limited and recorded.
        warnings.simplefilter("ignore")
        directions = [StudyDirection[metric.goal.name] for metric in sweep.metrics]
        study = optuna.create_study(sampler=_sampler(search, evidence, seed), directions=directions)
        return _OptunaProposer(study, space, evidence)


def _sampler(search: AdaptiveSearch, evidence: Sequence[EncodedEvidence], seed: int) -> BaseSampler:
    match search.method:
        case Method.TPE:
            return TPESampler(
                multivariate=True,
                group=True,
                constant_liar=True,
                n_ei_candidates=CANDIDATES,
                n_startup_trials=search.rounds.startup,
                seed=seed,
            )
        case Method.NSGA2:
            rounds = [entry.evidence.round for entry in evidence if entry.evidence.state is Status.OK]
            return RoundwiseNSGAII(search.rounds.size, rounds, seed)
        case method:
            raise AssertionError(f"Optuna has no sampler for {method}")


class _OptunaProposer:
    """A study in memory; accepted proposals stay open in it, so that the next ones avoid them."""

    version = f"optuna {optuna.__version__}"

    def __init__(self, study: optuna.Study, space: EncodedSpace, evidence: Sequence[EncodedEvidence]) -> None:
        self.study = study
        self.distributions = {dimension.name: _distribution(dimension) for dimension in space.dimensions}
        self.study.add_trials([self._recorded(entry) for entry in evidence])
        self.trial: Trial | None = None

    def begin(self) -> None:
        """Begin a new proposal."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask()

    def propose(self, dimension: EncodedDimension) -> Coordinate:
        """Propose the candidate's coordinate in a dimension."""
        assert self.trial is not None
        value = self.trial._suggest(dimension.name, self.distributions[dimension.name])  # noqa: SLF001
        return round(float(value), DECIMALS) if isinstance(dimension.kind, UnitInterval) else int(value)

    def end(self, *, accepted: bool) -> None:
        """End the proposal: an accepted one counts as running, another as failed."""
        assert self.trial is not None
        if not accepted:
            self.study.tell(self.trial, state=TrialState.FAIL)

    def add_pending(self, coordinates: Coordinates) -> None:
        """Add a configuration without results as a running trial."""
        self.study.add_trial(self._trial(coordinates, TrialState.RUNNING))

    def _recorded(self, entry: EncodedEvidence) -> FrozenTrial:
        return self._trial(entry.coordinates, STATES[entry.evidence.state], entry.evidence.values)

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
