"""What the record files of a trial's folder say: the only memory of which index is done and what failed.

Reads the results volume, and writes the record of a pod that left none.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from generator.engine import endings
from generator.engine.endings import Asked, Ending
from generator.engine.local import store
from generator.engine.local.observed import Failure, IndexState
from generator.engine.local.workload import BatchSpec
from generator.formats import record as record_format
from generator.structs.record import Record, Status
from generator.untrusted import read_regular

FINAL = (Status.OK, Status.PRUNED, Status.DIVERGED)
"""Of several the first counts, as it does for the collector."""
READ_BYTES = 2 << 20
"""More than any record may have: one that is cut here is refused as too large, and memory stays small."""


def asked(batch: BatchSpec, index: int) -> Asked:
    """Say what the records of an index look like."""
    table, row = batch.table, batch.table.rows[index]
    return Asked(batch.name, index, row.trial, row.digest, table.code, table.data, row.seed)


def read(folder: Path, wanted: Asked, codes: Mapping[str, int]) -> IndexState:
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
            code = codes.get(path.stem, 1 if record is None else endings.code(record.reason))
            failures.append(Failure(code, path.stat().st_mtime))
    result = next((one for one in FINAL if one in results), None)
    return IndexState(result, tuple(sorted(failures, key=lambda failure: (failure.at, failure.code))))


def find(folder: Path, wanted: Asked, uid: str) -> Record | None:
    """Read the record that one pod left, None if there is none to believe."""
    return _believed(folder / f"{uid}.json", wanted, uid)


def has_record(folder: Path, uid: str) -> bool:
    """Tell whether a pod left a record, believed or not."""
    return (folder / f"{uid}.json").exists()


def _believed(path: Path, wanted: Asked, uid: str) -> Record | None:
    try:
        content = read_regular(path, READ_BYTES)
    except OSError:
        return None
    return wanted.believed(content or b"", uid)


def substitute(folder: Path, wanted: Asked, ending: Ending, *, termination_log: Path) -> Record:
    """Write the record that a pod could not: its own copy if that survived, else what the engine knows."""
    record = _believed(termination_log, wanted, ending.uid) or endings.record(wanted, ending)
    store.write(folder / f"{ending.uid}.json", record_format.to_line(record) + "\n")
    return record
