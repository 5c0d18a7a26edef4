"""`sweep collect`: what the trials left, into one commit a sweep that also archives the batches."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from generator.commands import onward, recorded
from generator.commands.gathered import FOREIGN, Gathered
from generator.commands.late import completed, late
from generator.commands.rounds import Due, Step
from generator.commands.searching import Blocked
from generator.commands.todays import Todays
from generator.errors import ContentionError, RepositoryError, SeveralError, UnreadableError
from generator.render.platform import flux
from generator.repo import batches
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import (
    Change,
    Repository,
    commit_here,
    fetch,
    proposals,
    propose,
    publish,
    superseded,
    withdraw,
)
from generator.results import BatchResults, Summary, changed_files, commit_message, results_folder
from generator.results.tree import RESULTS


@dataclass(frozen=True)
class Target:
    """Where results commits go: a branch of a remote, or without a remote what is checked out here."""

    repository: Repository
    remote: str | None = None
    branch: str = ""
    is_reviewed: bool = False
    """A person merges: each sweep's commit goes to a branch `results/<sweep>/<commit that it stands on>`."""
    progress_minutes: int | None = None
    """How often what still runs is summarised on a branch of its own; None: never."""

    def tip(self) -> str | None:
        """Give the commit that stands; None while nothing is committed here. Raises RepositoryError."""
        if self.remote is None:
            return self.repository.commit("HEAD")
        return fetch(self.repository, self.remote, self.branch)


@dataclass(frozen=True)
class Collected:
    """A results commit that was made."""

    batches: tuple[str, ...]
    """Those it records and archives."""
    summary: Summary
    """Of the whole sweep, these batches included."""
    corrupt: tuple[str, ...] = ()
    """Why record files were passed over, a word each: not readable, or of no trial of their batch."""
    commit: str = ""
    step: Step | Blocked | None = None
    """What follows in a search that goes on by itself; the same commit asks for a round that is due."""


class UnrecordedError(SeveralError):
    """Something could not be recorded, and waits as it is; all else was."""

    def __init__(self, done: Iterable[Collected], failures: Iterable[RepositoryError]) -> None:
        super().__init__(failures)
        self.done = tuple(done)


Complete = Callable[[Gathered], Gathered | None]
"""Adds what else is known of a batch's attempts; None where it is not to be recorded yet."""


def collect(
    target: Target,
    results: Path,
    ended: Collection[str],
    *,
    alive: Container[str] | None = None,
    complete: Complete | None = None,
) -> tuple[Collected, ...]:
    """Record every active batch whose trials have ended; `ended` names those whose Jobs say so.

    A batch that no Job knows of ends by its records, unless `complete` has another opinion. A cancelled one
    is recorded once it is not among `alive`, the batches of which a Job or pod is there; None where nobody
    knows. Records that came too late for their batch's commit correct it. Where there is nothing to record,
    nothing is committed. Raises UnrecordedError at the end, where all was recorded that could be,
    RepositoryError and StorageError before anything was.
    """
    repository, tip = target.repository, target.tip()
    stored = batches.in_commit(repository, tip)
    active, stopped = [one for one in stored if one.is_active], recorded.pending(repository, tip, stored)
    look = _Look(results, ended, alive or (), complete)
    now = look.gather((*active, *(() if alive is None else stopped)))
    now |= {one.batch.name: one for one in late(repository, tip, results, stored)}
    failures: list[RepositoryError] = [*look.failures]
    done: list[Collected] = []
    for sweep in sorted({one.batch.sweep for one in now.values()}):
        try:
            done += _record(target, sweep, now)
        except UnreadableError as error:
            failures.append(error)
        except RepositoryError as error:
            failures.append(_named(sweep, error))
            if isinstance(error, ContentionError):
                break  # whoever wins the branch wins it from every sweep
    try:
        _withdraw(target, tip, (*active, *stopped, *(one.batch for one in now.values())))
    except RepositoryError as error:
        failures.append(error)
    if failures:
        raise UnrecordedError(done, failures)
    return tuple(done)


@dataclass(frozen=True)
class _Look:
    """Tells which batches are to be recorded, and with what."""

    results: Path
    ended: Collection[str]
    alive: Container[str]
    complete: Complete | None
    failures: list[UnreadableError] = field(default_factory=list)

    def gather(self, stored: Iterable[StoredBatch]) -> dict[str, Gathered]:
        """Read what there is to be recorded, by batch; why one cannot be read is among the failures."""
        now: dict[str, Gathered] = {}
        for batch in stored:
            try:
                found = self.at(batch)
            except UnreadableError as error:
                self.failures.append(error)
            else:
                now |= {} if found is None else {batch.name: found}
        return now

    def at(self, batch: StoredBatch) -> Gathered | None:
        """Read what a batch left; None where it is not to be recorded. Raises UnreadableError."""
        name = batch.vetted().name
        if not batch.is_active:
            return None if name in self.alive else Gathered.read(self.results, batch)
        if name not in self.ended and not (self.results / name).is_dir():
            return None
        found = Gathered.read(self.results, batch)
        if self.complete is not None:
            return self.complete(found)
        return found if name in self.ended or found.is_settled() else None


