"""The folders of a pod below the engine's state."""

# pathlib would add to what every trial costs:
# ruff: noqa: PTH103, PTH104, PTH108, PTH110, PTH113, PTH114, PTH115, PTH120

import contextlib
import functools
import hashlib
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sweepledger.engine.local.launcher_worker import UPPER
from sweepledger.engine.local.local_batch import SCRATCH, SHARED_MEMORY, LocalBatch
from sweepledger.errors import StorageError
from sweepledger.safe_open import read_regular
from sweepledger.storage import remove_folder, storage_errors
from sweepledger.structs.run_config import OTHER_DISK

CLONE_ID, CLONE_ID_BYTES = "clone-id", 64
"""The file in the state folder by which a clone knows it as its own."""
VOLUMES = "volumes"
TERMINATION_FILE = "termination-log"
"""Created before the pod starts, as by a kubelet: launchers write to it only if it exists."""
STDERR_FILE = "stderr"
FIRST_LINE = b"\n"
"""Begins a file of stderr, which is cut to it for the next pod: some file systems write an empty one to the disk."""


class StateFolders(Struct, frozen=True):
    """The engine's state folder, and its folders for pods."""

    state: Path

    @property
    def results(self) -> Path:
        """The results volume."""
        return self.state / "results"

    @property
    def pods(self) -> Path:
        """One folder per pod that has not ended."""
        return pods_folder(self.state)

    def pod(self, uid: str) -> Path:
        """Return the folder for the files of a pod, which are deleted with it."""
        return self.pods / uid

    def job(self, name: str) -> Path:
        """Return the folder of a Job's launcher, launch file and table."""
        return Path(self.state, "jobs", name)


@functools.cache
def pods_folder(state: Path) -> Path:
    """Return the parent of the pods' folders: outside of a clone, which programs would take for their project."""
    state = state.resolve()
    if not any((folder / ".git").exists() for folder in (state, *state.parents)):
        return state / "pods"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # In another container or on another machine, another clone can have this path, and share the cache.
    with storage_errors(state):
        clone = read_regular(state / CLONE_ID, CLONE_ID_BYTES) or b""
    identity = hashlib.sha256(clone + os.fsencode(state)).hexdigest()[:12]
    return cache.absolute() / "sweepledger" / identity / "pods"


def trial_folder(folders: StateFolders, batch: LocalBatch, row: int) -> Path:
    """Return the folder of the results volume for the records of a row."""
    folder = pod_results(folders, batch, batch.pod_number(row))
    return folder if batch.pack is None else folder / str(row)


def pod_results(folders: StateFolders, batch: LocalBatch, number: int) -> Path:
    """Return the folder of the results volume for a pod."""
    return Path(folders.results, batch.name, str(number))


def write_files(folders: StateFolders, batch: LocalBatch) -> None:
    """Write the files of a Job once, because they are immutable. Raises StorageError."""
    target = folders.job(batch.name)
    if target.is_dir():
        return
    temporary = target.with_name(f"{target.name}.tmp")
    with storage_errors(target):
        shutil.rmtree(temporary, ignore_errors=True)
        for name, content in batch.files.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o444)
        temporary.rename(target)


def prepare_folders(
    folders: StateFolders, batch: LocalBatch, number: int, uid: str, read_only: Mapping[str, Path]
) -> dict[str, Path]:
    """Create the folders of a pod that `take_pod` has not provided; return all by their paths in the container.

    `read_only` are existing folders. Raises StorageError.
    """
    own = folders.pod(uid)
    kept = batch.kept_folders(number, batch.parents.get(number), folders.state)
    temporary = batch.temporary_folders(own / VOLUMES)
    with storage_errors(own):
        os.makedirs(own, exist_ok=True)
        for path, content in ((own / TERMINATION_FILE, b""), (own / STDERR_FILE, FIRST_LINE)):
            if not os.path.exists(path):
                path.write_bytes(content)
        for folder in kept.values():
            _unlink_links(folders.state, folder)
        for folder in (*kept.values(), *temporary.values()):
            os.makedirs(folder, exist_ok=True)
    return {**read_only, **kept, **temporary}


def _unlink_links(state: Path, folder: Path) -> None:
    """Remove links on the path from a volume to a pod's folder, which another trial may have created."""
    path = f"{folder}"
    for _ in range(len(folder.parts) - len(state.parts) - 1):
        if os.path.islink(path):
            os.unlink(path)
        path = os.path.dirname(path)


