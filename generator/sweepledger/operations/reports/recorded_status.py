"""An index of the status of sweeps that do not run here: what `sweep status` shows, and its source files.

It is disposable: an entry counts only while no file that it was computed from has changed, and deleting it costs time.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, MsgspecError, json

from sweepledger import __version__, storage
from sweepledger.errors import StorageError
from sweepledger.formats.hyperparams_csv import TABLE_FILE
from sweepledger.formats.launch_json import LAUNCH_FILE
from sweepledger.formats.summary_csv import SUMMARY_FILE
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state
from sweepledger.safe_open import read_regular
from sweepledger.structs.metric import METRIC_NAME
from sweepledger.structs.names import LOCK_FILE, results_folder
from sweepledger.structs.record import MAX_ROWS, TRIAL_ID

INDEX = "index/status.json"
LARGEST_INDEX = 64 * 2**20


TrialId = Annotated[str, Meta(pattern=rf"^{TRIAL_ID}\Z")]


@dataclass(frozen=True, slots=True)
class BestValue:
    """A trial, and its value of the first metric."""

    trial: TrialId
    value: float | None
    recorded: bool = True
    """Whether a commit has it, not only this machine."""


@dataclass(frozen=True, slots=True)
class RecordedStatus:
    """The status of a sweep in the index."""

    counts: dict[str, Annotated[int, Meta(gt=0, le=MAX_ROWS)]]
    """Number of trials by state. Only the caller knows the states."""
    metric: Annotated[str, Meta(pattern=rf"^(?:{METRIC_NAME.pattern})\Z")]
    best: BestValue | None
    front: tuple[TrialId, ...]
    files: str = ""
    """A text that changes if any file changes that it was computed from."""
    read: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The files of batches that are not stored as most are, by folder."""


@dataclass(frozen=True, slots=True)
class _Index:
    version: str
    sweeps: dict[str, RecordedStatus]


@dataclass
class StatusIndex:
    """The index of a work tree, in the state folder of its clone."""

    root: Path
    state: Path
    entries: dict[str, RecordedStatus] = field(default_factory=dict)
    is_changed: bool = False

    @classmethod
    def read(cls, root: Path, state: Path) -> "StatusIndex":
        """Return the index; an empty one if this version of sweepledger has written none."""
        with suppress(OSError, MsgspecError, RecursionError):
            content = read_regular(state / INDEX, LARGEST_INDEX)
            index = json.decode(content or b"", type=_Index)
            if index.version == __version__:
                return cls(root, state, index.sweeps)
        return cls(root, state)

    def get(self, sweep: str, stored: Iterable[StoredBatch], views: Iterable[str]) -> RecordedStatus | None:
        """Return the stored status of a sweep if its files have not changed since; else None.

        `views` has the other inputs of the status for each batch.
        """
        entry = self.entries.get(sweep)
        return entry if entry and entry.files == self._signature(sweep, stored, views, entry.read) else None

    def put(
        self, sweep: str, stored: Iterable[StoredBatch], views: Iterable[str], status: RecordedStatus
    ) -> None:
        """Remember the status of a sweep."""
        unusual = {
            batch.folder: read for batch in stored if (read := _read_files(batch)) != _usual_files(batch)
        }
        counts = {state: trials for state, trials in status.counts.items() if trials}
        signature = self._signature(sweep, stored, views, unusual)
        self.entries[sweep] = replace(status, counts=counts, files=signature, read=unusual)
        self.is_changed = True

    def write(self, repository: Repository, sweeps: Iterable[str]) -> None:
        """Write the index, without sweeps that are gone; not at all if the state folder cannot be written."""
        kept = self.entries.keys() & set(sweeps)
        if not self.is_changed and len(kept) == len(self.entries):
            return
        index = _Index(__version__, {name: self.entries[name] for name in sorted(kept)})
        with suppress(StorageError):
            create_state(repository, self.state)
            storage.write_file(self.state / INDEX, json.encode(index))

    def _signature(
        self,
        sweep: str,
        stored: Iterable[StoredBatch],
        views: Iterable[str],
        unusual: Mapping[str, Sequence[str]],
    ) -> str:
        """Return a text that changes if any source file of the status changes.

        `unusual` names the files of batches that are not stored as most are, by folder.
        """
        root = str(self.root)
        stamps = [_stamp(f"{root}/{results_folder(sweep)}/{SUMMARY_FILE}")]
        for batch, view in zip(stored, views, strict=True):
            folder = f"{root}/{batch.folder}"
            # The stamp of the folder changes if a file is added or removed, such as a part of the table.
            stamps += [batch.folder, view, _stamp(folder), _stamp(f"{root}/{batch.records_file()}")]
            read = unusual.get(batch.folder) or _usual_files(batch)
            stamps += [_stamp(f"{folder}/{path}") for path in read]
        return " ".join(stamps)


def _usual_files(batch: StoredBatch) -> tuple[str, ...]:
    """Return the result of `_read_files` for a usual batch, without reading its folder."""
    return (LOCK_FILE, TABLE_FILE, LAUNCH_FILE)[: 3 if batch.is_active else 2]


def _read_files(batch: StoredBatch) -> tuple[str, ...]:
    """Return the files of a batch that its status is computed from: lock, launch file and all parts of the table."""
    paths = batch.contents.paths
    return tuple(path for path in paths if path in {LOCK_FILE, LAUNCH_FILE} or path.endswith(".csv"))


def _stamp(path: str) -> str:
    try:
        found = os.lstat(path)
    except OSError:
        return "-"
    return f"{found.st_mode}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_ino}"