def _record(target: Target, sweep: str, now: Mapping[str, Gathered]) -> Iterator[Collected]:
    """Make the results commit of a sweep, if there is anything to record. Raises RepositoryError."""
    found = {name: one for name, one in now.items() if one.batch.sweep == sweep}
    recording = _Recording(target.repository, found, sweep)
    try:
        commit = _commit(target, recording)
    except RepositoryError as error:
        # A server may refuse what we ask for, and take the results all the same: these must not wait for it.
        if isinstance(error, ContentionError) or not recording.asks:
            raise
        recording.refused = error
        commit = _commit(target, recording)
    if commit is not None and recording.made is not None:
        yield replace(recording.made, commit=commit)


def _named(sweep: str, error: RepositoryError) -> RepositoryError:
    kind = ContentionError if isinstance(error, ContentionError) else RepositoryError
    named = kind(f"{sweep} is not recorded: {error}", hint=error.hint)
    named.__cause__ = error
    return named


def _withdraw(target: Target, tip: str | None, waiting: Iterable[StoredBatch]) -> None:
    """Take away the branches that were merged or that have a successor; after the successor is there.

    Whoever is killed in between leaves two, and the next run takes the older one away.
    """
    if not target.is_reviewed or target.remote is None or tip is None:
        return
    listed = proposals(target.repository, target.remote, RESULTS)
    folders = {results_folder(one.sweep) for one in waiting}
    withdraw(target.repository, target.remote, superseded(listed, tip, waiting=folders))


def _commit(target: Target, recording: "_Recording") -> str | None:
    repository = target.repository
    if target.remote is None:
        return commit_here(repository, recording.change)
    if not target.is_reviewed:
        return publish(repository, target.remote, target.branch, recording.change)
    below = results_folder(recording.sweep)
    return propose(repository, target.remote, target.branch, below, recording.change)


@dataclass
class _Recording:
    """Makes one sweep's results commit for whatever stands at the base; again after every lost race."""

    repository: Repository
    found: Mapping[str, Gathered]
    sweep: str
    made: Collected | None = None
    refused: RepositoryError | None = None
    """Why a commit was, that asked for a round as well: results alone are tried then."""

    @property
    def asks(self) -> bool:
        """Tell whether the commit asks for a round of a search."""
        return self.made is not None and isinstance(self.made.step, Due)

    def change(self, base: str) -> Change | None:
        """Say what the commit on top of `base` changes; None where nothing is left to record."""
        stored = batches.of_sweep(batches.in_commit(self.repository, base), self.sweep)
        pending = recorded.pending(self.repository, base, stored)
        known = self.repository.read(base, results_folder(self.sweep))
        came = self._came_late(stored, known)
        now = [
            batch
            for batch in stored
            if batch.name in self.found and (batch.is_active or batch in pending or batch.name in came)
        ]
        if not now:
            return None
        waiting = [batch for batch in stored if batch not in now and (batch.is_active or batch in pending)]
        told = [
            came.get(batch.name) or self.found[batch.name].concluded
            if batch in now
            else recorded.results(batch, known)
            for batch in stored
            if batch not in waiting
        ]
        summary = self._summary(base, told, now, pending)
        names = tuple(batch.name for batch in now)
        corrupt = tuple(reason for name in names for reason in self.found[name].corrupt)
        foreign = sum(judged.foreign for judged in summary.batches if judged.lock.name in names)
        step = onward.after(self.repository, base, self.sweep, told, refused=self.refused)
        self.made = Collected(names, summary, corrupt + (FOREIGN,) * foreign, step=step)
        writes, removes = changed_files(summary)
        return Change(
            message=commit_message(summary, recorded=names) + onward.trailers(step),
            writes={**writes, **onward.files(self.repository, base, step)},
            moves={
                f"{ACTIVE}/{batch.name}/{path}": f"{ARCHIVE}/{batch.name}/{path}"
                for batch in now
                if batch.is_active
                for path, _ in batch.tree
            },
            removes=removes | {flux.batch_file(batch.name) for batch in now},
        )

    def _summary(
        self,
        base: str,
        told: Iterable[BatchResults],
        now: Collection[StoredBatch],
        pending: Iterable[StoredBatch],
    ) -> Summary:
        """Summarise what is recorded `now` and what git holds already, against the spec at `base`."""
        spec = Todays.at(self.repository, base, max(now, key=lambda one: one.lock.number).lock.spec_path)
        cancelled = {*spec.cancelled, *(batch.name for batch in pending)}
        return spec.summarised(replace(one, is_cancelled=one.lock.name in cancelled) for one in told)

    def _came_late(
        self, stored: Iterable[StoredBatch], known: Mapping[str, bytes]
    ) -> dict[str, BatchResults]:
        """Give the recorded batches to which something came late, with that, by name."""
        found: dict[str, BatchResults] = {}
        for batch in stored:
            if batch.name in self.found and recorded.records_file(batch) in known:
                whole = completed(recorded.results(batch, known), self.found[batch.name].records)
                found |= {} if whole is None else {batch.name: whole}
        return found
