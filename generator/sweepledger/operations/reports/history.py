"""The history of sweeps for `sweep log` and for the site, read from git alone."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from sweepledger.errors import GeneratorError, RepositoryError
from sweepledger.formats import batch_json
from sweepledger.formats.evidence_jsonl import EVIDENCE_SUFFIX
from sweepledger.formats.summary_csv import SUMMARY_FILE, read_summary_excerpt
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.programs import file_changes, ranked_program
from sweepledger.operations.rounds.evidence import foreign_labels
from sweepledger.operations.verification.batch_audit import SweepAudit
from sweepledger.plan.forecast import hourly_price
from sweepledger.repo import batches
from sweepledger.repo.batches import ACTIVE, ARCHIVE
from sweepledger.repo.git import Commit, Repository, commits, tree_patch
from sweepledger.results.display import format_duration
from sweepledger.results.summary import Summary
from sweepledger.site.history import CodeRevision, Event, EventKind, SweepHistory
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import (
    LOCK_FILE,
    RESULTS,
    SPECS,
    SUFFIX,
    batch_of_records,
    is_sweep_name,
    laptop_path,
    results_folder,
    split_batch_name,
)

LONGEST_REASON = 200
"""Limit of characters of an error message, which quotes untrusted input."""


def history(repository: Repository, revision: str = "HEAD", *, last: int | None = None) -> tuple[Event, ...]:
    """Return the changes of all sweeps up to a commit, oldest first; with `last` those of its last commits."""
    changes = commits(repository, SPECS, ACTIVE, RESULTS, revision=revision, last=last)
    if last is not None:
        entries = 0
        # A commit may have thousands of entries: the newest commits that have so many suffice.
        for place, commit in reversed([*enumerate(changes)]):
            entries += sum(
                bool(_spec_at(path) or _batch_at(path) or _summary_at(path)) for path in commit.files
            )
            if entries >= last:
                changes = changes[place:]
                break
    reader = _LogReader(repository, changes)
    if last is not None:
        reader.read_earlier(repository, changes)
    return tuple(entry for commit in changes for entry in reader.entries(commit))


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
        """Read the files to which a part of the history refers: each sweep's lock and summary before its results."""
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
        """Return the entry for one file, even if the file cannot be read: history cannot be fixed."""
        sweep = (split_batch_name(name) or (name,))[0]
        try:
            content = self._contents[blob]
            if kind is EventKind.RESULTS:
                return self._results(commit, sweep, content)
            lock = self._locks[sweep] = batch_json.read(content)
            suffix = "" if lock.round is None else f", round {lock.round}, {lock.method}"
            return _event(sweep, kind, commit, f"{name}: {lock.trials} trials{suffix}")
        except ValueError as error:
            file = f"{name}: {LOCK_FILE}" if kind is EventKind.BATCH else SUMMARY_FILE
            reason = " ".join(str(error).split())[:LONGEST_REASON]
            return _event(sweep, kind, commit, f"{file} cannot be read: {reason}")

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


MOST_LINES = 400
"""Changed lines of the code, beyond which a page only counts them."""
LONGEST_PATCH = 20_000


class HistoryReader:
    """Reads the history of the sweeps of a commit."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self._commit = commit
        self.listing = repository.files(commit)
        self.specs = at_commit.SpecReader.at(repository, commit)
        self.settings = self.specs.settings
        self.log = history(repository, commit)
        self.entries: dict[str, list[Event]] = defaultdict(list)
        for entry in self.log:
            self.entries[entry.sweep].append(entry)
        self.batches = batches.by_sweep(batches.in_commit(repository, commit))

    def history(self, sweep: str, paths: Collection[str]) -> SweepHistory:
        """Return the history of a sweep, given the paths of its files."""
        spec = f"{SPECS}/{sweep}{SUFFIX}"
        stored = self.batches.get(sweep, ())
        summary, problem = None, ""
        if any(path.startswith(results_folder(sweep)) for path in paths):
            try:
                audit = SweepAudit(self._repository, self._commit, sweep)
                summary = audit.recorded_summary(self.ranked_program(sweep))
            except GeneratorError as error:
                problem = str(error)
        content = self._repository.read(self._commit, spec).get(spec)
        changes = [entry for entry in self.entries[sweep] if entry.kind == EventKind.SPEC]
        texts = self._repository.blobs(entry.files[spec] for entry in changes)
        read = None
        if summary is None or self.evidence:
            read = self.specs.sweep(self._commit, spec)
        return SweepHistory(
            name=sweep,
            summary=summary,
            spec=None if content is None else content.decode(errors="replace"),
            versions=tuple((one, texts[one.files[spec]].decode(errors="replace")) for one in changes),
            events=tuple(self.entries[sweep]),
            active={one.name: one.lock.trials for one in batches.readable(stored) if one.is_active},
            description=read.description if read and summary is None else "",
            recorded=self._recorded(sweep),
            code_changes={} if summary is None else dict(self._code_changes(summary)),
            prices={} if summary is None else dict(self._prices(stored)),
            currency=self.settings.teams.currency,
            problem=problem,
            ranked=self.ranked_program(sweep),
            foreign=foreign_labels(self._repository, self._commit, read) if read else (),
        )

    def ranked_program(self, sweep: str) -> str | None:
        """Return the digest of the commit's program if the batches of a sweep ran several; empty if none ran it.

        None if they ran one.
        """
        locks = [batch.lock for batch in batches.readable(self.batches.get(sweep, ()))]
        if len({lock.program.digest for lock in locks}) <= 1:
            return None
        return ranked_program(self._repository, self._commit, locks) or ""

    @cached_property
    def evidence(self) -> Mapping[str, str]:
        """The evidence of other systems, which specs may start from: path and blob id."""
        return {path: entry.id for path, entry in self.listing.items() if path.endswith(EVIDENCE_SUFFIX)}

    def _recorded(self, sweep: str) -> dict[str, str]:
        recorded: dict[str, str] = {}
        for entry in self.entries[sweep]:
            if entry.kind == EventKind.RESULTS:
                for path in sorted(entry.files):
                    batch = batch_of_records(path)
                    if split_batch_name(batch) and path.startswith(f"{results_folder(sweep)}/"):
                        recorded.setdefault(batch, entry.commit)
        return recorded

    def _code_changes(self, summary: Summary) -> Iterator[tuple[tuple[str, str], CodeRevision]]:
        codes = [batch.lock.program.code for batch in summary.batches]
        for before, after in pairwise(codes):
            if before.tree == after.tree or before.path != after.path:
                continue
            changes, patch = file_changes(self._repository, before, after), ""
            listed = tuple((one.path, one.added, one.removed) for one in changes or ())
            if changes is not None and sum((up or 0) + (down or 0) for _, up, down in listed) <= MOST_LINES:
                with suppress(RepositoryError):
                    patch = tree_patch(self._repository, before.tree, after.tree)
            revision = CodeRevision(listed, patch if len(patch) <= LONGEST_PATCH else "")
            yield (before.tree, after.tree), revision

    def _prices(self, stored: Iterable[batches.StoredBatch]) -> Iterator[tuple[str, float]]:
        if not any(pool.price for pool in self.settings.trials.pools.values()):
            return
        for batch in batches.readable(stored):
            pool = self.settings.trials.pool(batch.lock.run.pool)
            price = None if pool is None or pool.price is None else hourly_price(batch.lock.run, pool)
            if price is not None:
                yield batch.name, price
