"""The engine's own files: the lock that keeps a second engine out, the Jobs it has taken on, atomic writing.

state.json remembers Jobs and their conditions. What became of a trial is only ever read from its records.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generator.engine.local.observed import Condition
from generator.errors import RepositoryError, StorageError

STATE_FILE = "state.json"
LOCK_FILE = "lock"


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A Job that the engine has taken on."""

    uid: str
    batch: str
    digest: str
    created: float
    """Seconds of the epoch: a Job's deadline counts from here."""
    condition: Condition | None = None
    reason: str | None = None


def write(path: Path, text: str) -> None:
    """Write a file so that it is there in full or not at all. Raises StorageError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error


def load(state: Path) -> dict[str, JobEntry]:
    """Read the Jobs taken on, by name; none where the engine never ran. Raises StorageError."""
    path = state / STATE_FILE
    try:
        jobs = json.loads(path.read_text(encoding="utf-8"))["jobs"]
        return {name: _entry(data) for name, data in jobs.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{path} is damaged: {error}",
            hint="delete it while no trial runs: what is done is read from the records",
        ) from error


def _entry(data: dict[str, Any]) -> JobEntry:
    condition = data.pop("condition")
    return JobEntry(**data, condition=None if condition is None else Condition(condition))


def save(state: Path, jobs: Mapping[str, JobEntry]) -> None:
    """Write the Jobs taken on. Raises StorageError."""
    data = {"version": 1, "jobs": {name: asdict(entry) for name, entry in jobs.items()}}
    write(state / STATE_FILE, json.dumps(data, indent=1, sort_keys=True) + "\n")


def lock(state: Path) -> int:
    """Claim a state folder until the descriptor is closed. Raises RepositoryError if it is taken."""
    path = state / LOCK_FILE
    try:
        state.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StorageError(f"{path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise RepositoryError(
            f"another engine works in {state}: process {holder}",
            hint="wait for it, or end it; trials of an engine that is gone end by themselves",
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def conditions(state: Path) -> dict[str, Condition | None]:
    """Tell how each batch that the engine has taken on ended; None while any of its Jobs has not."""
    batches: dict[str, list[Condition | None]] = {}
    for entry in load(state).values():
        batches.setdefault(entry.batch, []).append(entry.condition)
    return {name: _together(found) for name, found in sorted(batches.items())}


def _together(found: list[Condition | None]) -> Condition | None:
    if None in found:
        return None
    return Condition.FAILED if Condition.FAILED in found else Condition.COMPLETE
