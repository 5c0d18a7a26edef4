"""Atomic writes of files, and errors of the file system as errors for users.

Files are written under temporary names. The writer holds a lock on its temporary file or folder, and the
lock ends with its process. A temporary file without a lock was therefore left by a crash, and is removed.
On a file system without locks nothing is removed.
"""

import errno
import fcntl
import hashlib
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from sweepledger.errors import StorageError, UsageError

TEMPORARY = ".tmp"
GIT_FOLDER = ".git"
"""Git executes and obeys what is in it: hooks and settings."""


def storage_error(path: object, error: OSError) -> StorageError:
    """Return an error with a path and the operating system's message."""
    return StorageError(f"{path}: {(error.strerror or str(error)).lower()}")


@contextmanager
def storage_errors(path: object) -> Iterator[None]:
    """Turn an OSError of the block into a StorageError that names the file."""
    try:
        yield
    except OSError as error:
        # Temporary names mean nothing to users, nor does a name without its folder: the errors of shutil.rmtree
        # contain the last part alone, because it opens folder after folder.
        parts = Path(error.filename).parts if isinstance(error.filename, str) else ()
        is_internal = len(parts) < 2 or any(part.endswith(TEMPORARY) for part in parts)  # noqa: PLR2004
        raise storage_error(path if is_internal else error.filename, error) from error


def refuse_existing(path: Path | None) -> None:
    """Refuse an output file that exists, or that is reached through a link. Raises UsageError, StorageError."""
    if path is None:
        return
    if os.path.lexists(path):
        raise UsageError(
            f"{path} exists and is not overwritten", hint="choose another --output, or remove it"
        )
    output_path(path)


def output_path(path: Path, *, is_folder: bool = False) -> Path:
    """Return the absolute path of a file or folder that a command may write. Raises StorageError.

    Git's own folder is refused, and also a path through a link in a repository that leads elsewhere, since such a
    link may be committed. Links outside repositories are the user's own. For a folder, the links in it count too.
    """
    path = path.absolute()
    if GIT_FOLDER in {part.lower() for part in (*path.parts, *path.parent.resolve().parts)}:
        raise StorageError(f"{path}: must not be in git's own folder", hint="choose another path")
    current, home = Path(path.anchor), Path("~").expanduser()
    repositories: list[Path] = []
    for part in path.parts[1:]:
        current = current.parent if part == ".." else current / part
        if any(root in current.parents for root in repositories):
            _refuse_link(current)
        if current != home and os.path.lexists(current / GIT_FOLDER):
            repositories.append(current)
    if is_folder and repositories:
        real = path.resolve()
        for place, folders, names in os.walk(path):
            for entry in (Path(place, name) for name in (*folders, *names)):
                if not entry.resolve().is_relative_to(real):
                    _refuse_link(entry)
    return path


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StorageError(
            f"{path}: must be a folder or file of the repository, not a symbolic link",
            hint="replace the link with its target",
        )


