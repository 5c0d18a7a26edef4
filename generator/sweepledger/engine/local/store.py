"""The engine's own files: the lock that excludes a second engine, and the created Jobs.

state.json contains Jobs and their conditions. The state of a trial is only read from its records.
"""

import contextlib
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sweepledger import storage
from sweepledger.engine.local.events import JobCondition
from sweepledger.engine.local.job_controller import JobState
from sweepledger.errors import RepositoryError, StorageError

STATE_FILE = "state.json"
LOCK_FILE = "lock"


OBSERVED_FILE = "observed.jsonl"


class ObservedPod(Struct, frozen=True):
    """The times of an ended pod's process, as the engine observed them."""

    batch: str
    index: int
    uid: str
    started: float
    finished: float
    """Seconds since 1970."""


class _State(Struct, frozen=True):
    jobs: dict[str, JobState]
    version: int = 1


def load_jobs(state: Path) -> dict[str, JobState]:
    """Return the created Jobs by batch; none if no engine has run. Raises StorageError."""
    path = state / STATE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State).jobs
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise storage.storage_error(path, error) from error
    except ValueError as error:
        raise StorageError(
            f"{path} is damaged: {error}",
            hint="delete it while no trial runs; the state of trials is read from their records",
        ) from error


def save_jobs(state: Path, jobs: Mapping[str, JobState]) -> None:
    """Write the created Jobs. Raises StorageError."""
    content = msgspec.json.encode(_State(dict(jobs)), order="deterministic")
    storage.write_file(state / STATE_FILE, msgspec.json.format(content, indent=1) + b"\n")


def add_observed(state: Path, pod: ObservedPod) -> None:
    """Add the times of a pod. Raises StorageError."""
    path = state / OBSERVED_FILE
    with storage.storage_errors(path), path.open("ab") as file:
        file.write(msgspec.json.encode(pod) + b"\n")


def observed_pods(state: Path, batch: str) -> dict[tuple[int, str], ObservedPod]:
    """Return the times of a batch's pods, by index and uid; a line that a crash has cut is skipped.

    Raises StorageError.
    """
    path = state / OBSERVED_FILE
    pods: dict[tuple[int, str], ObservedPod] = {}
    with storage.storage_errors(path):
        lines = path.read_bytes().split(b"\n") if path.is_file() else []
    for line in lines:
        with contextlib.suppress(ValueError):
            pod = msgspec.json.decode(line, type=ObservedPod)
            if pod.batch == batch:
                pods[pod.index, pod.uid] = pod
    return pods


def lock_state(state: Path) -> int:
    """Lock a state folder until the returned descriptor is closed. Raises RepositoryError if it is locked."""
    path = state / LOCK_FILE
    with storage.storage_errors(path):
        state.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise RepositoryError(
            f"another engine is running in {state}: process {holder}",
            hint="wait for it, or end it; its trials end with it",
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def is_engine_running(state: Path) -> bool:
    """Return whether an engine holds the lock of a state folder. Raises StorageError."""
    path = state / LOCK_FILE
    with storage.storage_errors(path):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # The lock is tried only if the process exists, because the attempt could stop an engine that starts.
            os.kill(int(os.read(descriptor, 32)), 0)
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (ProcessLookupError, ValueError):
            return False
        except (BlockingIOError, PermissionError):
            return True
        finally:
            os.close(descriptor)
    return False


def batch_conditions(state: Path) -> dict[str, JobCondition | None]:
    """Return the condition of each batch; None while its Job has not ended."""
    return {name: entry.condition for name, entry in sorted(load_jobs(state).items())}
