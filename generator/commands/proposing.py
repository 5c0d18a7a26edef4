"""What a search needs beside the batches that stand: its first round, the next one, or trials once more."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from generator.commands.batching import Asked, rendered
from generator.commands.evidence import Evidence, Look
from generator.commands.foundation import bases
from generator.commands.rounds import Due, Ground, Step, following
from generator.commands.workspace import Workspace
from generator.render.overlay import Overlay
from generator.repo.batches import StoredBatch
from generator.structs.program import Program
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for of a sweep, and the batch that asks for what of it is new."""

    trials: int
    """All of it, each trial counted once."""
    new: tuple[Trial, ...]
    batch: Overlay | None
    step: Step | None = None
    """Of a search: what follows, where that was worked out."""


@dataclass(frozen=True)
class Proposal:
    """A search, with what stands of it and what the work tree proposes."""

    workspace: Workspace
    sweep: Sweep
    program: Program
    base: str | None
    old: Sequence[StoredBatch]
    """Its batches at the base."""
    proposed: Sequence[StoredBatch]
    """Its batches that only the work tree holds."""

    def wanted(self, again: Collection[str], *, onward: bool) -> Wanted:
        """Say what the search needs; `again` are trials that its spec asks for once more, by digest.

        The next round is worked out where it is asked for by `onward`, where somebody proposes one, and where
        there was none. Raises RepositoryError, UsageError.
        """
        known = len({row.trial for batch in self.old for row in batch.rows})
        onward = onward or not self.old or any(batch.lock.round is not None for batch in self.proposed)
        due = self._due(again) if again and not onward else ()
        if due:
            parents = dict(_parents(due, self.old))
            stop = Look(self.workspace.repository, self.base).stop(self.sweep, self.program.digest)
            asked = Asked(self.sweep, self.program, due, parents=parents, stop=stop)
            return Wanted(known, due, self._rendered(asked))
        if not onward:
            return Wanted(known, (), None)
        found = following(self._evidence(), self._ground)
        if not isinstance(found, Due):
            return Wanted(known, (), None, found)
        return Wanted(known + len(found.trials), found.trials, found.batch, found)

    def _due(self, again: Collection[str]) -> tuple[Trial, ...]:
        listed = {trial.digest: trial for batch in self.old for trial in batch.trials}
        current = self.program.digest
        return tuple(one for key, one in listed.items() if key in again and one.program_digest == current)

    @property
    def _ground(self) -> Ground:
        return Ground(self.program, bases(self.workspace.root), self.workspace.settings)

    def _rendered(self, asked: Asked) -> Overlay:
        return rendered(asked, self.old, self._ground.bases, self.workspace.settings)

    def _evidence(self) -> Evidence:
        """Look at what is checked out where that goes on from the base: it may be what records a round."""
        repository = self.workspace.repository
        head = repository.commit("HEAD")
        onward = head is not None and (self.base is None or repository.holds(head, self.base))
        hidden = frozenset(batch.name for batch in self.proposed)
        commit = head if onward else self.base
        # The same commit's batches need not be read twice: a long search has a thousand.
        look = Look(repository, commit, asked=tuple(self.old) if commit == self.base else None, hidden=hidden)
        return look.evidence(self.sweep, self.program.digest)


def _parents(trials: Sequence[Trial], old: Sequence[StoredBatch]) -> Iterator[tuple[int, str]]:
    """Give by row the trial that each went on from when it was asked for first."""
    first: Mapping[str, str] = {
        trial.digest: batch.lock.parents[row]
        for batch in reversed(old)
        for row, trial in enumerate(batch.trials)
        if row in batch.lock.parents
    }
    return ((row, first[trial.digest]) for row, trial in enumerate(trials) if trial.digest in first)
