"""Lookup of sweeps, batches, trials and summaries of the work tree, and the ranking of trials."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from sweepledger.errors import RepositoryError, UnreadableError, UsageError
from sweepledger.formats import summary_csv as summaries
from sweepledger.formats.summary_csv import SUMMARY_FILE, SummaryTable
from sweepledger.operations.repository import batch_records
from sweepledger.repo import batches
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import REMOTE, Checkout, Mirror, Repository, tracking_ref
from sweepledger.results.outcomes import evaluate
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal
from sweepledger.structs.names import (
    SPECS,
    SUFFIX,
    is_sweep_name,
    laptop_batches,
    laptop_path,
    results_folder,
    split_batch_name,
)
from sweepledger.structs.record import Record, SummaryRow

if TYPE_CHECKING:
    from sweepledger.operations.repository.workspace import Workspace


def sweep_names(workspace: "Workspace", stored: Iterable[StoredBatch]) -> frozenset[str]:
    """Return the sweeps that have a spec in the work tree, or a batch."""
    specs = {path.stem for path in workspace.spec_paths() if is_sweep_name(path.stem)}
    return frozenset(specs | {(split_batch_name(batch.name) or ("",))[0] for batch in stored})


def committed_sweeps(repository: Repository, commit: str) -> frozenset[str]:
    """Return the sweeps that have a spec or a batch at a commit."""
    paths = (PurePosixPath(path) for path in repository.files(commit, SPECS))
    specs = {path.stem for path in paths if path.suffix == SUFFIX and path.parent.as_posix() == SPECS}
    split = (split_batch_name(name) for name in batch_names(repository, commit))
    return frozenset({name for name in specs if is_sweep_name(name)} | {parts[0] for parts in split if parts})


def choose_sweep(root: Path, reference: str, existing: Iterable[str]) -> str:
    """Return the name of a sweep, given by name or by the path of its spec. Raises UsageError."""
    name = sweep_name(root, reference)
    names = sorted(existing)
    if name not in names:
        raise UsageError(f"no sweep {reference!r}", hint=f"sweeps: {', '.join(names) or 'none yet'}")
    return name


def sweep_name(root: Path, reference: str) -> str:
    """Return the sweep's name if a path of a spec is given, else the argument unchanged."""
    path = Path(reference)
    is_spec = path.suffix == SUFFIX and (path.is_file() or path.absolute().parent == root / SPECS)
    return path.stem if is_spec else reference


def batch_names(repository: Repository, commit: str | None, *below: str) -> frozenset[str]:
    """Return the batches of a commit, active and archived, or those below some folders."""
    folders = (path for place in below or (ACTIVE, ARCHIVE) for path in repository.folders(commit, place))
    names = (path.rpartition("/")[2] for path in folders)
    return frozenset(name for name in names if split_batch_name(name))


def mirrored(state: Path, branch: str) -> tuple[Repository, str | None] | None:
    """Return the clone of `sweep cluster local` with its commit of the branch; None if there is none."""
    mirror = state / Mirror.FOLDER
    if not mirror.is_dir():
        return None
    repository = Repository(mirror)
    return repository, repository.commit(tracking_ref(REMOTE, branch))


def summary_path(sweep: str) -> str:
    """Return the path of a sweep's summary in the repository."""
    return f"{results_folder(sweep)}/{SUMMARY_FILE}"


def read_summary(root: Path, sweep: str, checkout: Checkout | None = None) -> SummaryTable | None:
    """Read a sweep's summary from the work tree; None if there is none. Raises RepositoryError, StorageError."""
    place = summary_path(sweep)
    content = (checkout or Checkout(Repository(root), place)).read(place)
    hint = "restore it from git: only the collector writes it"
    return None if content is None else parse_summary(place, content, hint)


def parse_summary(path: str, content: bytes, hint: str) -> SummaryTable:
    """Return a summary. Raises RepositoryError with a hint if it cannot be read."""
    try:
        return summaries.read(content.decode())
    except ValueError as error:
        raise RepositoryError(f"{path}: {error}", hint=hint) from error


def best_value_at(
    repository: Repository, commit: str | None, lock: BatchLock, unrecorded: Iterable[SummaryRow]
) -> float | None:
    """Return the best value of a batch's sweep and program; None if there is none.

    The trials that are recorded at the commit count, and the given unrecorded rows.
    """
    path = summary_path(lock.sweep)
    content = repository.read(commit, path).get(path)
    rows: list[SummaryRow] = [*unrecorded]
    with suppress(ValueError):  # the results commit reports it
        rows += () if content is None else summaries.read(content.decode()).rows
    candidates = [row for row in rows if row.program == lock.program.digest and row.in_spec is not False]
    ranked = rank_rows(candidates, lock.metric.name, lock.metric.goal)
    return ranked[0].metric(lock.metric.name) if ranked else None


def eligible_rows(
    rows: Iterable[SummaryRow], stored: Iterable[StoredBatch], program: str | None = None
) -> tuple[SummaryRow, ...]:
    """Return the trials that may be ranked: those of one program that the spec contains.

    That is `program` if any row has it. Otherwise it is the program of the newest batch with rows; a batch that only
    retries failed trials counts as older than all others.
    """
    candidates = tuple(rows)
    programs = {row.program for row in candidates}
    locks = sorted((batch.lock for batch in stored), key=lambda lock: not lock.repairs)
    newest = [digest for lock in locks if (digest := lock.program.digest) in programs]
    ranked = [program] if program in programs else newest[-1:]
    return tuple(row for row in candidates if row.program in ranked and row.in_spec is not False)


