"""The records of one batch in git, and the batches without records."""

import itertools
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from sweepledger.errors import RepositoryError
from sweepledger.formats import hyperparams_csv, records_jsonl
from sweepledger.formats.batch_yaml import LOCK_FILE
from sweepledger.formats.record_json import CorruptRecord
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Checkout, Repository
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.paths import RESULTS, laptop_batches, laptop_path, records_path, results_folder
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.record import ExpectedTrial, Record
from sweepledger.structs.values import bytes_digest


def records_file(batch: StoredBatch, part: int = 0) -> str:
    """Return where a batch's records are in the repository: their first file, unless another part is named."""
    sweep, _, _ = split_batch_name(batch.name) or ("", 0, "")
    return f"{results_folder(sweep)}/{records_path(batch.name, part)}"


def records_files(batch: StoredBatch, present: Container[str]) -> tuple[str, ...]:
    """Return the paths of all files with records of a batch among those that are present."""
    paths = (records_file(batch, part) for part in itertools.count())
    return tuple(itertools.takewhile(lambda path: path in present, paths))


def read_records_files(root: Path, batch: StoredBatch) -> tuple[bytes, ...]:
    """Return the contents of all files with records of a batch in the work tree. Raises StorageError."""
    checkout = Checkout(Repository(root), results_folder(batch.sweep))
    parts = (checkout.read(records_file(batch, part)) for part in itertools.count())
    return tuple(
        content
        for content in itertools.takewhile(lambda part: part is not None, parts)
        if content is not None
    )


def unrecorded_batches(
    repository: Repository, commit: str | None, stored: Iterable[StoredBatch]
) -> tuple[StoredBatch, ...]:
    """Return the archived batches without records at a commit: they were cancelled."""
    archived = [batch for batch in stored if not batch.is_active]
    files = repository.files(commit, RESULTS) if archived else {}
    return tuple(batch for batch in archived if records_file(batch) not in files)


def batch_results(
    batch: StoredBatch, files: Mapping[str, bytes], *, is_cancelled: bool = False
) -> BatchRecords:
    """Return an archived batch's records from files of git. Raises RepositoryError for an unreadable record."""
    records: list[Record] = []
    for path in records_files(batch, files):
        for line in records_jsonl.read(files[path]):
            if isinstance(line.record, CorruptRecord):
                raise RepositoryError(
                    f"{path}: a record cannot be read ({line.record.reason})",
                    hint="restore the file from git",
                )
            records.append(line.record)
    return BatchRecords(
        batch.vetted().lock,
        expected_trials(batch),
        tuple(records),
        is_cancelled=is_cancelled,
        lock_digest=lock_digest(batch),
        is_marked=batch.name in laptop_batches(files.get(laptop_path(batch.sweep), b"")),
    )


def results_here(root: Path, batch: StoredBatch) -> BatchRecords:
    """Return an archived batch's records from the work tree. Raises RepositoryError, StorageError."""
    parts = read_records_files(root, batch)
    return batch_results(batch, {records_file(batch, part): content for part, content in enumerate(parts)})


def lock_digest(batch: StoredBatch) -> str:
    """Return the digest of a batch's lock file, which its results name."""
    return bytes_digest(batch.contents.read(LOCK_FILE))


def expected_trials(batch: StoredBatch) -> tuple[ExpectedTrial, ...]:
    """Return the trials of a batch's table, each with the row digest that its records must have."""
    program = batch.lock.program.digest
    return tuple(
        ExpectedTrial(row.trial, hyperparams_csv.row_digest(program, *line), index, row.values, row.replicate)
        for index, (row, line) in enumerate(zip(batch.rows, batch.lines, strict=True))
    )
