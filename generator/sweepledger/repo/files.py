"""Writing files so that a reader, or a crash, sees all or nothing."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from generator.errors import StorageError
from generator.repo import aside
from generator.repo.aside import TEMPORARY
from generator.structs.tree import Drift, FileTree
from generator.untrusted import read_regular

GIT_FOLDER = ".git"
"""What lies there git obeys: hooks, settings."""


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn what the operating system says about a file into an error that names it."""
    try:
        yield
    except OSError as error:
        place = path if _names_nothing(error.filename) else error.filename
        raise StorageError(f"{place}: {(error.strerror or str(error)).lower()}") from error


def _names_nothing(place: object) -> bool:
    """Tell whether a place says nothing to a person: ours for a while, or a name in a folder left unsaid."""
    parts = Path(place).parts if isinstance(place, str) else ()
    # shutil.rmtree goes from folder to folder, and its errors hold the last name alone.
    return len(parts) < 2 or any(part.endswith(TEMPORARY) for part in parts)  # noqa: PLR2004 - a folder and a name


LARGEST_INPUT = 256 * 1024
"""The reader's own limit for a spec; what is larger is cut, and refused there."""

LARGEST_SOURCES = 8 * 2**20
"""Of a folder of sources, as `base/` is one: all of it is read, and it has a hundred kilobytes."""

CACHE = "__pycache__"
"""What Python leaves beside sources that somebody ran."""

LARGEST_FILE = 64 * 2**20
"""Of what is generated; a sparse file of a terabyte costs its author nothing, and its reader all memory."""


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
        aside.clear_leavings(path.parent, path.name)
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            return False
        aside.make_folders(path.parent)
        descriptor, name = aside.new_file(path.parent, path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                aside.write(file.fileno(), content)
                name.replace(path)  # while the lock is held: else somebody might clear it away
        except BaseException:
            name.unlink(missing_ok=True)
            raise
        aside.sync_folder(path.parent)
        return True


def append(path: Path, content: bytes) -> None:
    """Add to the end of a file that others add to as well. Raises StorageError."""
    with storage(path), path.open("ab") as file:
        file.write(content)


def remove_file(path: Path) -> None:
    """Remove a file if it is there. Raises StorageError."""
    with storage(path):
        path.unlink(missing_ok=True)


def write_folder(path: Path, tree: FileTree, *, staging: Path | None = None) -> None:
    """Make a new folder with exactly these files appear at once. Raises StorageError.

    It is filled in `staging`, on the same file system, where a crash leaves nothing that a controller reads.
    """
    place = staging or path.parent
    with storage(path):
        aside.make_folders(path.parent)
        with aside.new_folder(place, path.name) as made:
            aside.fill(made, tree)
            made.chmod(0o755)
            aside.sync_folder(made)
            made.rename(path)
        aside.sync_folder(path.parent)


def make_folder(path: Path, tree: FileTree, finish: Callable[[Path], None]) -> None:
    """Fill a new or empty folder with a tree and whatever `finish` adds to it; on failure leave it as it was.

    Raises StorageError, and what `finish` raises.
    """
    existed = path.is_dir()
    place = path if existed else path.parent
    with storage(path):
        try:
            with aside.new_folder(place, path.name) as made:
                aside.fill(made, tree)
                finish(made)
                made.chmod(0o755)
                if existed:  # somebody may stand in it, so it stays the folder that it is
                    for entry in sorted(made.iterdir()):
                        entry.rename(path / entry.name)
                    made.rmdir()
                else:
                    made.rename(path)
        except BaseException:
            if existed:
                for entry in path.iterdir():
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            raise
        aside.sync_folder(place)


def remove_folder(path: Path, *, staging: Path) -> None:
    """Remove a generated folder; it vanishes under its name at once. Raises StorageError."""
    with storage(path), aside.new_folder(staging, path.name) as doomed:
        path.rename(doomed / path.name)
        aside.sync_folder(path.parent)
        shutil.rmtree(doomed)


def clear_staging(staging: Path) -> None:
    """Remove what crashes left in a folder that is for nothing but staging."""
    aside.clear_leavings(staging)


def list_folder(path: Path) -> tuple[str, ...]:
    """List every file below a folder, none overlooked; of an absent folder nothing.

    Raises StorageError. Symbolic links and devices are refused, not followed or opened.
    """
    with storage(path):
        return tuple(sorted(_below(path, ""))) if path.is_dir() else ()


def _below(folder: str | Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{prefix}{entry.name}"
            else:
                raise StorageError(f"{entry.path}: must be a regular file, not a symbolic link or a device")


def read_file(path: Path) -> bytes:
    """Read a file of the repository. Raises StorageError for links, devices and what is far too large."""
    with storage(path):
        content = read_regular(path, LARGEST_FILE)
    if content is None:
        raise StorageError(f"{path}: must be a regular file, not a symbolic link or a device")
    if len(content) > LARGEST_FILE:
        raise StorageError(f"{path}: must have at most {LARGEST_FILE >> 20} MiB")
    return content


def read_folder(path: Path) -> FileTree:
    """Read every file below a folder, as `list_folder` finds them. Raises StorageError."""
    return FileTree({name: read_file(path / name) for name in list_folder(path)})


def read_sources(path: Path) -> FileTree:
    """Read a folder of sources without Python's caches. Raises StorageError, also if it is far too large."""
    names = [name for name in list_folder(path) if CACHE not in name.split("/")]
    with storage(path):
        size = sum((path / name).lstat().st_size for name in names)
    if size > LARGEST_SOURCES:
        raise StorageError(
            f"{path}: must have at most {LARGEST_SOURCES >> 20} MiB, got {size >> 20}",
            hint="it is for building blocks; move what is large elsewhere",
        )
    return FileTree({name: read_file(path / name) for name in names})


def difference(wanted: FileTree, found: FileTree) -> Drift:
    """Say how a folder differs from the tree it should be."""
    return Drift(
        added=tuple(path for path, _ in wanted if path not in found.files),
        changed=tuple(
            path for path, content in wanted if path in found.files and found.files[path] != content
        ),
        stale=tuple(path for path, _ in found if path not in wanted.files),
    )
