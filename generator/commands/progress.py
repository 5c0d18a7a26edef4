"""What batches that still run have left so far, on a branch `progress/<sweep>`: looked at, never merged."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from generator.commands import recorded
from generator.commands.collect import Target
from generator.commands.gathered import Gathered
from generator.commands.todays import Todays
from generator.errors import RepositoryError
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Change, heads, is_there_since, offer, withdraw
from generator.results import changed_files, results_folder
from generator.structs.record import Status

PROGRESS = "progress"
MINUTE = 60


def branch_of(sweep: str) -> str:
    """Name the branch of a sweep's partial summary."""
    return f"{PROGRESS}/{sweep}"


def show_progress(target: Target, results: Path, *, now: float) -> Iterator[RepositoryError]:
    """Renew the partial summaries that are due, and delete those of sweeps of which nothing runs any more.

    Yields why one could not be renewed: the next look tries again. Raises RepositoryError, StorageError.
    """
    if target.remote is None or target.progress_minutes is None:
        return
    repository, tip = target.repository, target.tip()
    stored = batches.in_commit(repository, tip)
    running = [one for one in batches.legible(stored) if one.is_active and (results / one.name).is_dir()]
    standing = heads(repository, target.remote, PROGRESS)
    sweeps = {one.sweep for one in stored if one.is_active}
    kept = {branch_of(sweep) for sweep in sweeps}
    for sweep in sorted({one.sweep for one in running}):
        mine = [one for one in batches.of_sweep(stored, sweep) if not one.is_active or one in running]
        try:
            _renew(target, results, sweep, mine, standing, tip or "", now)
        except RepositoryError as error:
            yield error
    withdraw(repository, target.remote, {name: at for name, at in standing.items() if name not in kept})


def _renew(
    target: Target,
    results: Path,
    sweep: str,
    told: Iterable[StoredBatch],
    standing: Mapping[str, str],
    tip: str,
    now: float,
) -> None:
    assert target.remote is not None
    assert target.progress_minutes is not None
    repository, branch = target.repository, branch_of(sweep)
    base = tip
    if branch in standing:
        repository.run("fetch", "--quiet", "--no-tags", target.remote, f"refs/heads/{branch}")
        base = standing[branch]
        last = is_there_since(repository, base, results_folder(sweep))
        if last is not None and last > now - target.progress_minutes * MINUTE:
            return
    change = _change(target, results, sweep, told, tip)
    offer(repository, target.remote, branch, base, change)


def _change(target: Target, results: Path, sweep: str, told: Iterable[StoredBatch], tip: str) -> Change:
    repository = target.repository
    known = repository.read(tip, results_folder(sweep))
    listed = [one for one in told if one.is_active or recorded.records_file(one) in known]
    newest = max(listed, key=lambda one: one.lock.number)
    summary = Todays.at(repository, tip, newest.lock.spec_path).summarised(
        Gathered.read(results, one).concluded if one.is_active else recorded.results(one, known)
        for one in listed
    )
    writes, removes = changed_files(summary)
    left = summary.counts.get(Status.MISSING, 0)
    return Change(
        message=f"Progress of {sweep}: {left} trials have left nothing yet\n",
        writes=writes,
        removes=removes,
    )
