"""The batches of a commit or of the work tree, as values that read their files on first use."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sweepledger.errors import StorageError, UnreadableError
from sweepledger.formats import batch_json, hyperparams_csv, launch_json, running_yaml
from sweepledger.formats.hyperparams_csv import Column, ColumnType, Row
from sweepledger.formats.launch_json import TableLayout
from sweepledger.formats.running_yaml import REFERENCE, RUNNING_FILE
from sweepledger.problems import Problem, SourcePosition, TextError
from sweepledger.repo.batch_files import (
    KUSTOMIZATION,
    BatchAsMerged,
    BatchFiles,
    BlobCache,
    CommitFiles,
    DiskFiles,
    StoredFiles,
)
from sweepledger.repo.git import Checkout, Entry, Repository
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.file_tree import Drift, FileTree
from sweepledger.structs.names import LOCK_FILE, records_path, results_folder, split_batch_name
from sweepledger.structs.run_config import RunningState
from sweepledger.structs.trial import Trial

ACTIVE = "overlays/active"
ARCHIVE = "overlays/archive"


@dataclass(frozen=True)
class StoredBatch:
    """The folder of a batch in a commit, on disk or in memory."""

    folder: str
    """Relative to the repository, with forward slashes."""
    stored: StoredFiles
    """The files, with those that say how an active batch runs now."""

    @cached_property
    def contents(self) -> BatchFiles:
        """The files as they were merged, read on demand."""
        files = self.stored
        if self.is_active and {RUNNING_FILE, KUSTOMIZATION} <= {*files.paths}:
            kustomization = files.read(KUSTOMIZATION)
            if kustomization.endswith(REFERENCE):
                return BatchAsMerged(files, kustomization.removesuffix(REFERENCE))
        return files

    @property
    def running_file(self) -> bytes | None:
        """The file with its running state; None if it runs as it was merged. Raises StorageError."""
        return self.stored.read(RUNNING_FILE) if isinstance(self.contents, BatchAsMerged) else None

    @cached_property
    def running(self) -> RunningState:
        """Its current running state. Raises UnreadableError."""
        content = self.running_file
        if content is None:
            return RunningState()
        try:
            return running_yaml.read(content, self.lock)
        except ValueError as error:
            raise self._unreadable(RUNNING_FILE, str(error)) from error

    @cached_property
    def tree(self) -> FileTree:
        """All files, also those that only history has. Raises StorageError, RepositoryError."""
        prefetch([self])
        prefetch_omitted([self])
        return FileTree({path: self.read(path) for path in (*self.contents.paths, *self.omitted)})

    @cached_property
    def omitted(self) -> Mapping[str, str]:
        """The files that the archive omits, with their blob ids from the lock."""
        if self.is_active or isinstance(self.contents, FileTree):
            return {}
        try:
            blobs = self.lock.blobs
        except UnreadableError:
            return {}
        return blobs if blobs.keys().isdisjoint(self.contents.paths) else {}

    @cached_property
    def layout(self) -> TableLayout:
        """How the table is stored, from the launch file, or from the lock if the archive omits that file.

        Raises ValueError, UnreadableError.
        """
        if launch_json.LAUNCH_FILE in self.omitted:
            columns = tuple(Column(name, ColumnType(kind)) for name, kind in self.lock.columns.items())
            tables = sorted(path for path in self.contents.paths if path != LOCK_FILE)
            return TableLayout(columns, tuple(map(launch_json.ShardFile, tables)))
        return launch_json.read_table_layout(self.contents.read(launch_json.LAUNCH_FILE))

    def read(self, path: str) -> bytes:
        """Read one file, also one that only history has. Raises KeyError, StorageError, RepositoryError."""
        if path in self.omitted:
            assert isinstance(self.stored, CommitFiles | DiskFiles)
            return self.stored.blobs[self.omitted[path]]
        return self.contents.read(path)

    @cached_property
    def name(self) -> str:
        """The batch's name, which is that of its folder."""
        return self.folder.rpartition("/")[2]

    @cached_property
    def sweep(self) -> str:
        """The sweep according to the folder's name; the lock may contain another."""
        return (split_batch_name(self.name) or ("",))[0]

    def records_file(self, part: int = 0) -> str:
        """Return the path of its records in the repository: the first file, unless `part` names another."""
        return f"{results_folder(self.sweep)}/{records_path(self.name, part)}"

    def is_made_from(self, spec: str) -> bool:
        """Return whether it can be read and was made from the spec with this digest."""
        try:
            return self.vetted().lock.spec.digest == spec
        except UnreadableError:
            return False

    @property
    def is_active(self) -> bool:
        """Whether the controller runs it."""
        return self.folder.startswith(f"{ACTIVE}/")

    @cached_property
    def lock(self) -> BatchLock:
        """The batch lock. Raises UnreadableError if it is missing or invalid."""
        try:
            return batch_json.read(self.contents.read(LOCK_FILE))
        except KeyError as error:
            raise self._unreadable(LOCK_FILE, "is missing") from error
        except TextError as error:
            raise self._unreadable(LOCK_FILE, str(error), line=error.line or 1) from error

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Header and row of every trial as text, in the order of the completion index."""
        lines: list[tuple[str, str]] = []
        for file in self.layout.files:
            head, *rows = self.contents.read(file).decode().splitlines()
            lines += [(head, row) for row in rows]
        return tuple(lines)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The parsed table. Raises UnreadableError if it or the lock cannot be read."""
        try:
            layout = self.layout
            shards = [self.contents.read(file).decode() for file in layout.files]
            rows = tuple(
                row for shard in shards for row in hyperparams_csv.parse_shard(shard, layout.columns)
            )
        except (KeyError, ValueError) as error:
            raise self._unreadable(launch_json.LAUNCH_FILE, f"the table cannot be read: {error}") from error
        if len(rows) != self.lock.trials:
            message = f"the table has {len(rows)} row(s), but the lock states {self.lock.trials}"
            raise self._unreadable(launch_json.LAUNCH_FILE, message)
        return rows

    def may_list(self, trial: str) -> bool:
        """Return whether a table has a line that begins with a trial's id, or the beginning of one.

        This is a search for bytes: most batches need not be parsed. Raises StorageError.
        """
        line = f"\n{trial}".encode()
        return any(line in table for table in self._tables())

    def lists_every_trial(self) -> bool:
        """Return whether the tables have as many rows as the lock states, by a search for bytes. Raises StorageError.

        If so, `may_list` sees every trial, whether or not the rest can be parsed.
        """
        rows = sum(table.count(b"\n") - 1 for table in self._tables())
        try:
            return self.lock.trials == rows
        except UnreadableError:
            return False

    def _tables(self) -> Iterator[bytes]:
        return (self.contents.read(path) for path in self.contents.paths if path.endswith(".csv"))

    def _unreadable(self, file: str, message: str, *, line: int = 0) -> UnreadableError:
        position = SourcePosition("", line, 1 if line else 0)
        problem = Problem.at(
            f"{self.folder}/{file}", position, message, code="batch-unreadable", hint=_RESTORE_HINT
        )
        return UnreadableError(problem)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The trials, with ids computed from values and program instead of read from the table."""
        program = self.lock.program.digest
        return tuple(Trial(row.values, program, row.replicate) for row in self.rows)

    def vetted(self) -> "StoredBatch":
        """Return the batch if its lock is valid and belongs to it. Raises UnreadableError."""
        if (self.lock.name, self.lock.sweep) != (self.name, self.sweep):
            message = f"must be of batch {self.name}, got {self.lock.name!r} of sweep {self.lock.sweep!r}"
            raise self._unreadable(LOCK_FILE, message, line=1)
        return self

    def hand_edits(self) -> Drift:
        """Return the files that differ from the digests in the batch's own lock."""
        try:
            listed = self.lock.files
        except UnreadableError:
            return Drift(changed=(LOCK_FILE,))
        digests = {path: digest for path, digest in self.tree.digests.items() if path != LOCK_FILE}
        return Drift.between(listed, digests)


