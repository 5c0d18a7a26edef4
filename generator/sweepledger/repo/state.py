"""The state folder of a clone: files that this machine caches and runs, and that no commit may add.

A commit can add files at any path of a work tree. State is trusted without review: the code that trials run, the
results to record, git's configuration. Therefore, only state that this clone has created is used: its mark
is also in git's own folder, where no commit can write.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sweepledger import storage
from sweepledger.errors import StorageError
from sweepledger.repo.files import refuse_links
from sweepledger.repo.git.repository import Repository
from sweepledger.safe_open import read_regular
from sweepledger.structs.names import file_system_name

STATE = ".sweepledger"
DATA = "data"
"""Folder of datasets, which users fill, and whose content is compared with the spec before each use."""
MARK = "clone-id"
MARK_IN_GIT = "sweepledger/clone-id"
MARK_BYTES = 64
BEGINNING = "sweepl"
"""What every plain path into the state folder contains."""
SHORT_NAME = re.compile(r"sweepl~[0-9]+")
"""How Windows abbreviates the name."""
MOST_COUNTED = 20_000
"""Files whose sizes are added up: they take a tenth of a second."""
BLOCK = 512
"""Bytes of the blocks in which systems count what a file takes."""
HINT = "results in git are safe: remove the folder, and it is created again; trials that run here start again"


def leads_into_state(path: str) -> bool:
    """Return whether a path, or the target of a link, names the state folder."""
    if path.isascii() and BEGINNING not in path.lower():
        return False  # nearly always
    names = map(file_system_name, re.split(r"[/\\]", path))
    return any(name == STATE or SHORT_NAME.fullmatch(name) is not None for name in names)


def may_lead_into_state(paths: Iterable[str]) -> Iterable[str]:
    """Return the paths for which `leads_into_state` may be true, usually few, by one search."""
    listed = list(paths)
    text = "\0".join(listed)
    return _paths_with(text, BEGINNING) if text.isascii() else listed


def _paths_with(text: str, part: str) -> Iterator[str]:
    """Yield the paths in a NUL-separated text that contain a part, in upper or lower case."""
    plain, at = text.lower(), 0
    while (found := plain.find(part, at)) >= 0:
        start, at = text.rfind("\0", 0, found) + 1, text.find("\0", found)
        at = at if at >= 0 else len(text)
        yield text[start:at]


def disk_used(*folders: Path) -> tuple[int, bool]:
    """Return the bytes that folders take on their disks, and whether all of their files are counted."""
    waiting, used, count = [*folders], 0, 0
    while waiting:
        with (
            suppress(OSError),
            os.scandir(waiting.pop()) as entries,
        ):  # a trial that ends takes its files along
            for entry in entries:
                if count == MOST_COUNTED:
                    return used, False
                count += 1
                used += entry.stat(follow_symlinks=False).st_blocks * BLOCK
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
    return used, True


def state_folder(repository: Repository, chosen: Path | None = None) -> Path:
    """Return the state folder, which may not exist. Raises StorageError if this clone has not created it.

    A `chosen` folder outside of the work tree has no mark, because no commit can write there.
    """
    folder = repository.folder / STATE if chosen is None else chosen.absolute()
    inside = folder.is_relative_to(repository.folder)
    if inside:
        refuse_links(repository.folder, folder.relative_to(repository.folder))
        place = folder.relative_to(repository.folder).as_posix()
        tracked = repository.run("ls-files", "-z", "--", f":(top,icase,literal){place}").split("\0")[0]
        if tracked:
            # The mark is withdrawn, too: what git has written there may remain.
            with suppress(StorageError):
                storage.remove_file(repository.git_path(MARK_IN_GIT))
            raise StorageError(
                f"{tracked}: git has files of the state folder {folder}, which nobody reviews",
                hint=f"`git rm -r --force {place}` and commit that; then remove the folder",
            )
    with storage.storage_errors(folder):
        try:
            found = folder.lstat()
        except FileNotFoundError:
            return folder
        if not stat.S_ISDIR(found.st_mode):
            raise StorageError(f"{folder}: the state must be a folder, not a link or a file", hint=HINT)
        if found.st_uid != os.geteuid():
            raise StorageError(
                f"{folder} belongs to another user (uid {found.st_uid})",
                hint="run sweep as that user, or choose another folder with --state",
            )
    mark = _mark(folder / MARK) if inside else None
    is_marked = mark is not None and mark == _mark(repository.git_path(MARK_IN_GIT))
    if inside and not is_marked and not _is_blank(folder):
        raise StorageError(
            f"{folder} was not created by this clone, so it may contain code and results that nobody reviewed",
            hint=HINT,
        )
    return folder


def create_state(repository: Repository, chosen: Path | None = None) -> Path:
    """Create the state folder of this clone if it does not exist, and return it. Raises as `state_folder` does."""
    folder = state_folder(repository, chosen)
    if folder.is_relative_to(repository.folder):
        storage.write_file(folder / MARK, _clone_id(repository))
    # `git add` must not add the state to the user's repository.
    storage.write_file(folder / ".gitignore", b"*\n")
    return folder


def _is_blank(folder: Path) -> bool:
    """Return whether an unmarked folder has nothing to trust: a process was killed, or a user put data there."""
    with storage.storage_errors(folder):
        names = {path.name for path in folder.iterdir()} - {".gitignore", DATA}
    return all(name.endswith(storage.TEMPORARY) for name in names)


def _mark(path: Path) -> bytes | None:
    with storage.storage_errors(path):
        mark = read_regular(path, MARK_BYTES)
    return mark if mark is not None and len(mark) == MARK_BYTES else None


def _clone_id(repository: Repository) -> bytes:
    """Return the mark of this clone, which the first process that needs it creates."""
    path = repository.git_path(MARK_IN_GIT)
    mark = _mark(path)
    if mark is None:
        with storage.storage_errors(path):
            path.parent.mkdir(exist_ok=True)
            descriptor, drawn = storage.temporary_file(path.parent, path.name)
            with os.fdopen(descriptor, "wb") as file:
                storage.write_synced(file.fileno(), secrets.token_hex(MARK_BYTES // 2).encode())
            with suppress(FileExistsError):
                os.link(drawn, path)  # unlike a rename, it keeps the mark of a process that was faster
            drawn.unlink()
        mark = _mark(path)
    if mark is None:
        raise StorageError(f"{path}: must be a file", hint="remove it")
    return mark
