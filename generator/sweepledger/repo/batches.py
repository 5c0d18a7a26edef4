"""The batches that stand in a commit or lie in the work tree, as values that are read when asked."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generator.errors import StorageError, UnreadableError
from generator.formats import launch, lock, table
from generator.formats.table import Row
from generator.problems import Place, Problem
from generator.repo.contents import Blobs, Contents, InCommit, InMemory, OnDisk
from generator.repo.git import Repository
from generator.structs.batch import Lock
from generator.structs.names import split_batch_name
from generator.structs.tree import Drift, FileTree
from generator.structs.trial import Trial

ACTIVE = "overlays/active"
ARCHIVE = "overlays/archive"


@dataclass(frozen=True)
class StoredBatch:
    """A batch's folder as it lies in git or on disk."""

    folder: str
    """Relative to the repository, with forward slashes."""
    held: FileTree | Contents

    @cached_property
    def contents(self) -> Contents:
        """Where the files are."""
        return InMemory(self.held) if isinstance(self.held, FileTree) else self.held

    @cached_property
    def tree(self) -> FileTree:
        """Every file. Raises StorageError."""
        return self.contents.tree()

    @property
    def name(self) -> str:
        """The batch's name: its folder's."""
        return self.folder.rpartition("/")[2]

    @property
    def sweep(self) -> str:
        """The sweep that the folder's name says; its lock may say another."""
        return (split_batch_name(self.name) or ("",))[0]

    @property
    def is_active(self) -> bool:
        """Tell whether the cluster is asked to run it."""
        return self.folder.startswith(f"{ACTIVE}/")

    @cached_property
    def lock(self) -> Lock:
        """What batch.yaml says. Raises UnreadableError if it says nothing that can be followed."""
        try:
            return lock.read(self.contents.read(lock.LOCK_FILE))
        except KeyError as error:
            raise self._unreadable(lock.LOCK_FILE, "is missing") from error
        except lock.LockError as error:
            raise self._unreadable(lock.LOCK_FILE, str(error), line=error.line) from error

    @cached_property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Header and row line of every trial, in the order of the completion index."""
        found: list[tuple[str, str]] = []
        for file in launch.shard_files(self.tree[launch.LAUNCH_FILE]):
            head, *rows = self.tree[file].decode().splitlines()
            found += [(head, row) for row in rows]
        return tuple(found)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The table, typed. Raises UnreadableError if it or the lock cannot be read."""
        try:
            instructions = self.tree[launch.LAUNCH_FILE]
            columns = launch.columns(instructions)
            shards = [self.tree[file].decode() for file in launch.shard_files(instructions)]
            found = tuple(row for shard in shards for row in table.parse(shard, columns))
        except (KeyError, ValueError) as error:
            raise self._unreadable(launch.LAUNCH_FILE, f"the table cannot be read: {error}") from error
        if len(found) != self.lock.trials:
            message = f"the table has {len(found)} row(s), the lock says {self.lock.trials}"
            raise self._unreadable(launch.LAUNCH_FILE, message)
        return found

    def _unreadable(self, file: str, message: str, *, line: int = 0) -> UnreadableError:
        place = Place("", line, 1 if line else 0)
        found = Problem.at(f"{self.folder}/{file}", place, message, code="batch-unreadable", hint=_RESTORE)
        return UnreadableError(found)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The trials, their identity recomputed from values and program, never read from the id."""
        program = self.lock.program.digest
        return tuple(Trial(row.values, program, row.replicate) for row in self.rows)

    def vetted(self) -> "StoredBatch":
        """Give the batch itself if its lock can be read and is its own. Raises UnreadableError."""
        if (self.lock.name, self.lock.sweep) != (self.name, self.sweep):
            message = f"must be of batch {self.name}, got {self.lock.name!r} of sweep {self.lock.sweep!r}"
            raise self._unreadable(lock.LOCK_FILE, message, line=1)
        return self

    def hand_edits(self) -> Drift:
        """Say which files are not what the batch's own lock says they are."""
        try:
            listed = self.lock.files
        except UnreadableError:
            return Drift(changed=(lock.LOCK_FILE,))
        found = {path: digest for path, digest in self.tree.digests.items() if path != lock.LOCK_FILE}
        return Drift(
            added=tuple(path for path in listed if path not in found),
            changed=tuple(path for path in listed if path in found and found[path] != listed[path]),
            stale=tuple(path for path in found if path not in listed),
        )


_RESTORE = (
    "restore the folder from git, or remove it if it was never right: only then may a merged batch change"
)


def in_commit(repository: Repository, commit: str | None) -> tuple[StoredBatch, ...]:
    """List the batches of a commit, active and archived, in the order of sweep and number."""
    folders: dict[str, dict[str, str]] = {}
    for path, entry in repository.files(commit, ACTIVE, ARCHIVE).items():
        parts = path.split("/")
        if len(parts) > len(("overlays", "active", "batch")) and split_batch_name(parts[2]):
            folders.setdefault("/".join(parts[:3]), {})["/".join(parts[3:])] = entry.id
    blobs = Blobs(repository)
    locks = frozenset(ids[lock.LOCK_FILE] for ids in folders.values() if lock.LOCK_FILE in ids)
    return _sorted(StoredBatch(folder, InCommit(ids, blobs, locks)) for folder, ids in folders.items())


def in_work_tree(root: Path) -> tuple[StoredBatch, ...]:
    """List the batches that lie in the work tree. Raises StorageError."""
    return _sorted(
        StoredBatch(f"{place}/{folder.name}", OnDisk.of(folder))
        for place in (ACTIVE, ARCHIVE)
        for folder in _folders(root / place)
    )


def legible(stored: Iterable[StoredBatch]) -> tuple[StoredBatch, ...]:
    """Leave out the batches that `vetted` refuses."""
    return tuple(batch for batch in stored if _is_legible(batch))


def _is_legible(batch: StoredBatch) -> bool:
    try:
        batch.vetted()
    except UnreadableError:
        return False
    return True


def load(stored: Iterable[StoredBatch], *names: str) -> None:
    """Read files of some batches of one commit at once, all or those named: not with a process a batch."""
    committed = [batch.contents for batch in stored if isinstance(batch.contents, InCommit)]
    if committed:
        committed[0].blobs.read(
            identity for one in committed for path, identity in one.ids.items() if not names or path in names
        )


def difference(wanted: StoredBatch, found: StoredBatch) -> Drift:
    """Say how a batch's files differ from those that stood, without reading what is the same."""
    wanted_ids = wanted.contents.blob_ids()
    found_ids = found.contents.blob_ids(like=next(iter(wanted_ids.values()), ""))
    return Drift(
        added=tuple(sorted(wanted_ids.keys() - found_ids.keys())),
        changed=tuple(
            sorted(
                path for path in wanted_ids.keys() & found_ids.keys() if wanted_ids[path] != found_ids[path]
            )
        ),
        stale=tuple(sorted(found_ids.keys() - wanted_ids.keys())),
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


def of_sweep(batches: Iterable[StoredBatch], sweep: str) -> tuple[StoredBatch, ...]:
    """Choose the batches of one sweep, by number."""
    return tuple(batch for batch in batches if batch.sweep == sweep)