def write_file(path: Path, content: bytes) -> bool:
    """Replace a file atomically; return whether it changed. Raises StorageError."""
    with storage_errors(path):
        clear_leftovers(path.parent, path.name)
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            return False
        ensure_folders(path.parent)
        descriptor, name = temporary_file(path.parent, path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                write_synced(file.fileno(), content)
                name.replace(path)  # while the lock is held, or another writer might clear it
        except BaseException:
            name.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
        return True


def remove_file(path: Path) -> None:
    """Remove a file if it exists. Raises StorageError."""
    with storage_errors(path):
        path.unlink(missing_ok=True)


def temporary_file(place: Path, name: str) -> tuple[int, Path]:
    """Create a temporary file for `name` in a folder; return its descriptor, which holds a lock, and path."""
    return _create_locked(lambda: tempfile.mkstemp(TEMPORARY, _temporary_prefix(name), place))


def _create_locked(make: Callable[[], tuple[int, str]]) -> tuple[int, Path]:
    """Create a temporary file or folder and lock it; repeat if it was cleared before it was locked."""
    while True:
        descriptor, name = make()
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if Path(name).stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor, Path(name)
        os.close(descriptor)


@contextmanager
def temporary_folder(place: Path, name: str) -> Iterator[Path]:
    """Create a temporary folder for `name` in a folder; it is removed at the end of the block."""

    def make() -> tuple[int, str]:
        made = tempfile.mkdtemp(TEMPORARY, _temporary_prefix(name), place)
        try:
            return os.open(made, os.O_RDONLY), made
        except OSError:
            Path(made).rmdir()
            raise

    ensure_folders(place)
    clear_leftovers(place, name)
    descriptor, made = _create_locked(make)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder on this machine for the block. Raises StorageError for every failure in the block."""
    with (
        storage_errors(Path(tempfile.gettempdir())),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        yield Path(folder)


def clear_leftovers(place: Path, name: str | None = None) -> None:
    """Remove temporary files that crashes left, for `name` or for all names. Never fails."""
    start = "." if name is None else _temporary_prefix(name)
    with suppress(OSError), os.scandir(place) as entries:
        left = [entry for entry in entries if entry.name.startswith(start)]
        for entry in left:
            if entry.name.endswith(TEMPORARY):
                _clear_entry(entry)


def _clear_entry(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                Path(entry.path).unlink()
        finally:
            os.close(descriptor)


def write_synced(descriptor: int, content: bytes) -> None:
    """Write content to the disk, readable for all users."""
    os.fchmod(descriptor, 0o644)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def ensure_folders(path: Path) -> None:
    """Create a folder and its parents, each synced to the disk."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary_prefix(name: str) -> str:
    return f".{name}."


def remove_folder(folder: Path) -> None:
    """Remove a folder with its content if it exists; links are removed, not followed. Raises StorageError."""
    with storage_errors(folder):
        if folder.is_symlink() or not folder.is_dir():
            return
        with suppress(PermissionError):
            shutil.rmtree(folder)
            return
        for place, _, _ in os.walk(folder):  # from the top: what cannot be listed cannot be removed
            Path(place).chmod(0o700)
        shutil.rmtree(folder)


def make_read_only(folder: Path) -> None:
    """Remove the write permission from a folder and everything in it."""
    for place, _, names in os.walk(folder):
        for path in (Path(place), *(Path(place, name) for name in names)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o555)


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder and its state, which any write changes. Launchers compare the state before each trial."""

    folder: Path
    state: str


BY_CONTENT = "content-"
"""Begins the state of folders whose files were read."""


def walk(folder: Path, *, follows: bool) -> Iterator[tuple[str, os.stat_result, os.DirEntry[str] | None]]:
    """Yield name and state of a folder and of everything below it, and the entry of everything that is no folder.

    If it `follows` links, the content of linked folders is included. Raises OSError.
    """
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", ())]
    while waiting:
        place, around = waiting.pop()
        state = (folder / place).stat()
        if (state.st_dev, state.st_ino) in around:  # a link to a folder around it
            continue
        around = (*around, (state.st_dev, state.st_ino))
        yield place, state, None
        with os.scandir(folder / place) as entries:
            for entry in entries:
                name = f"{place}/{entry.name}" if place else entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((name, around))
                    continue
                yield name, entry.stat(follow_symlinks=False), entry
                with suppress(OSError):
                    if follows and entry.is_dir():
                        waiting.append((name, around))


def folder_state(folder: Path, *, by_content: bool | None = None, follows: bool = False) -> str:
    """Return a digest that any write to a folder changes: of sizes, times and inode numbers of all files.

    It includes contents if the file system does not note each write, or if the caller asks for them. If it
    `follows` links, it includes their targets. The launcher computes the same digest for its copies (`state_of`).
    """
    by_content = not notes_writes(folder) if by_content is None else by_content
    lines = list[str]()
    for name, state, entry in walk(folder, follows=follows):
        lines.append(_state_line(name, state))
        if entry is None:
            continue
        if follows and entry.is_symlink():
            with suppress(OSError):  # it leads nowhere
                lines.append(_state_line(name, entry.stat()))
        if by_content and entry.is_file(follow_symlinks=follows):
            with Path(entry.path).open("rb") as file:
                lines.append(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}")
    digest = hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{BY_CONTENT}{digest}" if by_content else digest


def data_state(folder: Path) -> str:
    """Return the state of a dataset, which any write changes, as today's launcher computes it. Raises StorageError."""
    with storage_errors(folder):
        parts = [path for path in folder.iterdir() if path.is_symlink() and path.is_dir()]
        by_content = not all(map(notes_writes, (folder, *parts)))
        return folder_state(folder, by_content=by_content, follows=True)


def notes_writes(folder: Path) -> bool:
    """Return whether a write through a memory mapping changes the file's time in this folder; on tmpfs it does not.

    True where this cannot be tested, for example in a read-only folder.
    """
    with suppress(OSError, ValueError), _unnamed_file(folder) as file:
        file.write(b"0")
        file.flush()
        with mmap.mmap(file.fileno(), 0) as mapped:
            digit = mapped[0]  # after this read, tmpfs no longer notices a write
            written = os.fstat(file.fileno()).st_mtime_ns
            with _unnamed_file(folder) as clock:
                while os.fstat(clock.fileno()).st_mtime_ns <= written:
                    time.sleep(0.0005)
                    os.utime(clock.fileno())
            mapped[0] = digit
        return os.fstat(file.fileno()).st_mtime_ns > written
    return True


def _unnamed_file(folder: Path) -> IO[bytes]:
    """Return an unnamed file in the file system of a folder; the folder does not change."""
    with suppress(OSError, AttributeError):
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), "w+b")
    parent = folder.resolve().parent
    if parent.stat().st_dev != folder.stat().st_dev:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(folder))
    return cast(IO[bytes], tempfile.TemporaryFile(dir=parent))


def _state_line(name: str, state: os.stat_result) -> str:
    return f"{name}\0{state.st_ino} {state.st_mode:o} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"
