"""An index of the status of sweeps of which nothing runs here: what `sweep status` shows, and the files it is from.

It is disposable: an entry counts only while no file that it was computed from has changed, and deleting it costs time.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import Any

from sweepledger import __version__, storage
from sweepledger.commands.repository import batch_records
from sweepledger.errors import StorageError
from sweepledger.formats.hyperparams_csv import TABLE_FILE
from sweepledger.formats.launch_json import LAUNCH_FILE
from sweepledger.formats.record_json import MAX_ROWS, TRIAL_ID
from sweepledger.formats.summary_csv import SUMMARY_FILE
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state
from sweepledger.results.paths import results_folder
from sweepledger.safe_open import read_regular
from sweepledger.structs.metric import METRIC_NAME
from sweepledger.structs.names import LOCK_FILE

INDEX = "index/status.json"
LARGEST_INDEX = 64 * 2**20


@dataclass(frozen=True, slots=True)
class BestValue:
    """A trial, and its value of the first metric."""

    trial: str
    value: float | None
    recorded: bool = True
    """Whether a commit has it, not only this machine."""


@dataclass(frozen=True, slots=True)
class RecordedStatus:
    """What is shown of a sweep."""

    counts: Counter[str]
    metric: str
    best: BestValue | None
    front: tuple[str, ...]


@dataclass
class StatusIndex:
    """The index of a work tree, in the state folder of its clone."""

    root: Path
    state: Path
    entries: dict[str, Any] = field(default_factory=dict)
    is_changed: bool = False

    @classmethod
    def read(cls, root: Path, state: Path) -> "StatusIndex":
        """Return the index; empty if there is none that this version wrote."""
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            content = read_regular(state / INDEX, LARGEST_INDEX)
            data = json.loads(content or b"{}")
            if data["version"] == __version__:
                return cls(root, state, dict(data["sweeps"]))
        return cls(root, state)

    def get(self, sweep: str, stored: Iterable[StoredBatch], views: Iterable[str]) -> RecordedStatus | None:
        """Return the status of a sweep whose files are those that it was computed from; else None.

        Its states are not checked: only the caller knows them.

        `views` has for each batch what else its status follows from.
        """
        entry = self.entries.get(sweep)
        try:
            if entry is None or entry["files"] != self._signature(sweep, stored, views, entry["read"]):
                return None
            best = None if entry["best"] is None else _best(*entry["best"])
            return RecordedStatus(
                Counter(dict(starmap(_count, entry["counts"].items()))),
                _metric_name(entry["metric"]),
                best,
                tuple(map(_trial, entry["front"])),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def put(
        self, sweep: str, stored: Iterable[StoredBatch], views: Iterable[str], status: RecordedStatus
    ) -> None:
        """Remember the status of a sweep."""
        unusual = {
            batch.folder: list(read)
            for batch in stored
            if (read := _read_files(batch)) != _usual_files(batch)
        }
        self.entries[sweep] = {
            "files": self._signature(sweep, stored, views, unusual),
            "read": unusual,
            "counts": {state: trials for state, trials in status.counts.items() if trials},
            "metric": status.metric,
            "best": None if status.best is None else [status.best.trial, status.best.value],
            "front": list(status.front),
        }
        self.is_changed = True

    def write(self, repository: Repository, sweeps: Iterable[str]) -> None:
        """Write the index, without sweeps that are gone; not at all if the state folder cannot be written."""
        kept = self.entries.keys() & set(sweeps)
        if not self.is_changed and len(kept) == len(self.entries):
            return
        data = {"version": __version__, "sweeps": {name: self.entries[name] for name in sorted(kept)}}
        with suppress(StorageError):
            create_state(repository, self.state)
            storage.write_file(self.state / INDEX, json.dumps(data, separators=(",", ":")).encode())

    def _signature(
        self,
        sweep: str,
        stored: Iterable[StoredBatch],
        views: Iterable[str],
        unusual: Mapping[str, Sequence[str]],
    ) -> str:
        """Return a text that changes if any file changes that the status is computed from.

        `unusual` names the files of batches that are not stored as most are, by folder.
        """
        root = str(self.root)
        stamps = [_stamp(f"{root}/{results_folder(sweep)}/{SUMMARY_FILE}")]
        for batch, view in zip(stored, views, strict=True):
            folder = f"{root}/{batch.folder}"
            # The stamp of the folder changes if a file is added or removed, such as a part of the table.
            stamps += [
                batch.folder,
                view,
                _stamp(folder),
                _stamp(f"{root}/{batch_records.records_file(batch)}"),
            ]
            read = unusual.get(batch.folder) or _usual_files(batch)
            stamps += [_stamp(f"{folder}/{path}") for path in read]
        return " ".join(stamps)


def _count(state: str, trials: Any) -> tuple[str, int]:
    """Return a state and the number of its trials. Raises ValueError for anything but such a number."""
    if type(trials) is not int or not 0 < trials <= MAX_ROWS:
        raise ValueError(f"must be a number of trials, but got {trials!r}")
    return state, trials


def _metric_name(text: str) -> str:
    """Return the name of a metric. Raises ValueError, TypeError for any other text."""
    if METRIC_NAME.fullmatch(text) is None:
        raise ValueError(f"must be the name of a metric, but got {text!r}")
    return text


def _trial(text: str) -> str:
    """Return the id of a trial. Raises ValueError, TypeError for any other text."""
    if re.fullmatch(TRIAL_ID, text, re.ASCII) is None:
        raise ValueError(f"must be the id of a trial, but got {text!r}")
    return text


def _best(trial: str, value: Any) -> BestValue:
    """Return the best value of a sweep. Raises ValueError, TypeError for what is none."""
    if value is not None and type(value) not in {int, float}:
        raise ValueError(f"must be a number, but got {value!r}")
    return BestValue(_trial(trial), value)


def _usual_files(batch: StoredBatch) -> tuple[str, ...]:
    """Return the files of most batches that the status is computed from."""
    return (LOCK_FILE, TABLE_FILE, LAUNCH_FILE)[: 3 if batch.is_active else 2]


def _read_files(batch: StoredBatch) -> tuple[str, ...]:
    """Return the files of a batch that its status is computed from: lock, launch file and all parts of the table."""
    paths = batch.contents.paths()
    return tuple(path for path in paths if path in {LOCK_FILE, LAUNCH_FILE} or path.endswith(TABLE_SUFFIX))


TABLE_SUFFIX = ".csv"


def _stamp(path: str) -> str:
    try:
        found = os.lstat(path)
    except OSError:
        return "-"
    return f"{found.st_mode}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_ino}"
