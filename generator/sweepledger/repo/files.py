"""Files and folders of the repository: read without following links, and written atomically; folders of the package."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sweepledger.errors import StorageError
from sweepledger.safe_open import read_regular
from sweepledger.storage import ensure_folders, storage_errors, sync_folder, temporary_folder, write_synced
from sweepledger.structs.file_tree import Drift, FileTree


def fill_folder(folder: Path, tree: FileTree) -> None:
    """Write files into a folder that has a temporary name."""
    made: set[Path] = set()
    for name, content in tree:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        made.update(parent for parent in path.parents if parent.is_relative_to(folder))
        with path.open("xb", buffering=0) as file:
            write_synced(file.fileno(), content)
    for parent in made:
        sync_folder(parent)


LARGEST_INPUT = 256 * 1024
"""Bytes of a spec, as in the reader, which refuses a larger one."""

LARGEST_SOURCES = 8 * 2**20
"""Bytes of a folder of sources such as `base/`, which is read whole and has about 100 kB."""

PYTHON_CACHE = "__pycache__"
"""The cache that Python writes next to sources."""

LARGEST_GENERATED_FILE = 64 * 2**20
"""Bytes of a generated file: a sparse file of a terabyte costs its author nothing, but a reader all memory."""


def refuse_links(root: Path, *places: str | Path) -> None:
    """Raise StorageError if a path below `root`, or one of its folders, is a symbolic link.

    A committed link could otherwise make the tool read and write files outside of the repository.
    """
    for place in places:
        path = root
        for part in Path(place).parts:
            path /= part
            if path.is_symlink():
                raise StorageError(
                    f"{path}: must be a folder or file of the repository, not a symbolic link",
                    hint="replace the link with its target",
                )


def read_input(path: Path) -> bytes:
    """Read a spec or settings file of the work tree. Raises StorageError.

    Anything but a regular file is refused unopened: a link in a pull request could lead to a secret of this machine.
    """
    with storage_errors(path):
        content = read_regular(path, LARGEST_INPUT)
    if content is None:
        raise StorageError(
            f"{path}: must be a regular file", hint="replace the link, folder or device with a file"
        )
    return content


def write_folder(path: Path, tree: FileTree, *, staging: Path | None = None) -> None:
    """Create a folder with exactly these files atomically. Raises StorageError.

    It is filled in `staging`, on the same file system, so that a crash leaves nothing that a controller reads.
    """
    place = staging or path.parent
    with storage_errors(path):
        ensure_folders(path.parent)
        with temporary_folder(place, path.name) as made:
            fill_folder(made, tree)
            made.chmod(0o755)
            sync_folder(made)
            made.rename(path)
        sync_folder(path.parent)


def make_folder(path: Path, tree: FileTree, finish: Callable[[Path], None]) -> None:
    """Fill a new or empty folder with a tree and the files that `finish` adds; restore the folder on failure.

    Raises StorageError, and the errors of `finish`.
    """
    existed = path.is_dir()
    place = path if existed else path.parent
    with storage_errors(path):
        try:
            with temporary_folder(place, path.name) as made:
                fill_folder(made, tree)
                finish(made)
                made.chmod(0o755)
                if existed:  # it may be the current directory of a shell, so it is not replaced
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
        sync_folder(place)


def remove_folder(path: Path, *, staging: Path) -> None:
    """Remove a generated folder; its name disappears atomically. Raises StorageError."""
    with storage_errors(path), temporary_folder(staging, path.name) as doomed:
        path.rename(doomed / path.name)
        sync_folder(path.parent)
        shutil.rmtree(doomed)


def list_folder(path: Path) -> tuple[str, ...]:
    """Return the paths of all files below a folder; none if it does not exist.

    Raises StorageError for symbolic links and devices, which are neither followed nor opened.
    """
    with storage_errors(path):
        return tuple(sorted(_walk(path, ""))) if path.is_dir() else ()


def _walk(folder: str | Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield f"{prefix}{entry.name}"
            else:
                raise StorageError(f"{entry.path}: must be a regular file, not a symbolic link or a device")


def read_file(path: Path) -> bytes:
    """Read a file of the repository. Raises StorageError for links, devices and files that are too large."""
    with storage_errors(path):
        content = read_regular(path, LARGEST_GENERATED_FILE)
    if content is None:
        raise StorageError(f"{path}: must be a regular file, not a symbolic link or a device")
    if len(content) > LARGEST_GENERATED_FILE:
        raise StorageError(f"{path}: must have at most {LARGEST_GENERATED_FILE >> 20} MiB")
    return content


def read_folder(path: Path) -> FileTree:
    """Read all files that `list_folder` returns. Raises StorageError."""
    return FileTree({name: read_file(path / name) for name in list_folder(path)})


def read_sources(path: Path) -> FileTree:
    """Read a folder of sources without Python's caches. Raises StorageError, also if it is too large."""
    names = [name for name in list_folder(path) if PYTHON_CACHE not in name.split("/")]
    with storage_errors(path):
        size = sum((path / name).lstat().st_size for name in names)
    if size > LARGEST_SOURCES:
        raise StorageError(
            f"{path}: must have at most {LARGEST_SOURCES >> 20} MiB, got {size >> 20}",
            hint="it is for Kustomize files; move large files elsewhere",
        )
    return FileTree({name: read_file(path / name) for name in names})


def difference(expected: FileTree, actual: FileTree) -> Drift:
    """Return how a folder differs from the tree that it should contain."""
    return Drift.between(expected.files, actual.files)


def copy_files(root: Path, paths: Iterable[str], target: Path) -> None:
    """Copy files and links that exist below a folder to the same paths below another. Raises StorageError."""
    with storage_errors(target):
        target.mkdir(parents=True, exist_ok=True)
        for path in paths:
            source, copy = root / path, target / path
            if source.is_symlink() or source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy, follow_symlinks=False)


PACKAGE = Path(__file__).parent.parent
WORKFLOWS = PACKAGE / "workflows"
"""The folder of workflows, laid out as a repository on a code host needs them."""


def base_folder() -> Path:
    """Return the folder `base/`: that of the checkout, else that of the installed package."""
    checkout = PACKAGE.parent.parent / "base"
    return checkout if checkout.is_dir() else PACKAGE / "base"
