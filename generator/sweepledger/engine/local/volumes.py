"""The volumes of a pod as folders below the engine's state."""

import contextlib
import functools
import hashlib
import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from sweepledger.engine.local.environment import sub_path
from sweepledger.engine.local.job_spec import (
    BatchSpec,
    ConfigVolume,
    DataVolume,
    JobSpec,
    KeptVolume,
    ResultsVolume,
    ScratchVolume,
)
from sweepledger.errors import RepositoryError, StorageError
from sweepledger.safe_open import read_regular
from sweepledger.storage import remove_folder, storage_errors
from sweepledger.structs.kubernetes import PARENT_PATH

VOLUMES = "volumes"
TERMINATION_FILE = "termination-log"
"""Created before the pod starts, as by a kubelet: launchers write to it only if it exists."""
STDERR_FILE = "stderr"


@dataclass(frozen=True, slots=True)
class StateFolders:
    """The engine's state folder, and its folders for pods."""

    state: Path

    @property
    def results(self) -> Path:
        """The results volume."""
        return self.state / "results"

    @property
    def pods(self) -> Path:
        """One folder per pod that has not ended."""
        return _pods_folder(self.state)

    def pod(self, uid: str) -> Path:
        """Return the folder for the files of a pod, which are deleted with it."""
        return self.pods / uid

    def config(self, job: str) -> Path:
        """Return the folder for the ConfigMaps of a Job, with one folder per volume."""
        return self.state / "jobs" / job


@functools.cache
def _pods_folder(state: Path) -> Path:
    """Return where pods have their folders: outside of a clone, which programs would take for their project."""
    state = state.resolve()
    if not any((folder / ".git").exists() for folder in (state, *state.parents)):
        return state / "pods"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache.absolute() / "sweepledger" / hashlib.sha256(os.fsencode(state)).hexdigest()[:12] / "pods"


def trial_folder(folders: StateFolders, job: JobSpec, row: int) -> Path:
    """Return the folder of the results volume for the records of a row."""
    folder = pod_results(folders, job, job.pod_number(row))
    return folder if job.pack is None else folder / str(row)


def pod_results(folders: StateFolders, job: JobSpec, number: int) -> Path:
    """Return the folder of the results volume that a pod mounts."""
    for mount in job.pod.mounts:
        if isinstance(job.pod.volumes.get(mount.volume), ResultsVolume) and mount.path != PARENT_PATH:
            return folders.results / sub_path(mount, {"JOB_COMPLETION_INDEX": str(number)})
    raise AssertionError("the parser refuses a Job without results volume")


def write_configs(folders: StateFolders, batch: BatchSpec, job: JobSpec) -> None:
    """Write the ConfigMaps of a Job once, because they are immutable. Raises StorageError."""
    target = folders.config(job.name)
    if target.is_dir():
        return
    temporary = target.with_name(f"{target.name}.tmp")
    with storage_errors(target):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, volume in job.pod.volumes.items():
            if isinstance(volume, ConfigVolume):
                _write_config_volume(temporary / name, volume, batch.config_maps)
        temporary.rename(target)


def _write_config_volume(
    folder: Path, volume: ConfigVolume, config_maps: Mapping[str, Mapping[str, str]]
) -> None:
    folder.mkdir()
    for source in volume.sources:
        data = config_maps[source.name]
        for key, place in source.items or tuple((key, key) for key in data):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(data[key], encoding="utf-8", newline="\n")
            path.chmod(0o444)


def remove_configs(folders: StateFolders, job: str) -> None:
    """Remove the ConfigMaps of a pruned Job."""
    shutil.rmtree(folders.config(job), ignore_errors=True)


def prepare_mounts(
    folders: StateFolders, job: JobSpec, uid: str, *, variables: Mapping[str, str], data: Path | None
) -> dict[str, Path]:
    """Create the folders that a pod mounts, as far as `take_pod` has left none; return them by mount path.

    Raises StorageError and RepositoryError.
    """
    mounted: dict[str, Path] = {}
    own = folders.pod(uid)
    with storage_errors(own):
        own.mkdir(parents=True, exist_ok=True)
        (own / TERMINATION_FILE).touch()
        for mount in job.pod.mounts:
            volume, base = (
                job.pod.volumes[mount.volume],
                _volume_folder(folders, job, uid, mount.volume, data),
            )
            # A dataset is its folder itself, wherever it is in the volume of a cluster.
            place = base if isinstance(volume, DataVolume) else base / sub_path(mount, variables)
            mounted[mount.path] = place
            if isinstance(volume, ResultsVolume | KeptVolume):  # others have no folders of other trials
                _unlink_links(base, place)
            if not isinstance(volume, ConfigVolume | DataVolume):
                place.mkdir(parents=True, exist_ok=True)
    return mounted


