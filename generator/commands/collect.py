"""`sweep collect`: what the trials left, into one commit a sweep that also archives the batches."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from generator import spec
from generator.commands.workspace import SETTINGS_FILE
from generator.formats import record, table
from generator.repo import batches, volume
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import Change, Repository, commit_here, fetch, publish
from generator.results import (
    BatchResults,
    Summary,
    commit_message,
    records_path,
    result_files,
    results_folder,
    summarise,
)
from generator.structs.record import ExpectedTrial, Record
from generator.structs.settings import Settings
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Target:
    """Where results commits go: a branch of a remote, or without a remote what is checked out here."""

    repository: Repository
    remote: str | None = None
    branch: str = ""


@dataclass(frozen=True)
class Collected:
    """A results commit that was made."""

    batches: tuple[str, ...]
    """Those it records and archives."""
    summary: Summary
    """Of the whole sweep, these batches included."""
    corrupt: tuple[str, ...] = ()
    """Why record files could not be believed, a word each; their trials count as if they were not there."""
    commit: str = ""


def collect(target: Target, results: Path, ended: Collection[str]) -> tuple[Collected, ...]:
    """Record every active batch whose trials have ended; `ended` names those whose Jobs say so.

    A batch that no Job knows of ends by its records. Where there is nothing to record, nothing is
    committed. Raises RepositoryError, ContentionError, StorageError; what was not recorded stays as it is.
    """
    repository = target.repository
    tip = (
        repository.commit("HEAD")
        if target.remote is None
        else fetch(repository, target.remote, target.branch)
    )
    pending = {batch.lock.sweep for batch in _ended(batches.in_commit(repository, tip), results, ended)}
    done = []
    for sweep in sorted(pending):
        recording = _Recording(repository, results, ended, sweep)
        if target.remote is None:
            commit = commit_here(repository, recording.change)
        else:
            commit = publish(repository, target.remote, target.branch, recording.change)
        if commit is not None and recording.made is not None:
            done.append(replace(recording.made, commit=commit))
    return tuple(done)


def _ended(stored: Iterable[StoredBatch], results: Path, ended: Collection[str]) -> Iterator[StoredBatch]:
    for batch in stored:
        if batch.is_active and (batch.name in ended or _has_all_records(batch, results)):
            yield batch


def _has_all_records(batch: StoredBatch, results: Path) -> bool:
    """Tell whether no attempt can follow: every trial is final, or has used up its attempts."""
    if not (results / batch.name).is_dir():
        return False
    lock = batch.lock
    for trial in expected(batch):
        found = [one for one in _attempts(results, batch, trial.index) if one.row == trial.row]
        if not any(one.status.is_final for one in found) and len(found) <= lock.retries:
            return False
    return True


@dataclass
class _Recording:
    """Makes one sweep's results commit for whatever stands at the base; again after every lost race."""

    repository: Repository
    results: Path
    ended: Collection[str]
    sweep: str
    made: Collected | None = None

    def change(self, base: str) -> Change | None:
        """Say what the commit on top of `base` changes; None where nothing is left to record."""
        stored = batches.of_sweep(batches.in_commit(self.repository, base), self.sweep)
        now = tuple(_ended(stored, self.results, self.ended))
        if not now:
            return None
        known = self.repository.read(base, results_folder(self.sweep))
        corrupt = tuple(one.reason for batch in now for one in _corrupt(self.results, batch))
        summary = summarise(
            [self._results(batch, known, now) for batch in stored if batch in now or not batch.is_active],
            description=_description(self.repository, base, now[-1].lock.spec_path),
        )
        names = tuple(batch.name for batch in now)
        self.made = Collected(names, summary, corrupt)
        return Change(
            message=commit_message(summary, recorded=names),
            writes={
                f"{results_folder(self.sweep)}/{path}": content for path, content in result_files(summary)
            },
            moves={
                f"{ACTIVE}/{batch.name}/{path}": f"{ARCHIVE}/{batch.name}/{path}"
                for batch in now
                for path, _ in batch.tree
            },
        )

    def _results(
        self, batch: StoredBatch, known: Mapping[str, bytes], now: tuple[StoredBatch, ...]
    ) -> BatchResults:
        """Take a batch's records: fresh ones from the volume, those of an archived batch from git."""
        trials = expected(batch)
        if batch in now:
            found = [one for trial in trials for one in _attempts(self.results, batch, trial.index)]
        else:
            text = known.get(f"{results_folder(self.sweep)}/{records_path(batch.name)}", b"").decode()
            found = [one for one in record.read_lines(text) if isinstance(one, Record)]
        return BatchResults(batch.lock, trials, tuple(found))


def expected(batch: StoredBatch) -> tuple[ExpectedTrial, ...]:
    """List what a batch's table asks for, each row with the digest that its records must carry."""
    program = batch.lock.program.digest
    return tuple(
        ExpectedTrial(row.trial, table.row_digest(program, *line), index, row.values)
        for index, (row, line) in enumerate(zip(batch.rows, batch.lines, strict=True))
    )


def _attempts(results: Path, batch: StoredBatch, index: int) -> Iterator[Record]:
    for content in volume.attempts(results, batch.name, index):
        found = record.read(content)
        if isinstance(found, Record):
            yield found


def _corrupt(results: Path, batch: StoredBatch) -> Iterator[record.Corrupt]:
    for index in range(batch.lock.trials):
        for content in volume.attempts(results, batch.name, index):
            found = record.read(content)
            if isinstance(found, record.Corrupt):
                yield found


def _description(repository: Repository, base: str, path: str) -> str:
    """Give the question that the spec asks today; empty where it cannot be read any more."""
    files = repository.read(base, path, SETTINGS_FILE)
    settings = spec.parse_settings(files.get(SETTINGS_FILE, b"{}"), SETTINGS_FILE)
    found = spec.parse(files.get(path, b""), path, settings if isinstance(settings, Settings) else Settings())
    return found.description if isinstance(found, Sweep) else ""
