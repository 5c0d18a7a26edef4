"""The volumes of a pod as folders below the engine's state."""

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from generator.engine.local.environment import sub_path
from generator.engine.local.workload import (
    BatchSpec,
    ConfigVolume,
    DataVolume,
    JobSpec,
    KeptVolume,
    ResultsVolume,
    ScratchVolume,
)
from generator.errors import RepositoryError, StorageError
from generator.structs.labels import PARENT_PATH

VOLUMES = "volumes"
TERMINATION_FILE = "termination-log"
"""Exists before the pod does, as a kubelet's: launchers write to it only then."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the engine keeps what pods see."""

    state: Path

    @property
    def results(self) -> Path:
        """The results volume."""
        return self.state / "results"

    @property
    def pods(self) -> Path:
        """A folder a pod that has not ended."""
        return self.state / "pods"

    def pod(self, uid: str) -> Path:
        """What belongs to one pod and goes with it."""
        return self.pods / uid

    def config(self, job: str) -> Path:
        """The ConfigMaps of a Job, a folder a volume."""
        return self.state / "jobs" / job


def trial_folder(folders: Folders, job: JobSpec, index: int) -> Path:
    """Give the folder of the results volume that an index writes its records to."""
    for mount in job.pod.mounts:
        if isinstance(job.pod.volumes.get(mount.volume), ResultsVolume) and mount.path != PARENT_PATH:
            return folders.results / sub_path(mount, {"JOB_COMPLETION_INDEX": str(index)})
    raise AssertionError("a Job without results volume passes no parser")


def write_configs(folders: Folders, batch: BatchSpec, job: JobSpec) -> None:
    """Write a Job's ConfigMaps, once: they are immutable. Raises StorageError."""
    target = folders.config(job.name)
    if target.is_dir():
        return
    temporary = target.with_name(f"{target.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, volume in job.pod.volumes.items():
            if isinstance(volume, ConfigVolume):
                _fill(temporary / name, volume, batch.config_maps)
        temporary.rename(target)
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}") from error


def _fill(folder: Path, volume: ConfigVolume, config_maps: Mapping[str, Mapping[str, str]]) -> None:
    folder.mkdir()
    for source in volume.sources:
        data = config_maps[source.name]
        for key, place in source.items or tuple((key, key) for key in data):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(data[key], encoding="utf-8", newline="\n")
            path.chmod(0o444)


def remove_configs(folders: Folders, job: str) -> None:
    """Remove a pruned Job's ConfigMaps."""
    shutil.rmtree(folders.config(job), ignore_errors=True)


def prepare(
    folders: Folders, job: JobSpec, uid: str, *, variables: Mapping[str, str], data: Path | None
) -> dict[str, Path]:
    """Make what a pod mounts; give the folder of each mount path. Raises StorageError, RepositoryError."""
    found: dict[str, Path] = {}
    try:
        folders.pod(uid).mkdir(parents=True)
        (folders.pod(uid) / TERMINATION_FILE).touch()
        for mount in job.pod.mounts:
            base = _base(folders, job, uid, mount.volume, data)
            # A dataset is given as the folder itself, wherever that lies in the volume of a cluster.
            is_data = isinstance(job.pod.volumes[mount.volume], DataVolume)
            found[mount.path] = base if is_data else base / sub_path(mount, variables)
            _unlink_links(base, found[mount.path])
            if not isinstance(job.pod.volumes[mount.volume], ConfigVolume | DataVolume):
                found[mount.path].mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be made: {error.strerror}") from error
    return found


def _unlink_links(base: Path, folder: Path) -> None:
    """Take away links on the way to a pod's folder: another trial can have left one that leads away."""
    for place in (folder, *folder.parents):
        if place == base:
            return
        if place.is_symlink():
            place.unlink()


def _base(folders: Folders, job: JobSpec, uid: str, name: str, data: Path | None) -> Path:
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
                raise RepositoryError(f"{job.batch} needs a dataset, and no folder was given for it")
            return data
        case _:
            assert_never(volume)


def scratch_limits(folders: Folders, job: JobSpec, uid: str) -> tuple[tuple[Path, int], ...]:
    """List the folders of a pod that may hold so many bytes."""
    found = [
        (folders.pod(uid) / VOLUMES / name, volume.limit)
        for name, volume in job.pod.volumes.items()
        if isinstance(volume, ScratchVolume) and volume.limit
    ]
    if job.pod.scratch_limit:
        found.append((folders.pod(uid), job.pod.scratch_limit))
    return tuple(found)


def remove_pod(folders: Folders, uid: str) -> None:
    """Remove what belonged to a pod, folders that its trial closed to itself included."""
    folder = folders.pod(uid)
    for path in (folder, *folder.rglob("*")) if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