def _unlink_links(base: Path, folder: Path) -> None:
    """Remove links on the path to a pod's folder, which another trial may have created."""
    for place in (folder, *folder.parents):
        if place == base:
            return
        if place.is_symlink():
            place.unlink()


def _volume_folder(folders: StateFolders, job: JobSpec, uid: str, name: str, data: Path | None) -> Path:
    volume = job.pod.volumes[name]
    match volume:
        case ConfigVolume():
            return folders.config(job.name) / name
        case ResultsVolume():
            return folders.results
        case KeptVolume():
            return folders.state / volume.name
        case ScratchVolume():
            return folders.pod(uid) / VOLUMES / name
        case DataVolume():
            if data is None:
                raise RepositoryError(f"{job.batch} needs a dataset, but no folder was given for it")
            return data
        case _:
            assert_never(volume)


MOST_REPORTED = 4 << 20
"""Bytes that are read of what a running trial reports in a file."""
_REPORT = "result.json"
_COPIED = "copied"
"""A file of the launcher that says what its copy of the code was, where a later change would be noticed."""
_WRITTEN_AGAIN = (_COPIED, "trial.json", TERMINATION_FILE)
"""Small files, over which the next launcher writes: to delete and create them takes some file systems longer."""
SHORT_FOLDER, SHORT_PREFIX = "/tmp", "sweep-tmp-"  # noqa: S108 - where launchers make them


def reported_lines(state: Path, uid: str) -> bytes:
    """Return what a running trial has written to `$SWEEP_RESULT`; nothing if its pod is not here.

    The launcher makes a temporary folder in the scratch volume for it. Raises StorageError.
    """
    folder = StateFolders(state).pod(uid) / VOLUMES
    with storage_errors(folder):
        found = sorted(folder.glob(f"*/trial-*/{_REPORT}")) if uid and folder.is_dir() else []
        for path in found:
            if not path.parent.is_symlink() and (content := read_regular(path, MOST_REPORTED)) is not None:
                return content
    return b""


def scratch_limits(folders: StateFolders, job: JobSpec, uid: str) -> tuple[tuple[Path, int], ...]:
    """Return the folders of a pod with a limit, and the bytes that each may contain."""
    limits = [
        (folders.pod(uid) / VOLUMES / name, volume.limit)
        for name, volume in job.pod.volumes.items()
        if isinstance(volume, ScratchVolume) and volume.limit
    ]
    if job.pod.scratch_limit:
        limits.append((folders.pod(uid), job.pod.scratch_limit))
    return tuple(limits)


LEFT_FILES = (TERMINATION_FILE, STDERR_FILE)
"""What the folder of a pod has besides its volumes."""


def leave_pod(folders: StateFolders, uid: str) -> bool:
    """Return whether another pod can have the folder of an ended one, which has nothing but a launcher's folder.

    In that, the next launcher keeps only what nobody has changed. Files beside the copy of the code are deleted
    here, because they may be large, and nobody may take a result for that of the next.
    """
    pod = folders.pod(uid)
    with contextlib.suppress(OSError, StorageError):
        volumes = list((pod / VOLUMES).iterdir())
        trials = [path for volume in volumes for path in volume.iterdir()]
        if (
            {path.name for path in pod.iterdir()} != {VOLUMES, *LEFT_FILES}
            or len(trials) != 1
            or any(path.is_symlink() for path in (pod / VOLUMES, *volumes, *trials))
            or not (trials[0].name.startswith("trial-") and (trials[0] / _COPIED).is_file())
        ):
            return False
        for path in (*trials[0].iterdir(), *(pod / name for name in LEFT_FILES)):
            if path.is_symlink() or not path.is_dir():
                state = path.lstat()
                if path.name not in _WRITTEN_AGAIN or not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
                    path.unlink()  # to truncate it would let ext4 write to the disk whenever it is closed
            elif path.name != "run" and any(path.iterdir()):
                remove_folder(path)
        return True
    return False


def take_pod(folders: StateFolders, left: str, uid: str) -> None:
    """Give a pod the folder that an ended one has left, if it can be given."""
    with contextlib.suppress(OSError):
        folders.pod(left).rename(folders.pod(uid))
    remove_pod(folders, left)


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
    with os.scandir(SHORT_FOLDER) as entries:
        links = [Path(entry.path) for entry in entries if entry.name.startswith(SHORT_PREFIX)]
    for link in links:
        with contextlib.suppress(OSError):
            if link.readlink().is_relative_to(folders.pods):
                link.unlink()