_RESTORE_HINT = (
    "restore the folder from git; a merged batch may change only by its removal, if it was never valid"
)


def in_commit(repository: Repository, commit: str | None, *places: str) -> tuple[StoredBatch, ...]:
    """Return the batches of a commit by sweep and number: all, or only those in ACTIVE or ARCHIVE."""
    return of_entries(repository, repository.files(commit, *(places or (ACTIVE, ARCHIVE))))


def of_sweep_in_commit(repository: Repository, commit: str | None, sweep: str) -> tuple[StoredBatch, ...]:
    """Return the batches of one sweep in a commit, by number, without listing the files of others."""
    named = (path for place in (ACTIVE, ARCHIVE) for path in repository.folders(commit, place))
    own = [path for path in named if (split_batch_name(path.rpartition("/")[2]) or ("",))[0] == sweep]
    return of_entries(repository, repository.files(commit, *own)) if own else ()


def of_entries(repository: Repository, entries: Mapping[str, Entry]) -> tuple[StoredBatch, ...]:
    """Return the batches among files of a commit, active and archived, by sweep and number."""
    folders = _folder_ids(entries)
    locks: dict[str, set[str]] = {}
    for folder, ids in folders.items():
        if LOCK_FILE in ids:
            locks.setdefault(_group(folder), set()).add(ids[LOCK_FILE])
    blobs = BlobCache(repository, locks)
    return in_order(
        StoredBatch(folder, CommitFiles(ids, blobs, _group(folder))) for folder, ids in folders.items()
    )


