"""`sweep collect`: what the trials left, into one commit a sweep that also archives the batches."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from generator.commands import recorded
from generator.commands.gathered import FOREIGN, Gathered
from generator.commands.todays import Todays
from generator.render.platform import flux
from generator.repo import batches
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import Change, Repository, commit_here, fetch, proposals, propose, publish
from generator.results import SOMETIMES, Summary, commit_message, result_files, results_folder


@dataclass(frozen=True)
class Target:
    """Where results commits go: a branch of a remote, or without a remote what is checked out here."""

    repository: Repository
    remote: str | None = None
    branch: str = ""
    is_reviewed: bool = False
    """A person merges: each batch's commit goes to a branch `results/<sweep>/<batch>` of its own."""

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
    knows. Where there is nothing to record, nothing is committed. Raises RepositoryError, ContentionError,
    StorageError; what was not recorded stays as it is.
    """
    repository, tip = target.repository, target.tip()
    stored = batches.in_commit(repository, tip)
    found = (
        Gathered.read(results, batch)
        for batch in stored
        if batch.is_active and _is_worth_reading(batch, results, ended)
    )
    if complete is None:
        now = {one.batch.name: one for one in found if one.batch.name in ended or one.is_settled()}
    else:
        now = {one.batch.name: one for one in map(complete, found) if one is not None}
    if alive is not None:
        for batch in recorded.pending(repository, tip, stored):
            if batch.name not in alive:
                now[batch.name] = Gathered.read(results, batch)
    done = []
    for sweep, portion in _portions(target, now):
        recording = _Recording(repository, portion, sweep)
        commit = _commit(target, recording)
        if commit is not None and recording.made is not None:
            done.append(replace(recording.made, commit=commit))
    return tuple(done)


def _portions(
    target: Target, now: Mapping[str, "Gathered"]
) -> Iterator[tuple[str, Mapping[str, "Gathered"]]]:
    """Yield what one commit records: what there is of a sweep, or where a person merges, one batch of it.

    Every batch of a sweep changes its summary. So while one waits to be merged the others wait for it.
    """
    for sweep in sorted({one.batch.lock.sweep for one in now.values()}):
        found = {name: one for name, one in now.items() if one.batch.lock.sweep == sweep}
        if not target.is_reviewed or target.remote is None:
            yield sweep, found
            continue
        waiting = proposals(target.repository, target.remote, results_folder(sweep))
        if not any(_proposal(one.batch) in waiting for one in found.values()):
            first = min(found.values(), key=lambda one: one.batch.lock.number)
            yield sweep, {first.batch.name: first}


def _proposal(batch: StoredBatch) -> str:
    return f"{results_folder(batch.lock.sweep)}/{batch.name}"


def _commit(target: Target, recording: "_Recording") -> str | None:
    repository = target.repository
    if target.remote is None:
        return commit_here(repository, recording.change)
    if not target.is_reviewed:
        return publish(repository, target.remote, target.branch, recording.change)
    (one,) = recording.found.values()
    return propose(repository, target.remote, target.branch, _proposal(one.batch), recording.change)


def _is_worth_reading(batch: StoredBatch, results: Path, ended: Collection[str]) -> bool:
    return batch.name in ended or (results / batch.name).is_dir()


@dataclass
class _Recording:
    """Makes one sweep's results commit for whatever stands at the base; again after every lost race."""

    repository: Repository
    found: Mapping[str, Gathered]
    sweep: str
    made: Collected | None = None

    def change(self, base: str) -> Change | None:
        """Say what the commit on top of `base` changes; None where nothing is left to record."""
        stored = batches.of_sweep(batches.in_commit(self.repository, base), self.sweep)
        pending = recorded.pending(self.repository, base, stored)
        now = [
            batch for batch in stored if batch.name in self.found and (batch.is_active or batch in pending)
        ]
        if not now:
            return None
        waiting = [batch for batch in stored if batch not in now and (batch.is_active or batch in pending)]
        summary = self._summary(base, now, [batch for batch in stored if batch not in waiting], pending)
        names = tuple(batch.name for batch in now)
        corrupt = tuple(reason for name in names for reason in self.found[name].corrupt)
        foreign = sum(judged.foreign for judged in summary.batches if judged.lock.name in names)
        self.made = Collected(names, summary, corrupt + (FOREIGN,) * foreign)
        folder, files = results_folder(self.sweep), dict(result_files(summary))
        gone = (f"{folder}/{path}" for path in SOMETIMES - files.keys())
        return Change(
            message=commit_message(summary, recorded=names),
            writes={f"{folder}/{path}": content for path, content in files.items()},
            moves={
                f"{ACTIVE}/{batch.name}/{path}": f"{ARCHIVE}/{batch.name}/{path}"
                for batch in now
                if batch.is_active
                for path, _ in batch.tree
            },
            removes=frozenset({*gone, *(flux.batch_file(batch.name) for batch in now)}),
        )

    def _summary(
        self,
        base: str,
        now: Collection[StoredBatch],
        told: Iterable[StoredBatch],
        pending: Iterable[StoredBatch],
    ) -> Summary:
        """Summarise what is recorded `now` and what git holds already, against the spec at `base`."""
        known = self.repository.read(base, results_folder(self.sweep))
        spec = Todays.at(self.repository, base, max(now, key=lambda one: one.lock.number).lock.spec_path)
        cancelled = {*spec.cancelled, *(batch.name for batch in pending)}
        return spec.summarised(
            [
                replace(self.found[batch.name].concluded, is_cancelled=batch.name in cancelled)
                if batch in now
                else recorded.results(batch, known, is_cancelled=batch.name in cancelled)
                for batch in told
            ]
        )
