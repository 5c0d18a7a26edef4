"""An index of the status of completely recorded sweeps: for each what `sweep status` shows, and of which files.

It is disposable: an entry counts only while no file that it was computed from has changed, and deleting it costs time.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any

from sweepledger import __version__, storage
from sweepledger.commands.repository import batch_records
from sweepledger.errors import StorageError
from sweepledger.formats import summary_csv
from sweepledger.formats.batch_yaml import LOCK_FILE
from sweepledger.formats.hyperparams_csv import TABLE_FILE
from sweepledger.formats.record_json import MAX_ROWS
from sweepledger.formats.summary_csv import SUMMARY_FILE, SummaryRow
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.files import read_file
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state
from sweepledger.results.paths import results_folder
from sweepledger.safe_open import read_regular
from sweepledger.structs.metric import METRIC_NAME
from sweepledger.structs.record import Status

INDEX = "index/status.json"
LARGEST_INDEX = 64 * 2**20


@dataclass(frozen=True, slots=True)
class RecordedStatus:
    """What is shown of a sweep without active batches."""

    counts: Counter[str]
    metric: str
    best: SummaryRow | None
    front: tuple[SummaryRow, ...]


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

    def get(self, sweep: str, stored: Iterable[StoredBatch]) -> RecordedStatus | None:
        """Return the status of a sweep whose files are those that it was computed from; else None."""
        entry = self.entries.get(sweep)
        try:
            if entry is None or entry["files"] != self._signature(sweep, stored):
                return None
            head, best, front = entry["head"], entry["best"], entry["front"]
            rows = [self._rows[head, line] for line in front]
            return RecordedStatus(
                Counter(dict(starmap(_count, entry["counts"].items()))),
                _metric_name(entry["metric"]),
                None if best is None else self._rows[head, best],
                tuple(rows),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    @cached_property
    def _rows(self) -> dict[tuple[str, str], SummaryRow]:
        """The rows of all entries as read, by header and line: those with one header are parsed together."""
        lines: dict[str, dict[str, None]] = {}
        for entry in self.entries.values():
            listed = [*entry["front"], *([] if entry["best"] is None else [entry["best"]])]
            lines.setdefault(entry["head"], {}).update(dict.fromkeys(listed))
        return {
            (head, line): row
            for head, own in lines.items()
            for line, row in zip(own, _parse(head, own), strict=True)
        }

    def put(self, sweep: str, stored: Iterable[StoredBatch], status: RecordedStatus) -> None:
        """Remember the status of a sweep."""
        with suppress(StorageError, UnicodeDecodeError):
            content = read_file(self.root / results_folder(sweep) / SUMMARY_FILE)
            head, *lines = content.decode().splitlines()
            line_of = {line.partition(",")[0]: line for line in lines}
            self.entries[sweep] = {
                "files": self._signature(sweep, stored),
                "counts": dict(status.counts),
                "metric": status.metric,
                "head": head,
                "best": None if status.best is None else line_of[status.best.trial],
                "front": [line_of[row.trial] for row in status.front],
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

    def _signature(self, sweep: str, stored: Iterable[StoredBatch]) -> str:
        """Return a text that changes if any file changes that the status is computed from."""
        root = str(self.root)
        stamps = [_stamp(f"{root}/{results_folder(sweep)}/{SUMMARY_FILE}")]
        for batch in stored:
            stamps += [
                batch.folder,
                _stamp(f"{root}/{batch.folder}/{LOCK_FILE}"),
                _stamp(f"{root}/{batch.folder}/{TABLE_FILE}"),
                _stamp(f"{root}/{batch_records.records_file(batch)}"),
            ]
        return " ".join(stamps)


def _count(state: str, trials: Any) -> tuple[str, int]:
    """Return a state and the number of its trials. Raises ValueError for what is neither."""
    if type(trials) is not int or not 0 < trials <= MAX_ROWS:
        raise ValueError(f"must be a number of trials, but got {trials!r}")
    return str(Status(state)), trials


def _metric_name(text: str) -> str:
    """Return the name of a metric. Raises ValueError, TypeError for any other text."""
    if METRIC_NAME.fullmatch(text) is None:
        raise ValueError(f"must be the name of a metric, but got {text!r}")
    return text


def _stamp(path: str) -> str:
    try:
        found = os.lstat(path)
    except OSError:
        return "-"
    return f"{found.st_mode}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_ino}"


def _parse(head: str, lines: Iterable[str]) -> tuple[SummaryRow, ...]:
    return summary_csv.read("".join(f"{line}\n" for line in (head, *lines))).rows
