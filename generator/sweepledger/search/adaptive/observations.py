"""Observations of recorded trials, and the results of a search: a round of suggestions, or the end."""

from collections.abc import Iterable
from dataclasses import dataclass

from sweepledger.search.configurations import Configuration
from sweepledger.structs.record import Status
from sweepledger.structs.trial import trial_id


@dataclass(frozen=True, slots=True)
class Observation:
    """A trial listed by a batch of this sweep, or a recorded trial of a warm start."""

    configuration: Configuration
    """With the resource, if the method has one."""
    replicate: int
    status: Status
    values: tuple[float, ...] | None
    """In the order of the sweep's metrics; None: some are unknown."""
    round: int | None
    """Round number, from 1; None: a trial of another sweep."""
    trial: str
    """The trial's full digest."""
    parent: str | None = None
    """The id of the parent trial, whose checkpoint it continues from."""

    @property
    def id(self) -> str:
        """The trial's id."""
        return trial_id(self.trial)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A configuration to try next; the caller makes a trial for each replicate."""

    configuration: Configuration
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """The next batch of a search."""

    number: int
    """Round number, from 1."""
    suggestions: tuple[Suggestion, ...]
    redrawn: int
    """Proposals that a constraint rejects or that are known already."""
    replaced: int
    """Suggestions drawn at random because further proposals were not legal and new either."""
    engine: str
    """The library that proposed them, and its version: another version may propose others."""
    unfitted: str | None = None
    """Why the method's model could not propose the round, which is drawn at random; None: it could."""


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """Why a search has no further round."""

    reason: str
    """One of `rounds`, `run-cap`, `budget`, `target`, `patience`, `exhausted`, `last-rung`."""
    text: str


@dataclass(frozen=True, slots=True)
class KnownTrials:
    """The trials that a round is computed from."""

    recorded: tuple[Observation, ...]
    """In order, those of other sweeps first."""
    pending: tuple[Observation, ...] = ()
    """In order: trials of the search whose first results are not recorded yet."""

    @classmethod
    def of(cls, recorded: Iterable[Observation], pending: Iterable[Observation] = ()) -> "KnownTrials":
        """Sort trials; a recorded trial that is requested again counts as recorded."""
        observed = sort_observations(recorded)
        known = {trial.trial for trial in observed if trial.round is not None}
        waiting = [trial for trial in sort_observations(pending) if trial.trial not in known]
        return cls(tuple(observed), tuple(waiting))

    @property
    def own(self) -> list[Observation]:
        """The recorded trials of the search itself."""
        return [trial for trial in self.recorded if trial.round is not None]

    @property
    def requested(self) -> list[Observation]:
        """All trials of the search, with or without results."""
        return [*self.own, *self.pending]


def sort_observations(observations: Iterable[Observation]) -> list[Observation]:
    """Sort trials: those of other sweeps first, then by round, digest and replicate."""
    return sorted(observations, key=lambda trial: (trial.round or 0, trial.trial, trial.replicate))
