"""Partial summaries of running batches on branches `progress/<sweep>`, never merged."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sweepledger.commands.collection.attempts import BatchAttempts
from sweepledger.commands.collection.record_store import RecordStore, record_store
from sweepledger.commands.repository import batch_records
from sweepledger.commands.repository.at_commit import SpecAtCommit
from sweepledger.commands.repository.workspace import Target
from sweepledger.errors import RepositoryError
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Change, delete_branches, present_since, push_proposal, remote_branches
from sweepledger.results.paths import results_folder
from sweepledger.results.tree import changed_files
from sweepledger.structs.record import Status

PROGRESS_PREFIX = "progress"
MINUTE = 60


def branch_name(sweep: str) -> str:
    """Return the branch of a sweep's partial summary."""
    return f"{PROGRESS_PREFIX}/{sweep}"


def update_progress_branches(
    target: Target, results: Path | RecordStore, *, now: float
) -> Iterator[RepositoryError]:
    """Update the partial summaries that are due, and delete those of sweeps without a running batch.

    Yields why a summary could not be updated; the next run tries again. Raises RepositoryError, StorageError.
    """
    if target.remote is None or target.progress_minutes is None:
        return
    repository, tip = target.repository, target.tip()
    stored, store = batches.in_commit(repository, tip), record_store(results)
    active = [batch for batch in stored if batch.is_active and store.has_begun(batch.name)]
    running = batches.readable(active)
    existing = remote_branches(repository, target.remote, PROGRESS_PREFIX)
    sweeps = {batch.sweep for batch in stored if batch.is_active}
    kept = {branch_name(sweep) for sweep in sweeps}
    for sweep in sorted({batch.sweep for batch in running}):
        own = [batch for batch in batches.of_sweep(stored, sweep) if not batch.is_active or batch in running]
        try:
            _update_branch(target, results, sweep, own, existing, tip or "", now)
        except RepositoryError as error:
            yield error
    delete_branches(
        repository, target.remote, {name: at for name, at in existing.items() if name not in kept}
    )


def _update_branch(
    target: Target,
    results: Path | RecordStore,
    sweep: str,
    running: Iterable[StoredBatch],
    existing: Mapping[str, str],
    tip: str,
    now: float,
) -> None:
    assert target.remote is not None
    assert target.progress_minutes is not None
    repository, branch = target.repository, branch_name(sweep)
    base = tip
    if branch in existing:
        repository.run("fetch", "--quiet", "--no-tags", target.remote, f"refs/heads/{branch}")
        base = existing[branch]
        last = present_since(repository, base, results_folder(sweep))
        if last is not None and last > now - target.progress_minutes * MINUTE:
            return
    change = _change(target, results, sweep, running, tip)
    push_proposal(repository, target.remote, branch, base, change)


def _change(
    target: Target, results: Path | RecordStore, sweep: str, running: Iterable[StoredBatch], tip: str
) -> Change:
    repository = target.repository
    files = repository.read(tip, results_folder(sweep))
    listed = [one for one in running if one.is_active or batch_records.records_file(one) in files]
    newest = batches.newest(listed)
    assert newest is not None
    summary = SpecAtCommit.at(repository, tip, newest.lock.spec.path).summarised(
        BatchAttempts.read(results, batch, by_engine=False).concluded
        if batch.is_active
        else batch_records.batch_results(batch, files)
        for batch in listed
    )
    writes, removes = changed_files(summary)
    missing = summary.counts.get(Status.MISSING, 0)
    return Change(
        message=f"Progress of {sweep}: {missing} trials have left nothing yet\n",
        writes=writes,
        removes=removes,
    )
