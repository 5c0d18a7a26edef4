"""An index of the status of completely recorded sweeps: for each what `sweep status` shows, and of which files.

It is disposable: an entry counts only while no file that it was computed from has changed, and deleting it costs time.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sweepledger import __version__, storage
from sweepledger.commands.repository import batch_records
from sweepledger.errors import StorageError
from sweepledger.formats import summary_csv
from sweepledger.formats.batch_yaml import LOCK_FILE
from sweepledger.formats.summary_csv import SUMMARY_FILE, SummaryRow
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state
from sweepledger.results.paths import results_folder
from sweepledger.safe_open import read_regular

INDEX = "index/status.json"
LARGEST_INDEX = 64 * 2**20
TABLE = "hyperparams.csv"


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
        with suppress(OSError, ValueError, TypeError, KeyError):
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
            rows = _rows(head, [*([] if best is None else [best]), *front])
            return RecordedStatus(
                Counter[str](entry["counts"]),
                entry["metric"],
                None if best is None else rows[0],
                rows if best is None else rows[1:],
            )
        except (KeyError, TypeError, ValueError):
            return None

    def put(self, sweep: str, stored: Iterable[StoredBatch], status: RecordedStatus) -> None:
        """Remember the status of a sweep."""
        with suppress(OSError, StopIteration, UnicodeDecodeError):
            head, *lines = (self.root / results_folder(sweep) / SUMMARY_FILE).read_text().splitlines()
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

    def _signature(self, sweep: str, stored: Iterable[StoredBatch]) -> list[Any]:
        """Return what changes if any file changes that the status is computed from."""
        paths = [f"{results_folder(sweep)}/{SUMMARY_FILE}"]
        for batch in stored:
            paths += [
                f"{batch.folder}/{LOCK_FILE}",
                f"{batch.folder}/{TABLE}",
                batch_records.records_file(batch),
            ]
        return [[path, *_stamp(self.root / path)] for path in paths]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _rows(head: str, lines: Iterable[str]) -> tuple[SummaryRow, ...]:
    listed = [*lines]
    return summary_csv.read("".join(f"{line}\n" for line in (head, *listed))).rows if listed else ()
