"""Rounds of halving, hyperband and asha: many trials get little of a resource, and the best continue with more.

The state of a search is read from its trials: the amount that each received, and its parent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sweepledger import __version__
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.observations import KnownTrials, Observation, Round, SearchEnd, Suggestion
from sweepledger.search.candidates import feasible_configurations
from sweepledger.search.configurations import Configuration
from sweepledger.search.rng import derive_seed
from sweepledger.structs.metric import Goal, Metric
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch, Method, Resource, hyperband_brackets
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json

ENGINE = f"sweepledger {__version__}"


@dataclass(frozen=True, slots=True)
class Rungs:
    """The trials of a search by rung."""

    resource: Resource
    metric: Metric
    amounts: tuple[int, ...]
    """The resource that each rung gives."""
    trials: Mapping[int, Sequence[Observation]]
    """The recorded ones by rung; without trials whose amount belongs to no rung."""
    pending: Mapping[int, Sequence[Observation]]
    """Those without results, likewise."""
    configurations: frozenset[str]
    """Keys of the configurations that were tried with any amount."""

    @classmethod
    def of(
        cls, sweep: Sweep, resource: Resource, own: Sequence[Observation], pending: Sequence[Observation] = ()
    ) -> "Rungs":
        """Assign a search's own trials, which are in order, to rungs."""
        tried = {
            canonical_json(without_resource(trial.configuration, resource)) for trial in (*own, *pending)
        }
        return cls(
            resource,
            sweep.metric,
            resource.rungs,
            _by_rung(resource, own),
            _by_rung(resource, pending),
            frozenset(tried),
        )

    def ranked(self, trials: Iterable[Observation]) -> list[Observation]:
        """Sort the trials that can continue, the best first; equal ones by digest."""
        sign = -1.0 if self.metric.goal is Goal.MAXIMIZE else 1.0
        candidates = [
            (sign * trial.values[0], trial.trial, trial)
            for trial in trials
            if trial.status is Status.OK and trial.values
        ]
        return [trial for _, _, trial in sorted(candidates, key=lambda entry: entry[:2])]

    def promote(self, trial: Observation, rung: int) -> Suggestion:
        """Suggest that a trial continues on a rung."""
        return Suggestion({**trial.configuration, self.resource.parameter: self.amounts[rung]}, trial.id)

    def parents_on(self, rung: int) -> frozenset[str]:
        """Return the ids of the trials that continue on a rung, with or without a result."""
        children = (*self.trials.get(rung, ()), *self.pending.get(rung, ()))
        return frozenset(trial.parent for trial in children if trial.parent is not None)


def _by_rung(resource: Resource, trials: Iterable[Observation]) -> dict[int, list[Observation]]:
    rungs: dict[int, list[Observation]] = {}
    for trial in trials:
        amount = trial.configuration.get(resource.parameter)
        if amount in resource.rungs:
            rungs.setdefault(resource.rungs.index(int(str(amount))), []).append(trial)
    return rungs


def without_resource(configuration: Configuration, resource: Resource) -> dict[str, Value]:
    """Return a configuration without the amount of the resource."""
    return {name: value for name, value in configuration.items() if name != resource.parameter}


def halving_round(
    sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int
) -> Round | SearchEnd:
    """Compute the next round of halving, hyperband or asha."""
    assert search.resource is not None
    own, requested = trials.own, trials.requested
    rungs = Rungs.of(sweep, search.resource, own, trials.pending)
    newcomers = _new_configurations(search, rungs, number)
    match search.method:
        case Method.HALVING:
            suggested = _halving(search, rungs, newcomers)
        case Method.HYPERBAND:
            suggested = _hyperband(search, rungs, newcomers)
        case _:
            suggested = _asha(search, rungs, newcomers)
    suggestions = tuple(islice(suggested, termination.remaining_configurations(sweep, search, requested)))
    if suggestions:
        return Round(number, suggestions, 0, 0, ENGINE)
    if search.method is Method.ASHA or not own:
        return SearchEnd("exhausted", "no new configuration was found")
    return SearchEnd("last-rung", "no trial is left that could continue")


def _new_configurations(search: AdaptiveSearch, rungs: Rungs, number: int) -> Iterator[Configuration]:
    """Draw configurations that were not tried with any amount."""
    tried = set(rungs.configurations)
    for configuration in feasible_configurations(search.space, derive_seed(search.seed, number, "newcomers")):
        key = canonical_json(configuration)
        if key not in tried:
            tried.add(key)
            yield configuration


def _start(rungs: Rungs, newcomers: Iterator[Configuration], count: int, rung: int) -> Iterator[Suggestion]:
    for configuration in islice(newcomers, count):
        yield Suggestion({**configuration, rungs.resource.parameter: rungs.amounts[rung]})


def _halving(
    search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]
) -> Iterator[Suggestion]:
    if not rungs.trials:
        yield from _start(rungs, newcomers, search.rounds.size, 0)
        return
    top = max(rungs.trials)
    if top + 1 < len(rungs.amounts):
        yield from _promote_best(rungs, rungs.trials[top], top + 1)


def _promote_best(rungs: Rungs, trials: Sequence[Observation], rung: int) -> Iterator[Suggestion]:
    """Promote one trial in eta, and at least one."""
    for trial in rungs.ranked(trials)[: max(1, len(trials) // rungs.resource.eta)]:
        yield rungs.promote(trial, rung)


def _hyperband(
    search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]
) -> Iterator[Suggestion]:
    """Continue all brackets on their next rung; a trial's bracket is the rung of its first ancestor."""
    if not rungs.trials:
        for rung, count in hyperband_brackets(search.rounds.size, rungs.resource):
            yield from _start(rungs, newcomers, count, rung)
        return
    brackets = _first_rungs(rungs)
    for bracket, _ in hyperband_brackets(search.rounds.size, rungs.resource):
        members = {
            rung: [trial for trial in trials if brackets[trial.id] == bracket]
            for rung, trials in rungs.trials.items()
        }
        reached = max((rung for rung, trials in members.items() if trials), default=None)
        if reached is not None and reached + 1 < len(rungs.amounts):
            yield from _promote_best(rungs, members[reached], reached + 1)


def _first_rungs(rungs: Rungs) -> dict[str, int]:
    """Return the rung on which each trial's first ancestor started."""
    first: dict[str, int] = {}
    for rung in sorted(rungs.trials):
        for trial in rungs.trials[rung]:
            first[trial.id] = first.get(trial.parent or "", rung)
    return first


def _asha(search: AdaptiveSearch, rungs: Rungs, newcomers: Iterator[Configuration]) -> Iterator[Suggestion]:
    """Promote the trials that are among the best of their rung so far, from the highest rung; then start new ones.

    This is `get_job` of Li et al. (2020), algorithm 2, once for each trial of the round: a rung consists of the
    trials that have ended on it, and a failed one ranks last.
    """
    free = search.rounds.size
    for rung in range(len(rungs.amounts) - 2, -1, -1):
        trials = rungs.trials.get(rung, ())
        best = rungs.ranked(trials)[: len(trials) // rungs.resource.eta]
        promoted = rungs.parents_on(rung + 1)
        for trial in best:
            if trial.id not in promoted and free:
                free -= 1
                yield rungs.promote(trial, rung + 1)
    yield from _start(rungs, newcomers, free, 0)
