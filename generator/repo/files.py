"""Writing files so that a reader, or a crash, sees all or nothing."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generator.errors import StorageError
from generator.structs.tree import Drift, FileTree
from generator.untrusted import read_regular

TEMPORARY = ".tmp"

GIT_FOLDER = ".git"
"""What lies there git obeys: hooks, settings."""


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a file into an error that names it."""
    try:
        yield
    except OSError as error:
        place = error.filename or path
        raise StorageError(f"{place}: {(error.strerror or str(error)).lower()}") from error


LARGEST_INPUT = 256 * 1024
"""The reader's own limit for a spec; what is larger is cut, and refused there."""


def refuse_links(root: Path, *places: str | Path) -> None:
    """Refuse a place whose folders below `root`, or the place itself, are links. Raises StorageError.

    Whoever may commit a link could otherwise have files read and written outside of the repository.
    """
    for place in places:
        path = root
        for part in Path(place).parts:
            path /= part
            if path.is_symlink():
                raise StorageError(
                    f"{path}: must be a folder or file of the repository, not a symbolic link",
                    hint="replace the link by what it leads to",
                )


def refuse_outside(root: Path | None, output: Path) -> None:
    """Refuse to write into git's own folder, or through a link of the repository. Raises StorageError."""
    path = output.absolute()
    real = path.parent.resolve()
    if GIT_FOLDER in {part.lower() for part in (*path.parts, *real.parts)}:
        raise StorageError(f"{output}: must not be in git's own folder", hint="choose another --output")
    if root is not None and path.is_relative_to(root):
        refuse_links(root, path.relative_to(root))


def read_input(path: Path) -> bytes:
    """Read a file that a person, or a pull request, put into the work tree. Raises StorageError.

    Anything but a regular file is refused unopened: a link could lead to what only this machine may know.
    """
    with storage(path):
        content = read_regular(path, LARGEST_INPUT)
    if content is None:
        raise StorageError(
            f"{path}: must be a regular file", hint="replace the link, folder or device by a file"
        )
    return content


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


def write_folder(path: Path, tree: FileTree, *, staging: Path | None = None) -> None:
    """Make a new folder with exactly these files appear at once. Raises StorageError.

    It is filled in `staging`, on the same file system, where a crash leaves nothing that a controller reads.
    """
    place = staging or path.parent
    with storage(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place, prefix=f".{path.name}.", suffix=TEMPORARY))
        try:
            for name, content in tree:
                write_file(made / name, content)
            made.chmod(0o755)
            made.rename(path)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        _sync_folder(path.parent)


def remove_folder(path: Path, *, staging: Path) -> None:
    """Remove a generated folder; it vanishes under its name at once. Raises StorageError."""
    with storage(path):
        staging.mkdir(parents=True, exist_ok=True)
        doomed = Path(tempfile.mkdtemp(dir=staging, suffix=TEMPORARY))
        path.rename(doomed / path.name)
        shutil.rmtree(doomed)


def read_folder(path: Path) -> FileTree:
    """Read every file below a folder but Python's caches; an absent folder is an empty tree.

    Raises StorageError. Symbolic links are refused, not followed.
    """
    files: dict[str, bytes] = {}
    with storage(path):
        for file in sorted(path.rglob("*")) if path.is_dir() else ():
            if "__pycache__" in file.parts:
                continue
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
