"""What git holds of a batch's results, and which batches wait for theirs.

One batch at a time, and no opinion: what a spec makes of the outcomes of several is in retrying.py.
"""

from collections.abc import Iterable, Mapping

from generator.errors import RepositoryError
from generator.formats import record, table
from generator.formats.lock import LOCK_FILE
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository
from generator.results import BatchResults, records_path, results_folder
from generator.results.places import RESULTS
from generator.structs.names import split_batch_name
from generator.structs.record import ExpectedTrial, Record
from generator.structs.values import bytes_digest


def records_file(batch: StoredBatch) -> str:
    """Say where a batch's records lie in the repository."""
    sweep, _, _ = split_batch_name(batch.name) or ("", 0, "")
    return f"{results_folder(sweep)}/{records_path(batch.name)}"


def pending(
    repository: Repository, commit: str | None, stored: Iterable[StoredBatch]
) -> tuple[StoredBatch, ...]:
    """List the archived batches of a commit whose records it does not hold: they were cancelled."""
    archived = [batch for batch in stored if not batch.is_active]
    held = repository.files(commit, RESULTS) if archived else {}
    return tuple(batch for batch in archived if records_file(batch) not in held)


def results(batch: StoredBatch, known: Mapping[str, bytes], *, is_cancelled: bool = False) -> BatchResults:
    """Take an archived batch's records from files of git. Raises RepositoryError: none may get lost."""
    path = records_file(batch)
    found = record.read_lines(known.get(path, b"").decode(errors="replace"))
    broken = [one for one in found if not isinstance(one, Record)]
    if broken:
        raise RepositoryError(
            f"{path}: a record cannot be read ({broken[0].reason})", hint="restore the file from git"
        )
    records = tuple(one for one in found if isinstance(one, Record))
    return BatchResults(
        batch.vetted().lock,
        expected(batch),
        records,
        is_cancelled=is_cancelled,
        lock_digest=lock_digest(batch),
    )


def lock_digest(batch: StoredBatch) -> str:
    """Digest a batch's lock as it lies there: what its results are said to be made from."""
    return bytes_digest(batch.contents.read(LOCK_FILE))


def expected(batch: StoredBatch) -> tuple[ExpectedTrial, ...]:
    """List what a batch's table asks for, each row with the digest that its records must carry."""
    program = batch.lock.program.digest
    return tuple(
        ExpectedTrial(row.trial, table.row_digest(program, *line), index, row.values, row.replicate)
        for index, (row, line) in enumerate(zip(batch.rows, batch.lines, strict=True))
    )
