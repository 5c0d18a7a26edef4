"""The records of one batch in git, and the batches without records."""

from collections.abc import Iterable, Mapping

from sweepledger.errors import RepositoryError
from sweepledger.formats import hyperparams_csv, record_json
from sweepledger.formats.batch_yaml import LOCK_FILE
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.paths import RESULTS, records_path, results_folder
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.record import ExpectedTrial, Record
from sweepledger.structs.values import bytes_digest


def records_file(batch: StoredBatch) -> str:
    """Return where a batch's records are in the repository."""
    sweep, _, _ = split_batch_name(batch.name) or ("", 0, "")
    return f"{results_folder(sweep)}/{records_path(batch.name)}"


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
    path = records_file(batch)
    lines = record_json.read_lines(files.get(path, b"").decode(errors="replace"))
    broken = [record for record in lines if not isinstance(record, Record)]
    if broken:
        raise RepositoryError(
            f"{path}: a record cannot be read ({broken[0].reason})", hint="restore the file from git"
        )
    records = tuple(record for record in lines if isinstance(record, Record))
    return BatchRecords(
        batch.vetted().lock,
        expected_trials(batch),
        records,
        is_cancelled=is_cancelled,
        lock_digest=lock_digest(batch),
    )


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