MOST_REPORTED = 4 << 20
"""Bytes that are read of what a running trial reports in a file."""
_REPORT = "result.json"
_COPIED = "copied"
"""A file of the launcher that says what its copy of the code was, where a later change would be noticed."""
LEFT_FILES = (TERMINATION_FILE, STDERR_FILE)
"""What the folder of a pod has besides its volumes."""
_KEPT = (_COPIED, *LEFT_FILES)
"""Small files that the next pod reads, or writes over: to delete and create them takes some file systems longer."""
SHORT_FOLDER, SHORT_PREFIX = "/tmp", "sweep-tmp-"  # noqa: S108 - where launchers make them


def reported_lines(state: Path, uid: str) -> bytes:
    """Return the lines that a running trial has written to `$SWEEP_RESULT`; none if its pod is not here.

    The launcher makes a temporary folder in the scratch volume for it. Raises StorageError.
    """
    folder = StateFolders(state).pod(uid) / VOLUMES
    with storage_errors(folder):
        places = (f"*/trial-*/{_REPORT}", f"*/{UPPER}/trial-*/{_REPORT}") if uid and folder.is_dir() else ()
        for path in (path for place in places for path in sorted(folder.glob(place))):
            if not path.parent.is_symlink() and (content := read_regular(path, MOST_REPORTED)) is not None:
                return content
    return b""


def scratch_limits(folders: StateFolders, batch: LocalBatch, uid: str) -> tuple[tuple[Path, int], ...]:
    """Return the folders of a pod with a limit, and the bytes that each may contain."""
    own = folders.pod(uid)
    limits = [(Path(own, VOLUMES, SCRATCH), batch.scratch), (own, batch.scratch + OTHER_DISK)]
    if batch.shared_memory is not None:
        limits.append((own / VOLUMES / SHARED_MEMORY, batch.shared_memory))
    return tuple(limits)


def leave_pod(folders: StateFolders, uid: str) -> bool:
    """Return whether another pod can use the folder of an ended pod, which then has only a launcher's folder.

    From it, the next launcher takes only unchanged files of the code. Everything except the copy of the code
    is deleted here, because it may be large, and a result must not be mistaken for that of the next pod.
    """
    pod = folders.pod(uid)
    with contextlib.suppress(OSError, StorageError):
        around = list(os.scandir(pod))
        volumes = list(os.scandir(pod / VOLUMES))
        trials = [entry for volume in volumes for entry in os.scandir(volume)]
        if (
            {entry.name for entry in around} != {VOLUMES, *LEFT_FILES}
            or len(trials) > 1
            or any(entry.is_symlink() for entry in (*around, *volumes, *trials))
            or any(
                not (trial.name.startswith("trial-") and os.path.isfile(f"{trial.path}/{_COPIED}"))
                for trial in trials
            )
        ):
            return False
        own = (entry for trial in trials for entry in os.scandir(trial))
        for entry in (*own, *(entry for entry in around if entry.name != VOLUMES)):
            if not entry.is_dir(follow_symlinks=False):
                state = entry.stat(follow_symlinks=False)
                if entry.name not in _KEPT or not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
                    os.unlink(entry)
                elif entry.name == STDERR_FILE and state.st_size > len(FIRST_LINE):
                    os.truncate(entry, len(FIRST_LINE))
            elif entry.name != "run":
                remove_folder(Path(entry.path))
        return True
    return False


def take_pod(folders: StateFolders, left: str, uid: str) -> None:
    """Move the folder that an ended pod has left to another pod, or delete it if this fails."""
    try:
        os.rename(folders.pod(left), folders.pod(uid))
    except OSError:
        remove_pod(folders, left)


def remove_files(folders: StateFolders, job: str) -> None:
    """Remove the files of a pruned Job."""
    shutil.rmtree(folders.job(job), ignore_errors=True)


def remove_pods_folder(folders: StateFolders) -> None:
    """Remove the folder of all pods if it is empty, and not in the state folder."""
    if not folders.pods.is_relative_to(folders.state):
        with contextlib.suppress(OSError):
            folders.pods.rmdir()
            folders.pods.parent.rmdir()


def remove_pod(folders: StateFolders, uid: str) -> None:
    """Remove the files of a pod, also folders whose permissions its trial has removed."""
    with contextlib.suppress(StorageError):
        remove_folder(folders.pod(uid))


def remove_short_links(folders: StateFolders) -> None:
    """Remove the links to long temporary folders of pods that launchers have left behind."""
    below = f"{folders.pods}{os.sep}"  # as texts: a folder of many users may have thousands of links
    with os.scandir(SHORT_FOLDER) as entries:
        for entry in entries:
            if entry.name.startswith(SHORT_PREFIX):
                with contextlib.suppress(OSError):
                    if os.readlink(entry.path).startswith(below):
                        os.unlink(entry.path)