def _folder_ids(entries: Mapping[str, Entry]) -> dict[str, dict[str, str]]:
    folders: dict[str, dict[str, str]] = {}
    for path, entry in entries.items():
        parts = path.split("/", 3)
        is_below = len(parts) > len(("overlays", "active", "batch"))
        if is_below and "/".join(parts[:2]) in {ACTIVE, ARCHIVE} and split_batch_name(parts[2]):
            folders.setdefault("/".join(parts[:3]), {})[parts[3]] = entry.id
    return folders


def _group(folder: str) -> str:
    """Return the group of a batch, whose locks are read together: all active batches, else those of a sweep."""
    place, _, name = folder.rpartition("/")
    return place if place == ACTIVE else (split_batch_name(name) or ("",))[0]


def in_work_tree(
    root: Path, *, committed: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[StoredBatch, ...]:
    """Return the batches of the work tree, by sweep and number. Raises StorageError.

    `committed` has the blob ids of unchanged folders, which need not be read.
    """
    repository, known = Repository(root), committed or {}
    blobs, checkout = BlobCache(repository), Checkout(repository, ACTIVE, ARCHIVE)
    folders = dict.fromkeys(path for place in (ACTIVE, ARCHIVE) for path in _folders(root, place))
    folders |= dict.fromkeys(_folder_ids(checkout.hidden))
    return in_order(
        StoredBatch(path, DiskFiles(root, path, blobs, known.get(path, {}), checkout)) for path in folders
    )


def unchanged_folders(
    merged: Iterable[StoredBatch], index: Mapping[str, Entry], changed: Iterable[str], unsure: Iterable[str]
) -> dict[str, Mapping[str, str]]:
    """Return the blob ids of the batches in an index, by folder; for unchanged batches, those of the commit.

    `changed` are the paths in which the index differs from the commit. Folders with `unsure` paths are omitted.
    """
    folders: dict[str, Mapping[str, str]] = {batch.folder: batch.stored.blob_ids for batch in merged}
    paths: dict[str, set[str]] = {}
    for path in changed:
        paths.setdefault(_batch_folder(path), set()).add(path)
    for folder, own in paths.items():
        own |= {f"{folder}/{name}" for name in folders.pop(folder, ())}
        folders |= _folder_ids({path: index[path] for path in own if path in index})
    for path in unsure:
        folders.pop(_batch_folder(path), None)
    return folders


def _batch_folder(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])


def readable(stored: Iterable[StoredBatch]) -> tuple[StoredBatch, ...]:
    """Return the batches that `vetted` accepts."""
    kept = []
    for batch in stored:
        with suppress(UnreadableError):
            kept.append(batch.vetted())
    return tuple(kept)


def prefetch(stored: Iterable[StoredBatch], *names: str) -> None:
    """Read files of several batches of one commit with one process; `names` restricts the files."""
    committed = [batch.stored for batch in stored if isinstance(batch.stored, CommitFiles)]
    _read_together([(files.blobs, files.blob_ids) for files in committed], names)


