"""What a commit says was spent in a month, and what is promised: read from records and manifests alone."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from json import loads

from generator.commands import recorded
from generator.commands.timing import MANIFESTS, run_of
from generator.errors import UnreadableError, UsageError
from generator.formats.launch import LAUNCH_FILE
from generator.formats.lock import LOCK_FILE
from generator.plan import Charge, charge, counts, promise
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository, committed_at
from generator.results.places import RESULTS
from generator.structs.settings import Pool, Settings
from generator.structs.sweep import Run

MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])", re.ASCII)
AT_ONCE = 200
"""Files of records that are held in memory."""


@dataclass(frozen=True)
class Ledger:
    """One month."""

    month: str
    used: tuple[Charge, ...] = ()
    """A charge for each batch with attempts that ended in the month."""
    promised: tuple[Charge, ...] = ()
    """A charge for each active batch."""
    unread: tuple[str, ...] = ()
    """Batches that do not say what they ask for: they are charged nothing."""


def month_of(repository: Repository, commit: str | None, asked: str | None) -> str:
    """Choose the month: the one asked for, else that of the commit, so that equal input has equal answers.

    Raises UsageError.
    """
    if asked is not None:
        if not MONTH.fullmatch(asked):
            raise UsageError(f"--month {asked} is no month", hint="write it like 2026-11")
        return asked
    if commit is None:
        return ""
    return datetime.fromtimestamp(committed_at(repository, commit), UTC).strftime("%Y-%m")


def ledger(
    repository: Repository,
    commit: str | None,
    settings: Settings,
    month: str,
    *,
    standing: Iterable[StoredBatch],
    leaving: Mapping[str, float] | None = None,
) -> Ledger:
    """Sum up a month as a commit has it.

    Batches that are leaving are promised nothing any more, but have used up so many seconds of the month.
    """
    left = leaving or {}
    found = [one for one in standing if any(counts(team, one.sweep) for team in settings.budgets.values())]
    active = [one for one in found if one.is_active and one.name not in left]
    seconds = dict(_ended(repository, commit, found, month))
    seconds |= {name: spent for name, spent in left.items() if spent}
    batches.load([one for one in found if one in active or one.name in seconds], *FILES)
    used, promised, unread = [], [], []
    for one in found:
        if one not in active and one.name not in seconds:
            continue
        asked = _asked(one, settings)
        if asked is None:
            unread.append(one.name)
            continue
        run, pool, trials = asked
        if one.name in seconds:
            used.append(charge(one.sweep, run, pool, seconds[one.name]))
        if one in active:
            promised.append(promise(one.sweep, run, pool, trials))
    return Ledger(month, tuple(used), tuple(promised), tuple(unread))


FILES = (LOCK_FILE, MANIFESTS, LAUNCH_FILE)


def _asked(batch: StoredBatch, settings: Settings) -> tuple[Run, Pool | None, int] | None:
    try:
        lock = batch.vetted().lock
    except UnreadableError:
        return None
    run = run_of(batch)
    return None if run is None else (run, settings.pools.get(lock.pool or ""), lock.trials)


def _ended(
    repository: Repository, commit: str | None, stored: Iterable[StoredBatch], month: str
) -> Iterator[tuple[str, float]]:
    """Sum the seconds of each batch's attempts that ended in a month."""
    names = {recorded.records_file(one): one.name for one in stored}
    files = repository.files(commit, RESULTS) if names else {}
    known = {path: entry.id for path, entry in files.items() if path in names}
    ordered = sorted(known)
    for start in range(0, len(ordered), AT_ONCE):
        paths = ordered[start : start + AT_ONCE]
        contents = repository.blobs(known[path] for path in paths)
        for path in paths:
            total = seconds_in(contents[known[path]], month)
            if total:
                yield names[path], total


def seconds_in(records: bytes, month: str) -> float:
    """Sum the seconds of the attempts in a file of records that ended in a month."""
    return sum(_seconds(records, month))


def _seconds(records: bytes, month: str) -> Iterator[float]:
    """Look only at lines that name the month at all: there are years of others."""
    named = f'"{month}-'.encode()
    for line in records.split(b"\n"):
        if named not in line:
            continue
        try:
            record: Mapping[str, object] = loads(line)
            finished, seconds = str(record["finished"]), float(str(record["seconds"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if finished.startswith(f"{month}-") and seconds >= 0:
            yield seconds
