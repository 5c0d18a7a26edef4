"""Rungs of trials, for the methods that halve: many trials get little of a resource, and the best continue with more.

The state of a search is read from its trials: the amount that each received, and its parent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sweepledger import __version__
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.observations import KnownTrials, Observation, Round, SearchEnd, Suggestion
from sweepledger.search.candidates import feasible_configurations
from sweepledger.search.configurations import Configuration, TriedConfigurations
from sweepledger.search.rng import derive_seed
from sweepledger.structs.metric import Metric
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch, Resource
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

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

    @classmethod
    def of(
        cls, sweep: Sweep, resource: Resource, own: Sequence[Observation], pending: Sequence[Observation] = ()
    ) -> "Rungs":
        """Assign a search's own trials, which are sorted, to rungs."""
        rungs, waiting = _by_rung(resource, own), _by_rung(resource, pending)
        return cls(resource, sweep.metric, resource.rungs, rungs, waiting)

    def ranked(self, trials: Iterable[Observation]) -> list[Observation]:
        """Sort the trials that can continue, the best first; equal ones by digest."""
        candidates = [
            (self.metric.sort_key(trial.values[0]), trial.trial, trial)
            for trial in trials
            if trial.status is Status.OK and trial.values
        ]
        return [trial for _, _, trial in sorted(candidates, key=lambda entry: entry[:2])]

    def promote(self, trial: Observation, rung: int) -> Suggestion:
        """Suggest that a trial continues on a rung."""
        return Suggestion({**trial.configuration, self.resource.parameter: self.amounts[rung]}, trial.id)


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


Suggest = Callable[[AdaptiveSearch, Rungs, Iterator[Configuration]], Iterator[Suggestion]]
"""A method's choice: who continues and, from configurations that were not tried, who starts."""


def rung_round(
    sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int, suggest: Suggest
) -> Round | SearchEnd:
    """Compute the next round from the trials on each rung."""
    assert search.resource is not None
    own, requested = trials.own, trials.requested
    rungs = Rungs.of(sweep, search.resource, own, trials.pending)
    # With any amount.
    tried = TriedConfigurations(without_resource(trial.configuration, search.resource) for trial in requested)
    drawn = feasible_configurations(search.space, derive_seed(search.seed, number, "newcomers"))
    suggested = suggest(search, rungs, filter(tried.add, drawn))
    suggestions = tuple(islice(suggested, termination.remaining_configurations(sweep, search, requested)))
    if suggestions:
        return Round(number, suggestions, 0, 0, ENGINE)
    if not search.method.ends or not own:
        return SearchEnd("exhausted", "no new configuration was found")
    return SearchEnd("last-rung", "no trial is left that could continue")


def start_trials(
    rungs: Rungs, newcomers: Iterator[Configuration], count: int, rung: int
) -> Iterator[Suggestion]:
    """Start new configurations on a rung."""
    for configuration in islice(newcomers, count):
        yield Suggestion({**configuration, rungs.resource.parameter: rungs.amounts[rung]})
