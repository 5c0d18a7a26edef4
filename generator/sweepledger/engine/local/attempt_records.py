"""The record files of a trial's attempts: read, and written for a pod that left none.

They are the only state of an index: they show whether it has finished, and which attempts failed.
"""

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sweepledger import storage
from sweepledger.engine import termination
from sweepledger.engine.local.job_controller import FailedAttempt, IndexState
from sweepledger.engine.termination import ExpectedRecord, Termination
from sweepledger.formats import record_json as record_format
from sweepledger.safe_open import read_regular
from sweepledger.structs.record import Record, Status

FINAL_STATUSES = (Status.OK, Status.PRUNED, Status.DIVERGED)
"""If records disagree, the first of these counts, as for the collector."""
READ_BYTES = 2 << 20
"""More than a record may have, so that a larger file is refused without being read completely."""
KILLED = 128 + signal.SIGKILL
"""The exit code of an attempt that left no record."""
DATA_CHANGED = "data-changed"
"""The reason of an attempt while which the dataset changed."""
LONGEST_LINE = 300
"""Characters of a line of output that progress shows."""


def read_attempts(folder: Path, expected: ExpectedRecord, codes: Mapping[str, int]) -> IndexState:
    """Return the state of an index from its records; `codes` are exit codes by pod uid, as observed."""
    results: set[Status] = set()
    failures: list[FailedAttempt] = []
    number = 0
    try:
        names = os.listdir(folder)  # noqa: PTH208 - every trial is looked at, some of them three times
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        names = []
    for uid in [name.removesuffix(".json") for name in names if name.endswith(".json")]:
        record = find_record(folder / f"{uid}.json", expected, uid)
        if record is not None and record.status.is_final:
            results.add(record.status)
            continue
        with contextlib.suppress(FileNotFoundError):
            # An invalid record is a failed attempt.
            code = codes.get(uid, 1 if record is None else termination.exit_code_for_reason(record.reason))
            failures.append(FailedAttempt(code, (folder / f"{uid}.json").stat().st_mtime))
            number = max(number, 0 if record is None else record.attempt)
    failures.sort(key=lambda failure: (failure.at, failure.code))
    # Of a pack's row, attempts that ended their launcher or pod left no record; the number of a later one counts them.
    failures[:0] = [FailedAttempt(KILLED, failures[0].at) for _ in range(number - len(failures))]
    return IndexState(next((status for status in FINAL_STATUSES if status in results), None), tuple(failures))


def read_file(path: Path) -> bytes:
    """Return a file that a trial may have replaced; empty if it cannot be read."""
    with contextlib.suppress(OSError):
        return read_regular(path, READ_BYTES) or b""
    return b""


def find_record(path: Path, expected: ExpectedRecord, uid: str) -> Record | None:
    """Return the record of a pod in a file; None if it has no valid record."""
    return expected.parse(read_file(path), uid)


def has_record(folder: Path, uid: str) -> bool:
    """Return whether a pod left a record file, valid or not."""
    return (folder / f"{uid}.json").exists()


def last_error_line(folder: Path, uid: str) -> str:
    """Return the last line of an attempt's stderr that is not blank; empty if there is none."""
    lines = read_file(folder / f"{uid}.err").decode(errors="replace").rstrip().rsplit("\n", 1)
    return lines[-1].strip()[:LONGEST_LINE]


def refuse_result(folder: Path, record: Record) -> Record:
    """Write and return the record of an attempt during which the dataset changed, as launchers write it."""
    said = {**record.details, "error": "the dataset changed while the trial ran"}
    record = replace(record, status=Status.FAILED, reason=DATA_CHANGED, details=said)
    record = replace(record, metrics={}, curves={}, stopped=None)
    _write(folder, record)
    return record


def write_substitute(
    folder: Path, expected: ExpectedRecord, ending: Termination, *, termination_log: Path
) -> Record:
    """Write and return the record that a pod could not write: from its termination log, else from observations."""
    record = find_record(termination_log, expected, ending.uid)
    record = record or termination.substitute_record(expected, ending)
    _write(folder, record)
    return record


def _write(folder: Path, record: Record) -> None:
    storage.write_file(folder / f"{record.uid}.json", f"{record_format.to_line(record)}\n".encode())
