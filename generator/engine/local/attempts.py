"""What the record files of a trial's folder say: the only memory of which index is done and what failed.

Reads the results volume, and writes the record of a pod that left none.
"""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from generator.engine.local import store
from generator.engine.local.observed import Failure, IndexState
from generator.engine.local.workload import BatchSpec
from generator.formats import record as record_format
from generator.structs.record import Record, Status
from generator.untrusted import read_regular

CODES = {
    "bad-hyperparameters": 42,
    "metric-not-finite": 42,
    "bad-sweep": 43,
    "bad-command": 43,
    "disk-full": 74,
    "timeout": 124,
    "start-failed": 127,
    "killed": 137,
    "oom": 137,
}
"""Exit codes behind the reasons that records give; what is not here ended with 1."""

READ_BYTES = 2 << 20
"""More than any record may have: one that is cut here is refused as too large, and memory stays small."""

NUMBERED = re.compile(r"(exit|signal)-([0-9]{1,3})")
REASONS = {
    CODES[reason]: reason
    for reason in ("bad-hyperparameters", "bad-sweep", "disk-full", "timeout", "start-failed", "killed")
}
"""What the engine says of a launcher that ended with one of these codes and left no record."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Which attempt a record must be of to be believed."""

    batch: str
    index: int
    row: str

    def owns(self, record: Record, uid: str) -> bool:
        """Tell whether a record is of this index, and of the pod that its file is named after."""
        return (record.batch, record.index, record.row, record.uid) == (
            self.batch,
            self.index,
            self.row,
            uid,
        )


def identity(batch: BatchSpec, index: int) -> Identity:
    """Say what the records of an index look like."""
    return Identity(batch.name, index, batch.table.rows[index].digest)


def read(folder: Path, wanted: Identity, codes: Mapping[str, int]) -> IndexState:
    """Read all attempts at an index; `codes` are exit codes that are known better than from records."""
    results: set[Status] = set()
    failures: list[Failure] = []
    for path in folder.glob("*.json"):
        record = find(folder, wanted, path.stem)
        if record is not None and record.status.is_final:
            results.add(record.status)
            continue
        with contextlib.suppress(FileNotFoundError):
            # A record that cannot be believed is an attempt that failed.
            code = codes.get(path.stem, 1 if record is None else _code(record.reason))
            failures.append(Failure(code, path.stat().st_mtime))
    result = Status.OK if Status.OK in results else next(iter(results), None)
    return IndexState(result, tuple(sorted(failures, key=lambda failure: (failure.at, failure.code))))


def find(folder: Path, wanted: Identity, uid: str) -> Record | None:
    """Read the record that one pod left, None if there is none to believe."""
    return _believed(folder / f"{uid}.json", wanted, uid)


def has_record(folder: Path, uid: str) -> bool:
    """Tell whether a pod left a record, believed or not."""
    return (folder / f"{uid}.json").exists()


def _believed(path: Path, wanted: Identity, uid: str) -> Record | None:
    try:
        content = read_regular(path, READ_BYTES)
    except OSError:
        return None
    found = record_format.read(content or b"")
    return found if isinstance(found, Record) and wanted.owns(found, uid) else None


def _code(reason: str | None) -> int:
    if found := NUMBERED.fullmatch(reason or ""):
        return int(found[2]) + (128 if found[1] == "signal" else 0)
    return CODES.get(reason or "", 1)


@dataclass(frozen=True, slots=True)
class Ending:
    """A pod that ended without a record of its own."""

    uid: str
    attempt: int
    code: int
    reason: str | None
    started: float
    finished: float
    node: str
    said: str
    """The end of what its launcher wrote to stderr."""


def substitute(
    folder: Path, batch: BatchSpec, index: int, ending: Ending, *, termination_log: Path
) -> Record:
    """Write the record that a pod could not: its own copy if that survived, else what the engine knows."""
    wanted = identity(batch, index)
    record = _believed(termination_log, wanted, ending.uid)
    if record is None:
        table, row = batch.table, batch.table.rows[index]
        diverged = ending.reason is None and ending.code == CODES["bad-hyperparameters"]
        record = Record(
            trial=row.trial,
            row=row.digest,
            batch=batch.name,
            index=index,
            uid=ending.uid,
            attempt=ending.attempt,
            status=Status.DIVERGED if diverged else Status.FAILED,
            reason=ending.reason or _reason(ending.code),
            metrics={},
            seconds=round(max(0.0, ending.finished - ending.started), 3),
            started=_time(ending.started),
            finished=_time(ending.finished),
            ran="process",
            code=table.code,
            data=table.data,
            seed=table.seed,
            node=ending.node,
            details={"said": ending.said} if ending.said else {},
            artifacts=(),
        )
    store.write(folder / f"{ending.uid}.json", record_format.to_line(record) + "\n")
    return record


def _reason(code: int) -> str:
    if code == 0:
        return "no-record"
    if code > 128 and code not in REASONS:  # noqa: PLR2004 - the shell's way to tell of signals
        return f"signal-{code - 128}"
    return REASONS.get(code, f"exit-{code}")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
