"""Writing files so that a reader, or a crash, sees all or nothing."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generator.errors import StorageError
from generator.structs.tree import Drift, FileTree

TEMPORARY = ".tmp"


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a file into an error that names it."""
    try:
        yield
    except OSError as error:
        place = error.filename or path
        raise StorageError(f"{place}: {(error.strerror or str(error)).lower()}") from error


def write_file(path: Path, content: bytes) -> bool:
    """Replace a file atomically; tell whether anything changed. Raises StorageError."""
    with storage(path):
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
        return True


def write_folder(path: Path, tree: FileTree) -> None:
    """Make a new folder with exactly these files appear at once. Raises StorageError."""
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=TEMPORARY))
        try:
            for name, content in tree:
                write_file(staging / name, content)
            staging.chmod(0o755)
            staging.rename(path)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        _sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Remove a generated folder; it vanishes under its name at once. Raises StorageError."""
    with storage(path):
        doomed = path.with_name(f".{path.name}{TEMPORARY}")
        path.rename(doomed)
        shutil.rmtree(doomed)


def read_folder(path: Path) -> FileTree:
    """Read every file below a folder; an absent folder is an empty tree. Raises StorageError.

    Symbolic links are refused, not followed.
    """
    files: dict[str, bytes] = {}
    with storage(path):
        for file in sorted(path.rglob("*")) if path.is_dir() else ():
            if file.is_symlink() or not (file.is_dir() or file.is_file()):
                raise StorageError(f"{file}: must be a regular file, not a link or a device")
            if file.is_file():
                files[file.relative_to(path).as_posix()] = file.read_bytes()
    return FileTree(files)


def difference(wanted: FileTree, found: FileTree) -> Drift:
    """Say how a folder differs from the tree it should be."""
    return Drift(
        added=tuple(path for path, _ in wanted if path not in found.files),
        changed=tuple(
            path for path, content in wanted if path in found.files and found.files[path] != content
        ),
        stale=tuple(path for path, _ in found if path not in wanted.files),
    )


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
