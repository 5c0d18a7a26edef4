"""What goes into a round and what comes out: recorded trials, suggestions, and the reason for no more."""

from dataclasses import dataclass

from generator.search.settling import Assignment
from generator.structs.record import Status
from generator.structs.trial import trial_id


@dataclass(frozen=True, slots=True)
class Observation:
    """One trial that a batch of this sweep lists, or a recorded one of a sweep that it starts with."""

    assignment: Assignment
    """With the resource, where there is one."""
    replicate: int
    status: Status
    values: tuple[float, ...] | None
    """In the order of the sweep's metrics; None: not all of them are known."""
    round: int | None
    """From 1; None: of another sweep."""
    trial: str
    """The trial's full digest; it puts equals in order."""
    parent: str | None = None
    """The id of the trial whose checkpoints it went on from."""

    @property
    def id(self) -> str:
        """The trial's id, by which others name it as their parent."""
        return trial_id(self.trial)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An assignment to try next; the caller makes a trial of it for each replicate."""

    assignment: Assignment
    parent: str | None = None
    """The id of the trial whose checkpoints it goes on from."""


@dataclass(frozen=True, slots=True)
class Round:
    """The next batch of a search."""

    number: int
    """From 1."""
    suggestions: tuple[Suggestion, ...]
    redrawn: int
    """Proposals that broke a constraint or were known already."""
    replaced: int
    """Suggestions drawn at random, as further proposals were no better."""
    engine: str
    """What proposed them, and its version: another version may propose others."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A search asks for nothing more."""

    reason: str
    """One of `rounds`, `run-cap`, `budget`, `target`, `patience`, `exhausted`, `last-rung`."""
    text: str
    """The same in words."""