def rank_rows(rows: Iterable[SummaryRow], metric: str, goal: Goal) -> tuple[SummaryRow, ...]:
    """Sort the trials that have the metric, best first; ties go to the smaller id."""
    sign = -1 if goal is Goal.MAXIMIZE else 1
    scored = [(sign * value, row.trial, row) for row in rows if (value := row.metric(metric)) is not None]
    return tuple(row for *_, row in sorted(scored, key=lambda entry: entry[:2]))


@dataclass(frozen=True)
class ListedTrial:
    """A trial, and the row that lists it."""

    batch: StoredBatch
    index: int
    id: str

    @property
    def sweep(self) -> str:
        """The sweep of the batch."""
        return self.batch.lock.sweep


def find_trial(root: Path, reference: str) -> ListedTrial:
    """Return a trial by its id, the beginning of it, or either after `SWEEP/`.

    If several batches of its sweep list it, the newest counts. Raises UsageError, UnreadableError.
    """
    prefix, _, trial = reference.rpartition("/")
    sweep = sweep_name(root, prefix)
    unreadable: list[UnreadableError] = []
    matches = list(matching_trials(root, sweep, trial, unreadable))
    if not matches:
        unreadable += _unreadable_batches(root, sweep)
    ids = sorted({listed.id for listed in matches})
    if not ids and unreadable:
        raise unreadable[0]
    if not ids:
        raise UsageError(f"no trial {reference!r} in any batch", hint="`sweep results NAME` lists ids")
    if len(ids) > 1:
        listed_ids = ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")  # noqa: PLR2004 - enough to choose from
        raise UsageError(f"{reference!r} begins several ids", hint=f"give more of it: {listed_ids}")
    sweeps = sorted({listed.sweep for listed in matches})
    if len(sweeps) > 1:
        ways = ", ".join(f"{name}/{ids[0]}" for name in sweeps)
        raise UsageError(
            f"trial {ids[0]} is in several sweeps: {', '.join(sweeps)}", hint=f"name its sweep: {ways}"
        )
    return max(matches, key=lambda listed: listed.batch.lock.number)


def _unreadable_batches(root: Path, sweep: str) -> Iterator[UnreadableError]:
    for batch in batches.in_work_tree(root):
        if batch.sweep == sweep or (not sweep and not batch.lists_every_trial()):
            try:
                _ = batch.vetted().rows
            except UnreadableError as error:
                yield error


def matching_trials(
    root: Path, sweep: str, trial: str, unreadable: list[UnreadableError]
) -> Iterator[ListedTrial]:
    """Yield the rows that list a trial, and add an error to `unreadable` for each batch that cannot be read."""
    for batch in batches.in_work_tree(root):
        if sweep not in {"", batch.sweep} or not batch.may_list(trial):
            continue
        try:
            rows = batch.vetted().rows
        except UnreadableError as error:
            unreadable.append(error)
            continue
        for index, row in enumerate(rows):
            if row.trial.startswith(trial) and trial:
                yield ListedTrial(batch, index, row.trial)


def laptop_batches_here(root: Path, sweep: str, checkout: Checkout | None = None) -> tuple[str, ...]:
    """Return the batches of a sweep that the work tree marks as made on a laptop. Raises StorageError."""
    place = laptop_path(sweep)
    return laptop_batches((checkout or Checkout(Repository(root), place)).read(place) or b"")


def laptop_batches_at(repository: Repository, commit: str | None, sweep: str) -> tuple[str, ...]:
    """Return the batches of a sweep that a commit marks as made on a laptop. Raises RepositoryError."""
    path = laptop_path(sweep)
    return laptop_batches(repository.read(commit, path).get(path, b""))


@dataclass(frozen=True)
class CountedTrial:
    """A trial with its result: the attempt that counts, and the batch that ran it."""

    trial: ListedTrial
    row: SummaryRow | None
    """None while it is not recorded."""
    record: Record | None
    """None if no attempt has a record."""


def counted_trial(root: Path, trial: str) -> CountedTrial:
    """Return a trial and the attempt that counts. Raises UsageError, RepositoryError."""
    newest = find_trial(root, trial)
    row = summary_row(root, newest)
    # If several batches list the trial, the batch whose attempt counts.
    listed = matching_trials(root, newest.sweep, newest.id, []) if row else ()
    same = (one for one in listed if one.id == newest.id and row and one.batch.name == row.batch)
    counted = next(same, newest)
    outcome = evaluate(batch_records.results_here(root, counted.batch)).outcomes[counted.index]
    return CountedTrial(counted, row, outcome.record)


def summary_row(root: Path, listed: ListedTrial) -> SummaryRow | None:
    """Return a trial's row of the summary; None while it is not recorded. Raises RepositoryError."""
    summary = read_summary(root, listed.sweep)
    program = listed.batch.lock.program.digest
    rows = summary.rows if summary else ()
    return next((row for row in rows if row.trial == listed.id and row.program == program), None)
