"""The records of one batch in git, and the batches without records."""

import itertools
import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sweepledger.errors import RepositoryError
from sweepledger.formats import hyperparams_csv, records_jsonl
from sweepledger.formats.launch_json import LAUNCH_FILE
from sweepledger.formats.record_json import CorruptRecord
from sweepledger.repo import batches
from sweepledger.repo.git import Checkout, Repository
from sweepledger.results.outcomes import BatchRecords
from sweepledger.safe_open import read_regular
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import MetricSource
from sweepledger.structs.names import LOCK_FILE, RESULTS, laptop_batches, laptop_path, results_folder
from sweepledger.structs.record import ExpectedTrial, Record, Status
from sweepledger.structs.values import bytes_digest


def records_files(batch: batches.StoredBatch, present: Container[str]) -> tuple[str, ...]:
    """Return the paths of all files with records of a batch among those that are present."""
    paths = (batch.records_file(part) for part in itertools.count())
    return tuple(itertools.takewhile(lambda path: path in present, paths))


def read_records_files(root: Path, batch: batches.StoredBatch) -> tuple[bytes, ...]:
    """Return the contents of all files with records of a batch in the work tree. Raises StorageError."""
    checkout = Checkout(Repository(root), results_folder(batch.sweep))
    contents: list[bytes] = []
    while (content := checkout.read(batch.records_file(len(contents)))) is not None:
        contents.append(content)
    return tuple(contents)


def unrecorded_batches(
    repository: Repository, commit: str | None, stored: Iterable[batches.StoredBatch]
) -> tuple[batches.StoredBatch, ...]:
    """Return the archived batches without records at a commit, which were cancelled."""
    archived = [batch for batch in stored if not batch.is_active]
    files = repository.files(commit, RESULTS) if archived else {}
    return tuple(batch for batch in archived if batch.records_file() not in files)


def batch_results(
    batch: batches.StoredBatch, files: Mapping[str, bytes], *, is_cancelled: bool = False
) -> BatchRecords:
    """Return an archived batch's records from files of git. Raises RepositoryError for an unreadable record."""
    records: list[Record] = []
    for path in records_files(batch, files):
        for record in records_jsonl.records(files[path]):
            if isinstance(record, CorruptRecord):
                raise RepositoryError(
                    f"{path}: a record cannot be read ({record.reason})",
                    hint="restore the file from git",
                )
            records.append(record)
    return BatchRecords(
        batch.vetted().lock,
        expected_trials(batch),
        tuple(records),
        is_cancelled=is_cancelled,
        lock_digest=lock_digest(batch),
        is_marked=batch.name in laptop_batches(files.get(laptop_path(batch.sweep), b"")),
    )


def results_here(root: Path, batch: batches.StoredBatch) -> BatchRecords:
    """Return an archived batch's records from the work tree. Raises RepositoryError, StorageError."""
    parts = read_records_files(root, batch)
    return batch_results(batch, {batch.records_file(part): content for part, content in enumerate(parts)})


def ends_in_digest(name: str, digest: str) -> bool:
    """Return whether the name of a batch ends in the digest of its files."""
    return name.endswith(f"-{digest.removeprefix('sha256:')[:8]}")


def lock_digest(batch: batches.StoredBatch) -> str:
    """Return the digest of a batch's lock file, which its results name."""
    return bytes_digest(batch.contents.read(LOCK_FILE))


def expected_trials(batch: batches.StoredBatch) -> tuple[ExpectedTrial, ...]:
    """Return the trials of a batch's table, each with the row digest that its records must have."""
    program = batch.lock.program.digest
    return tuple(
        ExpectedTrial(row.trial, hyperparams_csv.row_digest(program, *line), index, row.values, row.replicate)
        for index, (row, line) in enumerate(zip(batch.rows, batch.lines, strict=True))
    )


LARGEST_OUTPUT = 512 * 1024
"""Bytes of the head and the tail of an output that the launcher keeps."""
_CUT = re.compile(rb"\n\[launch\.py cut [0-9]+ bytes here\]\n")
_UNREAD_METRIC = frozenset({"metric-missing", "result-invalid"})
"""Reasons of attempts that exited with 0, and failed by the name or the format of their metric alone."""


