"""The history of sweeps, read from git alone."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from sweepledger.formats import batch_json
from sweepledger.formats.summary_csv import SUMMARY_FILE, read_summary_excerpt
from sweepledger.repo.batches import ACTIVE, ARCHIVE
from sweepledger.repo.git import Commit, Repository, commits
from sweepledger.results.display import format_duration
from sweepledger.results.paths import RESULTS, batch_of_records, laptop_path, results_folder
from sweepledger.site.history import Event, EventKind
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import LOCK_FILE, SPECS, is_sweep_name, split_batch_name

LONGEST_REASON = 200
"""Limit of characters of an error message, which quotes untrusted input."""


def history(repository: Repository, revision: str = "HEAD", *, last: int | None = None) -> tuple[Event, ...]:
    """Return the changes of all sweeps up to a commit, oldest first; with `last` those of its last commits."""
    changes = commits(repository, SPECS, ACTIVE, RESULTS, revision=revision, last=last)
    changes = changes if last is None else _with_last_entries(changes, last)
    reader = _LogReader(repository, changes)
    if last is not None:
        reader.read_earlier(repository, changes)
    return tuple(entry for commit in changes for entry in reader.entries(commit))


def _with_last_entries(changes: tuple[Commit, ...], last: int) -> tuple[Commit, ...]:
    """Return the newest commits that have so many entries: a commit may have thousands."""
    entries = 0
    for place, commit in reversed([*enumerate(changes)]):
        entries += sum(bool(_spec_at(path) or _batch_at(path) or _summary_at(path)) for path in commit.files)
        if entries >= last:
            return changes[place:]
    return changes


class _LogReader:
    def __init__(self, repository: Repository, history: tuple[Commit, ...]) -> None:
        self._locks: dict[str, BatchLock] = {}
        self._best: dict[str, float] = {}
        self._spent: dict[str, float] = {}
        self._contents = repository.blobs(  # with one git process
            blob
            for commit in history
            for path, blob in commit.files.items()
            if _batch_at(path) or _summary_at(path)
        )

    def read_earlier(self, repository: Repository, history: tuple[Commit, ...]) -> None:
        """Read what a part of the history refers to: of each sweep the lock and the summary before its results."""
        first: dict[str, tuple[str, str]] = {}
        for commit in history:
            for path in commit.files:
                sweep, _, _ = split_batch_name(batch_of_records(path)) or ("", 0, "")
                if sweep and path.startswith(f"{results_folder(sweep)}/"):
                    lock = f"{commit.id}:{ARCHIVE}/{batch_of_records(path)}/{LOCK_FILE}"
                    first.setdefault(sweep, (lock, f"{commit.id}^:{results_folder(sweep)}/{SUMMARY_FILE}"))
        ids = repository.ids(name for names in first.values() for name in names)
        contents = repository.blobs(ids.values())
        for sweep, (lock, summary) in first.items():
            with suppress(KeyError, ValueError):
                self._locks[sweep] = batch_json.read(contents[ids[lock]])
                before = read_summary_excerpt(contents[ids[summary]].decode(), self._locks[sweep])
                self._spent[sweep] = before.seconds
                if before.value is not None:
                    self._best[sweep] = before.value

    def entries(self, commit: Commit) -> Iterator[Event]:
        """Yield the entries of one commit: specs first, then batches, then results."""
        for path in commit.files:
            if sweep := _spec_at(path):
                yield _event(sweep, EventKind.SPEC, commit, commit.subject)
        for path, blob in commit.files.items():
            if batch := _batch_at(path):
                yield self._entry(commit, EventKind.BATCH, batch, blob)
        for path, blob in commit.files.items():
            if sweep := _summary_at(path):
                entry = self._entry(commit, EventKind.RESULTS, sweep, blob)
                is_laptop = laptop_path(sweep) in commit.files
                yield replace(entry, text=f"{entry.text}, on a laptop") if is_laptop else entry

    def _entry(self, commit: Commit, kind: EventKind, name: str, blob: str) -> Event:
        """Return the entry for one file; a file that cannot be read has an entry, too, as history cannot be fixed."""
        sweep = (split_batch_name(name) or (name,))[0]
        try:
            content = self._contents[blob]
            return (
                self._batch(commit, sweep, name, content)
                if kind is EventKind.BATCH
                else self._results(commit, sweep, content)
            )
        except ValueError as error:
            file = f"{name}: {LOCK_FILE}" if kind is EventKind.BATCH else SUMMARY_FILE
            reason = " ".join(str(error).split())[:LONGEST_REASON]
            return _event(sweep, kind, commit, f"{file} cannot be read: {reason}")

    def _batch(self, commit: Commit, sweep: str, name: str, content: bytes) -> Event:
        lock = self._locks[sweep] = batch_json.read(content)
        suffix = "" if lock.round is None else f", round {lock.round}, {lock.method}"
        return _event(sweep, EventKind.BATCH, commit, f"{name}: {lock.trials} trials{suffix}")

    def _results(self, commit: Commit, sweep: str, content: bytes) -> Event:
        lock = self._locks.get(sweep)
        summary = read_summary_excerpt(content.decode(), lock)
        done, spent = f"{summary.ok}/{summary.trials} trials ok", ""
        seconds = max(0.0, summary.seconds - self._spent.get(sweep, 0.0))
        self._spent[sweep] = summary.seconds
        event = replace(_event(sweep, EventKind.RESULTS, commit, f"{done}, no winner"), seconds=seconds)
        if lock is None or summary.value is None:
            return event
        if lock.round is not None:
            spent = f", {format_duration(summary.seconds)} spent"
        if lock.other_metrics:
            names = ", ".join(metric.name for metric in lock.metrics)
            return replace(event, text=f"{done}, front of {summary.front} by {names}{spent}")
        before, value = self._best.get(sweep), summary.value
        self._best[sweep] = value
        text = f"{done}, best {lock.metric.name} {value:.6g} ({summary.trial}){spent}"
        change = None if before is None else value - before
        return replace(event, text=text, best=value, change=change)


def _event(sweep: str, kind: EventKind, commit: Commit, text: str) -> Event:
    return Event(sweep, kind, commit.id, commit.author, commit.date, text, files=commit.files)


def _spec_at(path: str) -> str | None:
    folder, _, file = path.rpartition("/")
    name = file.removesuffix(".yaml")
    return name if folder == SPECS and name != file and is_sweep_name(name) else None


def _batch_at(path: str) -> str | None:
    folder, _, name = path.removesuffix(f"/{LOCK_FILE}").rpartition("/")
    return name if folder == ACTIVE and path.endswith(f"/{LOCK_FILE}") and split_batch_name(name) else None


def _summary_at(path: str) -> str | None:
    name = path.removeprefix(f"{RESULTS}/").removesuffix(f"/{SUMMARY_FILE}")
    return name if is_sweep_name(name) and path == f"{results_folder(name)}/{SUMMARY_FILE}" else None