def prefetch_omitted(stored: Iterable[StoredBatch], *names: str) -> None:
    """Read the files that the archive omits with one process; also for batches of the work tree."""
    pairs = ((batch.stored, batch.omitted) for batch in stored)
    _read_together(
        [(files.blobs, ids) for files, ids in pairs if ids and not isinstance(files, FileTree)], names
    )


def _read_together(listed: Sequence[tuple[BlobCache, Mapping[str, str]]], names: Collection[str]) -> None:
    if listed:
        listed[0][0].read(
            blob for _, ids in listed for path, blob in ids.items() if not names or path in names
        )


def difference(expected: StoredBatch, actual: StoredBatch) -> Drift:
    """Return how the files of a batch differ from those of another, without reading equal files."""
    expected_ids, actual_ids = expected.contents.blob_ids, actual.contents.blob_ids
    if expected_ids is actual_ids or expected_ids == actual_ids:
        return Drift()
    if expected_ids.keys() != actual_ids.keys():
        # The archive may leave files out; their ids are in the lock, which most comparisons need not read.
        expected_ids, actual_ids = {**expected_ids, **expected.omitted}, {**actual_ids, **actual.omitted}
    return Drift.between(expected_ids, actual_ids)


def _folders(root: Path, place: str) -> Iterator[str]:
    if not (root / place).is_dir():
        return
    with os.scandir(root / place) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink():
                raise StorageError(f"{entry.path}: must be a folder, not a symbolic link")
            if entry.is_dir() and split_batch_name(entry.name) is not None:
                yield f"{place}/{entry.name}"


def in_order(batches: Iterable[StoredBatch]) -> tuple[StoredBatch, ...]:
    """Return batches by sweep and number."""
    return tuple(sorted(batches, key=lambda batch: (split_batch_name(batch.name) or ("", 0, ""), batch.name)))


def archiving(stored: Iterable[StoredBatch]) -> tuple[dict[str, str], dict[str, bytes], frozenset[str]]:
    """Return the changes that archive batches: moved files, old path to new, written files, and removed files.

    Lock and table move. All other files stay in history under the ids in the lock; if these are not git's,
    all files move, as they were merged.
    """
    moves, writes, removes = dict[str, str](), dict[str, bytes](), set[str]()
    for batch in stored:
        ids = batch.contents.blob_ids
        blobs = batch.lock.blobs
        left = {*blobs} if blobs.items() <= ids.items() else set[str]()
        to = f"{ARCHIVE}/{batch.name}"
        moves |= {f"{batch.folder}/{path}": f"{to}/{path}" for path in ids if path not in left}
        if batch.running_file is not None:
            left |= {RUNNING_FILE, KUSTOMIZATION}
            if (path := moves.pop(f"{batch.folder}/{KUSTOMIZATION}", None)) is not None:
                writes[path] = batch.contents.read(KUSTOMIZATION)
        removes |= {f"{batch.folder}/{path}" for path in left}
    return moves, writes, frozenset(removes)


def newest(batches: Iterable[StoredBatch]) -> StoredBatch | None:
    """Return the batch with the largest number; None if there is none. Raises UnreadableError."""
    return max(batches, key=lambda batch: batch.lock.number, default=None)


def newest_of_all(batches: Iterable[StoredBatch]) -> StoredBatch | None:
    """Return the newest batch that does not only repair trials; None if there is none. Raises UnreadableError."""
    return newest(batch for batch in batches if not batch.lock.repairs)


def by_sweep(batches: Iterable[StoredBatch]) -> dict[str, tuple[StoredBatch, ...]]:
    """Return the batches of each sweep, by number."""
    sweeps: dict[str, list[StoredBatch]] = {}
    for batch in batches:
        sweeps.setdefault(batch.sweep, []).append(batch)
    return {sweep: tuple(own) for sweep, own in sweeps.items()}


def of_sweep(batches: Iterable[StoredBatch], sweep: str) -> tuple[StoredBatch, ...]:
    """Return the batches of one sweep, by number."""
    return tuple(batch for batch in batches if batch.sweep == sweep)