@dataclass(frozen=True, slots=True)
class StoredOutputs:
    """Output of earlier attempts at a batch's trials on this machine, from which a changed metric may be read."""

    files: Mapping[int, Mapping[str, str]]
    """By row, the paths of record, output and artifacts of an attempt whose output is complete."""
    incomplete: Mapping[int, str]
    """By row, why an attempt's output is not used: the trial is trained again."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return lines for people about the effect on the trials; none if no output is read and none was cut."""
        count = len(self.files)
        trials = f"{count} trial is" if count == 1 else f"{count} trials are"
        read = f"{trials} not trained: the metric is read from stored output"
        return (*([read] if count else []), *(f"trained again: {why}" for why in self.incomplete.values()))


def stored_outputs(
    repository: Repository, commit: str | None, batch: batches.StoredBatch, results: Path
) -> StoredOutputs:
    """Return the outputs that the launcher reads again: of failed trials for which only the metric has changed."""
    none = StoredOutputs({}, {})
    metric, keeps = batch.lock.metric, json.loads(batch.read(LAUNCH_FILE)).get("keep_checkpoints")
    if not metric.source.is_printed or keeps or batch.lock.number == 1:
        return none
    same = batches.of_sweep_in_commit(repository, commit, batch.sweep)
    newest = {
        trial.digest: each for each in same if each.lock.number < batch.lock.number for trial in each.trials
    }
    failed = {
        digest: each
        for digest, each in newest.items()
        if not each.is_active
        and (each.lock.metric.source is MetricSource.OUTPUT) == (metric.source is MetricSource.OUTPUT)
        and _reading(each.lock) != _reading(batch.lock)
        and _reaches_program(each) == _reaches_program(batch)
    }
    if not any(trial.digest in failed for trial in batch.trials):
        return none
    contents = repository.read(commit, results_folder(batch.sweep))
    records = {
        (each.name, record.row): record
        for each in {each.name: each for each in failed.values()}.values()
        if each.records_file() in contents
        for record in batch_results(each, contents).records
        if record.status is Status.FAILED and record.reason in _UNREAD_METRIC
    }
    usable: dict[int, Mapping[str, str]] = {}
    incomplete: dict[int, str] = {}
    for trial, expected in zip(batch.trials, expected_trials(batch), strict=True):
        earlier = failed.get(trial.digest)
        record = records.get((earlier.name, expected.row)) if earlier else None
        if earlier is None or record is None or record.seed != batch.lock.run.seed_base + trial.replicate:
            continue
        place = f"{earlier.name}/{earlier.lock.place(record.index)}"
        folder = results / place
        environment = None  # the list of its distributions, which is kept once per trial or batch
        if record.environment and record.environment.kind == "distributions":
            name = f"environments/{record.environment.digest.partition(':')[2]}.txt"
            paths = [folder / name, results / earlier.name / name]
            environment = next(filter(Path.is_file, paths), paths[0])
        why = _incomplete(folder, record, environment)
        if why:
            incomplete[expected.index] = f"{trial.id}: {why}"
            continue
        artifacts = [
            root / place / "artifacts" / record.uid for root in (results, results.parent / "artifacts")
        ]
        usable[expected.index] = {
            "record": str(folder / f"{record.uid}.json"),
            "output": str(folder / f"{record.uid}.out"),
            "artifacts": str(next(filter(Path.is_dir, artifacts), artifacts[0])),
            "environment": str(environment or ""),
        }
    return StoredOutputs(usable, incomplete)


def _reading(lock: BatchLock) -> object:
    """Return everything that determines which metrics are read from a trial."""
    return lock.metric.name, lock.metric.reported, [metric.name for metric in lock.other_metrics]


def _reaches_program(batch: batches.StoredBatch) -> object:
    """Return everything that determines how a trial runs: if environment or resources changed, it is trained again."""
    launch = json.loads(batch.read(LAUNCH_FILE))
    for name in ("generated", "batch", "shards", "metric"):
        launch.pop(name, None)
    run = batch.lock.run
    return batch.lock.program.digest, launch, run.environment, run.resources, run.pool, run.secrets


def _incomplete(folder: Path, record: Record, environment: Path | None) -> str:
    """Return why the stored output of an attempt cannot be read again; empty if it can."""
    needed = [folder / f"{record.uid}.json", folder / f"{record.uid}.out", *filter(None, [environment])]
    contents = [read_regular(path, LARGEST_OUTPUT + 1) for path in needed]
    if None in contents:
        return "what it left is not kept here"
    output = contents[1] or b""
    if len(output) > LARGEST_OUTPUT or _CUT.search(output):
        return "its output was longer than 512 KiB, and the middle is not stored"
    return "its output could not be stored completely" if "output_incomplete" in record.details else ""
