"""The one door to Optuna: evidence in, proposals out; no file, no database, no word of its own.

Imported late, and only where a round is made by it.
"""

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, assert_never

from generator.errors import ToolError
from generator.search.adaptive.chance import seed_of
from generator.search.adaptive.coding import (
    DECIMALS,
    CodedSpace,
    Dimension,
    Fraction,
    Ordered,
    Place,
    Places,
    Unordered,
)
from generator.search.adaptive.evidence import State
from generator.search.adaptive.proposing import Proposer, Told
from generator.structs.adaptive import Method, Search
from generator.structs.sweep import Goal, Sweep

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import BaseSampler, GPSampler, TPESampler
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, Trial, TrialState

    from generator.search.adaptive.genetic import Generations
except ImportError as error:
    raise ToolError(
        "searches by rounds are carried out by Optuna, which is not installed",
        hint="`pip install 'sweepledger[adaptive]'`",
    ) from error

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Optuna wants to know when a trial ran, and makes nothing of it."""

CANDIDATES = 64
"""That TPE weighs for each proposal. Its usual 24 find as much; another number would draw other rounds."""

SEED_LIMIT = 2**32
"""Of the random numbers that Optuna takes from NumPy."""

STATES = {State.OK: TrialState.COMPLETE, State.PRUNED: TrialState.PRUNED, State.FAILED: TrialState.FAIL}


class _Recorded(FrozenTrial):
    """A trial that nobody changes: the storage would copy each, deeply, which takes longer than all else."""

    def __deepcopy__(self, _: Mapping[int, Any]) -> Self:
        return self


def proposer(sweep: Sweep, search: Search, space: CodedSpace, told: Sequence[Told], number: int) -> Proposer:
    """Give the model of a method, which has been told everything. Raises ToolError where one is missing."""
    seed = seed_of(search.seed, number, "engine") % SEED_LIMIT
    if search.method is Method.CMA_ES:
        from generator.search.adaptive.strategy import Strategy  # noqa: PLC0415 - half a second for the others

        return Strategy(sweep.metric, search, space, told, seed)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Some of what is used is marked as new; a version of Optuna is locked, and its name is recorded.
        warnings.simplefilter("ignore")
        directions = [_direction(metric.goal) for metric in sweep.metrics]
        study = optuna.create_study(sampler=_sampler(search, told, seed), directions=directions)
        return _Study(study, space, told)


def _sampler(search: Search, told: Sequence[Told], seed: int) -> BaseSampler:
    match search.method:
        case Method.TPE:
            return TPESampler(
                multivariate=True, group=True, constant_liar=True, n_ei_candidates=CANDIDATES, seed=seed
            )
        case Method.BAYES:
            return _gaussian_process(seed)
        case Method.NSGA2:
            fine = [one.evidence.round for one in told if one.evidence.state is State.OK]
            return Generations(search.rounds.size, fine, seed)
        case method:
            raise AssertionError(f"{method} is not Optuna's")


def _gaussian_process(seed: int) -> BaseSampler:
    if importlib.util.find_spec("torch") is None:
        raise ToolError(
            "method: bayes is carried out with torch, which is not installed",
            hint="`pip install 'sweepledger[bayes]'`, or method: tpe",
        )
    return _SingleThreaded(seed=seed, warn_independent_sampling=False)


class _SingleThreaded(GPSampler):
    """A Gaussian process whose sums have one order: several threads add up in another, and are no faster."""

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Propose with one thread, and leave torch as it was."""
        import torch  # noqa: PLC0415 - it takes two seconds, and only this method needs it

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return super().sample_relative(study, trial, search_space)
        finally:
            torch.set_num_threads(threads)


def _direction(goal: Goal) -> StudyDirection:
    return StudyDirection.MAXIMIZE if goal is Goal.MAXIMIZE else StudyDirection.MINIMIZE


class _Study:
    """A study in memory; proposals that are taken stay open in it, so that the next ones keep away."""

    version = f"optuna {optuna.__version__}"

    def __init__(self, study: optuna.Study, space: CodedSpace, told: Sequence[Told]) -> None:
        self.study = study
        self.distributions = {one.name: _distribution(one) for one in space.dimensions}
        self.study.add_trials([self._recorded(one) for one in told])
        self.trial: Trial | None = None

    def begin(self) -> None:
        """Begin a new proposal."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask()

    def place(self, dimension: Dimension) -> Place:
        """Propose where on a dimension the candidate lies."""
        assert self.trial is not None
        found = self.trial._suggest(dimension.name, self.distributions[dimension.name])  # noqa: SLF001
        return round(float(found), DECIMALS) if isinstance(dimension.kind, Fraction) else int(found)

    def end(self, *, accepted: bool) -> None:
        """End the proposal: what is taken is still running, and what is not has failed."""
        assert self.trial is not None
        if not accepted:
            self.study.tell(self.trial, state=TrialState.FAIL)

    def taken(self, places: Places) -> None:
        """Hear of an assignment that is tried in this round without having been proposed."""
        self.study.add_trial(self._trial(places, TrialState.RUNNING))

    def _recorded(self, told: Told) -> FrozenTrial:
        evidence = told.evidence
        return self._trial(told.places, STATES[evidence.state], evidence.values)

    def _trial(self, places: Places, state: TrialState, values: Sequence[float] | None = None) -> FrozenTrial:
        last = values[0] if values and state is TrialState.PRUNED else None
        return _Recorded(
            number=-1,
            trial_id=-1,
            state=state,
            value=None,
            values=None if state is not TrialState.COMPLETE or values is None else list(values),
            datetime_start=LONG_AGO,
            datetime_complete=None if state is TrialState.RUNNING else LONG_AGO,
            params=dict(places),
            distributions={name: self.distributions[name] for name in places},
            user_attrs={},
            system_attrs={},
            intermediate_values={} if last is None else {0: last},
        )


def _distribution(dimension: Dimension) -> BaseDistribution:
    match dimension.kind:
        case Fraction():
            return FloatDistribution(0.0, 1.0)
        case Ordered(count):
            return IntDistribution(0, count - 1)
        case Unordered(count):
            return CategoricalDistribution(tuple(range(count)))
        case _:
            assert_never(dimension.kind)
