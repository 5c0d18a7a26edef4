"""Where the checkpoints lie that trials go on from: the folders of their parents, by what git holds."""

from collections.abc import Iterable, Mapping

from generator.errors import RepositoryError, UnreadableError
from generator.repo import batches
from generator.repo.batches import StoredBatch


def parent_folders(parents: Mapping[int, str], older: Iterable[StoredBatch]) -> dict[int, str]:
    """Find for each row the folder of the trial that it goes on from: that of its last batch.

    Raises RepositoryError where no older batch lists a parent.
    """
    places = _places(frozenset(parents.values()), older) if parents else {}
    lost = sorted(set(parents.values()) - places.keys())
    if lost:
        raise RepositoryError(f"no batch lists {', '.join(lost)}, whose checkpoints a trial would go on from")
    return {row: places[trial] for row, trial in parents.items()}


def of_batch(batch: StoredBatch, stored: Iterable[StoredBatch]) -> dict[int, str]:
    """Find the folders that a stored batch may read; none of what is nowhere to be found."""
    try:
        lock = batch.lock
        if not lock.parents:
            return {}
        older = [one for one in batches.of_sweep(stored, batch.sweep) if one.lock.number < lock.number]
        places = _places(frozenset(lock.parents.values()), older)
    except UnreadableError:
        return {}
    return {row: places[trial] for row, trial in lock.parents.items() if trial in places}


def _places(wanted: frozenset[str], older: Iterable[StoredBatch]) -> dict[str, str]:
    listed = sorted(older, key=lambda batch: batch.lock.number)
    batches.load(listed)
    return {
        row.trial: f"{batch.name}/{index}"
        for batch in listed
        for index, row in enumerate(batch.rows)
        if row.trial in wanted
    }
