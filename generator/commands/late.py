"""Records that came after their batch had been recorded: what was written as missing is corrected by them."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from generator.commands.gathered import Gathered
from generator.engine.endings import NO_RECORD
from generator.errors import StorageError
from generator.formats import summary
from generator.formats.record import to_line
from generator.formats.summary import SUMMARY_FILE
from generator.repo import batches, volume
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository
from generator.results import BatchResults, judge, results_folder
from generator.structs.record import Record, Status

LOOK_BACK_SECONDS = 30 * 86400
"""For so long after the last of its trials began a batch is looked at again, while its folder is there.

A file comes late because a node or a network was away; what stays away for a month is not waited for.
"""
HINTS = (f",{Status.MISSING},".encode(), NO_RECORD.encode())
"""A summary without these words lacks nothing, and is not read any further."""


def late(
    repository: Repository, tip: str | None, results: Path, stored: Iterable[StoredBatch]
) -> Iterator[Gathered]:
    """Read what the volume holds by now of trials that are recorded without a record. Raises StorageError.

    A summary or a batch that cannot be read is passed over: whoever records the sweep next is told.
    """
    recent = [one for one in stored if not one.is_active and _is_recent(results / one.name)]
    for sweep in sorted({one.sweep for one in recent}):
        lacking = _lacking(repository, tip, sweep)
        mine = [one for one in recent if one.sweep == sweep and one.name in lacking]
        for batch in batches.legible(mine):
            indexes = sorted(index for index in lacking[batch.name] if index < batch.lock.trials)
            if not any(True for index in indexes for _ in volume.attempts(results, batch.name, index)):
                continue
            found = Gathered.read(results, batch, only=indexes)
            if found.records:
                yield found


def completed(held: BatchResults, came: Iterable[Record]) -> BatchResults | None:
    """Add records that came late to those of git; None where they tell nothing new that can be believed.

    One of an attempt takes the place of what said that it left none.
    """
    lines = {to_line(one) for one in held.records}
    news = tuple(one for one in came if to_line(one) not in lines)
    told = {(one.index, one.uid) for one in news}
    kept = (one for one in held.records if one.reason != NO_RECORD or (one.index, one.uid) not in told)
    whole = replace(held, records=(*kept, *news))
    return None if _ends(whole) == _ends(held) else whole


def _ends(found: BatchResults) -> list[tuple[Status, str | None]]:
    return [(one.status, one.reason) for one in judge(found).outcomes]


def _is_recent(folder: Path) -> bool:
    """Tell whether one of its trials may have begun lately: that makes a folder in it."""
    try:
        return folder.stat().st_mtime > time.time() - LOOK_BACK_SECONDS
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}") from error


def _lacking(repository: Repository, tip: str | None, sweep: str) -> Mapping[str, set[int]]:
    """Say of which trials nothing was recorded, by batch."""
    path = f"{results_folder(sweep)}/{SUMMARY_FILE}"
    content = repository.read(tip, path).get(path, b"")
    found: dict[str, set[int]] = {}
    if not any(hint in content for hint in HINTS):
        return found
    try:
        rows = summary.read(content.decode()).rows
    except ValueError:
        return found
    for row in rows:
        if row.status == Status.MISSING or row.reason == NO_RECORD:
            found.setdefault(row.batch, set()).add(row.index)
    return found
