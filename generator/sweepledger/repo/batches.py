"""The batches of a commit or of the work tree, as values that read their files on first use."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sweepledger.errors import StorageError, UnreadableError
from sweepledger.formats import batch_yaml, hyperparams_csv, launch_json
from sweepledger.formats.hyperparams_csv import Row
from sweepledger.problems import Problem, SourcePosition
from sweepledger.repo.batch_files import BatchFiles, BlobCache, CommitFiles, DiskFiles, MemoryFiles
from sweepledger.repo.git import Repository
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.file_tree import Drift, FileTree
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.trial import Trial

ACTIVE = "overlays/active"
ARCHIVE = "overlays/archive"


@dataclass(frozen=True)
class StoredBatch:
    """The folder of a batch in a commit, on disk or in memory."""

    folder: str
    """Relative to the repository, with forward slashes."""
    source: FileTree | BatchFiles

    @cached_property
    def contents(self) -> BatchFiles:
        """The files, read on demand."""
        return MemoryFiles(self.source) if isinstance(self.source, FileTree) else self.source

    @cached_property
    def tree(self) -> FileTree:
        """All files. Raises StorageError."""
        return self.contents.tree()

    @property
    def name(self) -> str:
        """The batch's name, which is that of its folder."""
        return self.folder.rpartition("/")[2]

    @property
    def sweep(self) -> str:
        """The sweep according to the folder's name; the lock may contain another."""
        return (split_batch_name(self.name) or ("",))[0]

    @property
    def is_active(self) -> bool:
        """Whether the controller runs it."""
        return self.folder.startswith(f"{ACTIVE}/")

    @cached_property
    def lock(self) -> BatchLock:
        """The batch lock. Raises UnreadableError if it is missing or invalid."""
        try:
            return batch_yaml.read(self.contents.read(batch_yaml.LOCK_FILE))
        except KeyError as error:
            raise self._unreadable(batch_yaml.LOCK_FILE, "is missing") from error
        except batch_yaml.LockError as error:
            raise self._unreadable(batch_yaml.LOCK_FILE, str(error), line=error.line or 1) from error

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Header and row of every trial as text, in the order of the completion index."""
        lines: list[tuple[str, str]] = []
        for file in launch_json.read_table_layout(self.tree[launch_json.LAUNCH_FILE]).files:
            head, *rows = self.tree[file].decode().splitlines()
            lines += [(head, row) for row in rows]
        return tuple(lines)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The parsed table. Raises UnreadableError if it or the lock cannot be read."""
        try:
            layout = launch_json.read_table_layout(self.tree[launch_json.LAUNCH_FILE])
            shards = [self.tree[file].decode() for file in layout.files]
            rows = tuple(
                row for shard in shards for row in hyperparams_csv.parse_shard(shard, layout.columns)
            )
        except (KeyError, ValueError) as error:
            raise self._unreadable(launch_json.LAUNCH_FILE, f"the table cannot be read: {error}") from error
        if len(rows) != self.lock.trials:
            message = f"the table has {len(rows)} row(s), but the lock states {self.lock.trials}"
            raise self._unreadable(launch_json.LAUNCH_FILE, message)
        return rows

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
            raise self._unreadable(batch_yaml.LOCK_FILE, message, line=1)
        return self

    def hand_edits(self) -> Drift:
        """Return the files that differ from the digests in the batch's own lock."""
        try:
            listed = self.lock.files
        except UnreadableError:
            return Drift(changed=(batch_yaml.LOCK_FILE,))
        digests = {path: digest for path, digest in self.tree.digests.items() if path != batch_yaml.LOCK_FILE}
        return Drift(
            added=tuple(path for path in listed if path not in digests),
            changed=tuple(path for path in listed if path in digests and digests[path] != listed[path]),
            stale=tuple(path for path in digests if path not in listed),
        )


_RESTORE_HINT = (
    "restore the folder from git; a merged batch may change only by its removal, if it was never valid"
)


def in_commit(repository: Repository, commit: str | None) -> tuple[StoredBatch, ...]:
    """Return the batches of a commit, active and archived, by sweep and number."""
    folders: dict[str, dict[str, str]] = {}
    for path, entry in repository.files(commit, ACTIVE, ARCHIVE).items():
        parts = path.split("/")
        if len(parts) > len(("overlays", "active", "batch")) and split_batch_name(parts[2]):
            folders.setdefault("/".join(parts[:3]), {})["/".join(parts[3:])] = entry.id
    blobs = BlobCache(repository)
    locks = frozenset(ids[batch_yaml.LOCK_FILE] for ids in folders.values() if batch_yaml.LOCK_FILE in ids)
    return _sorted(StoredBatch(folder, CommitFiles(ids, blobs, locks)) for folder, ids in folders.items())


def in_work_tree(root: Path) -> tuple[StoredBatch, ...]:
    """Return the batches of the work tree, by sweep and number. Raises StorageError."""
    return _sorted(
        StoredBatch(f"{place}/{folder.name}", DiskFiles.of(folder))
        for place in (ACTIVE, ARCHIVE)
        for folder in _folders(root / place)
    )


def readable(stored: Iterable[StoredBatch]) -> tuple[StoredBatch, ...]:
    """Return the batches that `vetted` accepts."""
    return tuple(batch for batch in stored if _is_readable(batch))


def _is_readable(batch: StoredBatch) -> bool:
    try:
        batch.vetted()
    except UnreadableError:
        return False
    return True


def prefetch(stored: Iterable[StoredBatch], *names: str) -> None:
    """Read files of several batches of one commit with one process; `names` restricts which files."""
    committed = [batch.contents for batch in stored if isinstance(batch.contents, CommitFiles)]
    if committed:
        committed[0].blobs.read(
            identity for one in committed for path, identity in one.ids.items() if not names or path in names
        )


def difference(expected: StoredBatch, actual: StoredBatch) -> Drift:
    """Return how the files of a batch differ from those of another, without reading equal files."""
    expected_ids = expected.contents.blob_ids()
    actual_ids = actual.contents.blob_ids(like=next(iter(expected_ids.values()), ""))
    if expected_ids == actual_ids:
        return Drift()  # nearly always
    return Drift(
        added=tuple(sorted(expected_ids.keys() - actual_ids.keys())),
        changed=tuple(
            sorted(
                path
                for path in expected_ids.keys() & actual_ids.keys()
                if expected_ids[path] != actual_ids[path]
            )
        ),
        stale=tuple(sorted(actual_ids.keys() - expected_ids.keys())),
    )


def _folders(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        return
    for entry in sorted(place.iterdir()):
        if entry.is_symlink():
            raise StorageError(f"{entry}: must be a folder, not a symbolic link")
        if entry.is_dir() and split_batch_name(entry.name) is not None:
            yield entry


def _sorted(batches: Iterable[StoredBatch]) -> tuple[StoredBatch, ...]:
    return tuple(sorted(batches, key=lambda batch: (split_batch_name(batch.name) or ("", 0, ""), batch.name)))


def newest(batches: Iterable[StoredBatch]) -> StoredBatch | None:
    """Return the batch with the largest number; None if there is none. Raises UnreadableError."""
    return max(batches, key=lambda batch: batch.lock.number, default=None)


def of_sweep(batches: Iterable[StoredBatch], sweep: str) -> tuple[StoredBatch, ...]:
    """Return the batches of one sweep, by number."""
    return tuple(batch for batch in batches if batch.sweep == sweep)
