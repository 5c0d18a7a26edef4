"""Compares recorded batches with their locks, tables, records and summaries, recomputed from git alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import Any

from sweepledger.errors import RepositoryError
from sweepledger.formats import batch_json, record_json, records_jsonl
from sweepledger.formats.batch_json import batch_digest
from sweepledger.formats.hyperparams_csv import REPLICATE_COLUMN, TABLE_FILE
from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.formats.summary_csv import PARAMETER_PREFIX, SUMMARY_FILE, without_new_columns
from sweepledger.operations.repository import at_commit, batch_records
from sweepledger.operations.repository.batch_records import ends_in_digest
from sweepledger.operations.verification.file_diff import FileDifference, cells_of, file_differences
from sweepledger.repo import batches
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import FILE_MODE, Entry, Repository
from sweepledger.results.outcomes import BatchRecords, Losses
from sweepledger.results.summary import Summary
from sweepledger.results.tree import PROVENANCE_FILE, parse_provenance, result_files
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.metric import Goal
from sweepledger.structs.names import (
    LOCK_FILE,
    RECORDS,
    RESULTS,
    SPECS,
    SUFFIX,
    batch_of_records,
    laptop_path,
    results_folder,
)
from sweepledger.structs.record import ExpectedTrial, Record
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import bytes_digest


@dataclass(frozen=True)
class SweepAudit:
    """Compares the recorded files of a sweep at a commit with the recomputed ones, and with earlier commits."""

    repository: Repository
    commit: str
    sweep: str

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """The files of its results."""
        return self.repository.files(self.commit, results_folder(self.sweep))

    @cached_property
    def contents(self) -> Mapping[str, bytes]:
        """What these files contain."""
        return self.repository.read(self.commit, results_folder(self.sweep))

    @cached_property
    def done(self) -> tuple[StoredBatch, ...]:
        """Its archived batches that have records, by number."""
        stored = batches.of_sweep_in_commit(self.repository, self.commit, self.sweep)
        return tuple(
            batch for batch in stored if not batch.is_active and batch.records_file() in self.contents
        )

    @property
    def _provenance(self) -> Mapping[str, Any]:
        path = f"{results_folder(self.sweep)}/{PROVENANCE_FILE}"
        return parse_provenance(self.contents.get(path, b""))

    def differences(self) -> frozenset[FileDifference]:
        """Return all differences."""
        batches.prefetch(self.done)
        batches.prefetch_omitted(self.done)
        whole = {**self.entries, **self.repository.files(self.commit, ARCHIVE)}
        differences = {
            FileDifference(path, "", "", f"must have the mode {FILE_MODE}, got {entry.mode}")
            for path, entry in {**self.entries, **summary_inputs(self.sweep, whole)}.items()
            if entry.mode != FILE_MODE  # the collector writes no links, and nothing executable
        }
        for batch in self.done:
            differences.update(self.batch(batch), self.records(batch))
        differences.update(self._repeats(), self._inputs(whole), self.rebuilt())
        return frozenset(differences.union(self._summary()) if differences else ())

    def batch(self, batch: StoredBatch) -> Iterator[FileDifference]:
        """Compare the files of a batch with its lock, and the lock with the name and the trial ids."""
        path = f"{batch.folder}/{LOCK_FILE}"
        try:
            lock = batch.lock
        except RepositoryError as error:
            yield FileDifference(path, "", "", str(error).removeprefix(f"{path}").lstrip(": "))
            yield from self._since(batch, LOCK_FILE, lambda content: _is_lock_of(batch.name, content))
            return
        drift = batch.hand_edits()
        for name in (*drift.added, *drift.changed):
            digest = lock.files[name]
            got = bytes_digest(batch.tree[name]) if name in batch.tree.files else "nothing"
            message = f"must have the digest {digest} by the lock, got {got}"
            unknown = FileDifference(f"{batch.folder}/{name}", "", "", message)
            yield from self._since(batch, name, partial(_has_digest, digest), unknown)
        for name in drift.added:
            yield FileDifference(path, "", f"files.{name}", "must name a file that is there, and does not")
        for name in drift.stale:
            yield FileDifference(f"{batch.folder}/{name}", "", "", "must not be there by the lock, and is")
        yield from self._rows(batch)
        if not drift:
            yield from self._lock(batch)

    def _lock(self, batch: StoredBatch) -> Iterator[FileDifference]:
        """Compare the lock with the name of the batch, which ends in the digest of its files."""
        lock = batch.lock
        digest = batch_digest(batch.tree, lock.name, lock.digest)
        if lock.name == batch.name and digest == lock.digest and ends_in_digest(batch.name, digest):
            return

        def fits(content: bytes) -> bool:
            """Return whether a lock and the other files of the batch have the digest in the batch's name."""
            if not _is_lock_of(batch.name, content):
                return False
            tree, other = FileTree({**batch.tree.files, LOCK_FILE: content}), batch_json.read(content)
            return batch_digest(tree, other.name, other.digest) == other.digest

        message = (
            f"must be of {batch.name}, whose files have the digest {digest[:19]}, got {lock.digest[:19]}"
        )
        unknown = FileDifference(f"{batch.folder}/{LOCK_FILE}", "", "digest", message)
        yield from self._since(batch, LOCK_FILE, fits, unknown)

    def _rows(self, batch: StoredBatch) -> Iterator[FileDifference]:
        try:
            rows = zip(batch.rows, batch.trials, strict=True)
        except (RepositoryError, KeyError, ValueError) as error:
            yield FileDifference(batch.folder, "", "", str(error))
            return
        for row, trial in rows:
            if row.trial != trial.id:
                message = f"must be {trial.id} by its values and program, got {row.trial}"
                yield FileDifference(batch.folder, row.trial, "trial", message)
        if len(batch.rows) != batch.lock.trials:
            message = f"must have {batch.lock.trials} trials by the lock, got {len(batch.rows)}"
            yield FileDifference(batch.folder, "", "", message)

    def _since(
        self, batch: StoredBatch, name: str, matches: Callable[[bytes], bool], *unknown: FileDifference
    ) -> Iterable[FileDifference]:
        """Compare a file with the newest matching version in history; return `unknown` if no version matches."""
        places = [f"{place}/{batch.name}/{name}" for place in (ARCHIVE, ACTIVE)]
        commit, content = at_commit.earlier_version(self.repository, self.commit, places, matches) or (
            "",
            None,
        )
        path, because = f"{batch.folder}/{name}", f"as in commit {commit[:12]}"
        got = batch.tree.files.get(name)
        return (content is not None and file_differences(path, content, got, because=because)) or unknown

    def _inputs(self, entries: Mapping[str, Entry]) -> Iterator[FileDifference]:
        """Compare the inputs of the results with the same files in the commit that added the results."""
        folder = results_folder(self.sweep)
        origin = at_commit.commit_of_version(self.repository, self.commit, f"{folder}/{PROVENANCE_FILE}")
        if origin is None or origin == self.commit:
            return
        then = self.repository.files(origin, RESULTS, ARCHIVE)
        inputs = {*summary_inputs(self.sweep, then), *summary_inputs(self.sweep, entries)}
        changed = sorted(path for path in inputs if then.get(path) != entries.get(path))
        versions = {path: (then.get(path), entries.get(path)) for path in changed}
        contents = self.repository.blobs(entry.id for pair in versions.values() for entry in pair if entry)
        for path, pair in versions.items():
            must, got = (contents[entry.id] if entry else None for entry in pair)
            yield from file_differences(path, must, got, because=f"as commit {origin[:12]} summarised it")

    def records(self, batch: StoredBatch) -> Iterator[FileDifference]:
        """Report records that are corrupt or do not belong to a trial of the batch."""
        try:
            rows = {trial.index: trial for trial in batch_records.expected_trials(batch)}
            data = None if batch.lock.program.data is None else batch.lock.program.data.digest
            code = batch.lock.program.code.tree
        except (RepositoryError, KeyError, ValueError):
            return  # `batch` reports the overlay
        for path in batch_records.records_files(batch, self.contents):
            for number, record in records_jsonl.read(self.contents[path]):
                if isinstance(record, record_json.CorruptRecord):
                    message = f"must be a record, got one that is {record.reason}"
                    yield FileDifference(path, f"line {number}", "", message)
                else:
                    yield from _row_differences(
                        path, record, rows.get(record.index), (batch.name, code, data)
                    )
                    if record.stopped is not None and (
                        fault := stop_fault(record, batch.lock.metric.of_curve)
                    ):
                        yield FileDifference(path, record.trial, "stopped", fault)

    def _repeats(self) -> Iterator[FileDifference]:
        """Report trials that were repeated after a failure of infrastructure although their records do not allow this.

        If git has not kept every record of a trial, it may have had such an attempt.
        """
        recorded: list[tuple[tuple[Trial, ...], BatchRecords]] = []
        try:
            for batch in self.done:
                infrastructure = batch.lock.run.infrastructure
                if batch.lock.after_infrastructure and infrastructure is None:
                    message = "must say how often a trial may be repeated"
                    yield FileDifference(f"{batch.folder}/{LOCK_FILE}", "", "infrastructure", message)
                elif batch.lock.after_infrastructure and infrastructure is not None:
                    must = f"must have been ended by infrastructure in 1 to {infrastructure.retries} earlier batches"
                    counts = Losses.of(recorded, infrastructure).counts
                    cut = {
                        trials[record.index].digest
                        for trials, records in recorded
                        for record in records.records
                        if record.others is not None and record.index < len(trials)
                    }
                    for trial in batch.trials:
                        count = counts[trial.digest]
                        if not 1 <= count <= infrastructure.retries and trial.digest not in cut:
                            yield FileDifference(
                                batch.folder, trial.id, "after_infrastructure", f"{must}, got {count}"
                            )
                recorded.append((batch.trials, batch_records.batch_results(batch, self.contents)))
        except (RepositoryError, KeyError, ValueError):
            return  # `batch` and `records` report what cannot be read

    def _summary(self) -> Iterator[FileDifference]:
        """Compare tables and records of recorded batches with the summary, which is not verified itself."""
        folder, contents = results_folder(self.sweep), self.contents
        lines = cells_of(contents.get(f"{folder}/{SUMMARY_FILE}", b"").decode(errors="replace"))
        rows = [dict(zip(lines[0], cells, strict=False)) for cells in lines[1:]] if lines else []
        provenance = self._provenance.get("batches")
        provenance = provenance if isinstance(provenance, dict) else {}
        for batch in self.done:
            yield from _table_differences(batch, rows)
            yield from _provenance_differences(batch, provenance.get(batch.name), contents, rows)
        for path in sorted({f"{folder}/{RECORDS}/{name}.jsonl" for name in provenance} - contents.keys()):
            yield FileDifference(path, "", "", f"must be there by {PROVENANCE_FILE}, and is missing")

    def rebuilt_files(self) -> FileTree:
        """Rebuild every file below `results/<sweep>/` from the locks, tables and records of the commit.

        The spec is the one that provenance.json names by its digest, looked up at the commit, then in the history
        of its path. Raises as `recorded_summary` does, ValueError.
        """
        return result_files(self.recorded_summary())

    def rebuilt(self) -> Iterator[FileDifference]:
        """Compare the files below `results/<sweep>/` with those that follow from the records."""
        folder, contents = results_folder(self.sweep), self.contents
        try:
            rebuilt = self.rebuilt_files()
        except (RepositoryError, KeyError, ValueError) as error:
            yield FileDifference(folder, "", "", f"cannot be computed again: {error}")
            return
        for path in sorted({*contents, *(f"{folder}/{path}" for path, _ in rebuilt)}):
            expected, actual = rebuilt.files.get(path.removeprefix(f"{folder}/")), contents.get(path)
            if path == f"{folder}/{SUMMARY_FILE}" and expected and actual and expected != actual:
                with suppress(ValueError):  # not a summary, which the comparison says
                    expected = without_new_columns(expected.decode(), actual).encode()
            yield from file_differences(path, expected, actual, because="by the records")

    def recorded_summary(self, program: str | None = None) -> Summary:
        """Return the summary of the recorded batches; the ranked program is chosen as in `summarise`.

        Raises RepositoryError if nothing is recorded, or a file cannot be read or is missing.
        """
        folder = results_folder(self.sweep)
        if not self.done:
            raise RepositoryError(
                f"{folder}: no archived batch of {self.sweep} has records at {self.commit[:12]}",
                hint="name a commit that holds them: `git log -- overlays/archive`",
            )
        spec = self._summarised_spec()
        batches.prefetch(self.done)
        results = [
            batch_records.batch_results(batch, self.contents, is_cancelled=batch.name in spec.cancelled)
            for batch in self.done
        ]
        try:
            return spec.summarised(results, program)
        except ValueError as error:
            raise RepositoryError(f"{folder}: {error}", hint="restore it from git") from error

    def _summarised_spec(self) -> at_commit.SpecAtCommit:
        """Return the spec that was summarised; if the provenance names none, the spec at the commit."""
        repository, commit = self.repository, self.commit
        provenance = self._provenance
        path, digest = f"{SPECS}/{self.sweep}{SUFFIX}", ""  # of a provenance that does not name a spec
        with suppress(KeyError, TypeError):
            named = provenance["spec"]
            path, digest = str(PurePosixPath(named["path"])), named["digest"]
        if digest is None:
            return at_commit.SpecAtCommit(None, None)
        digest = str(digest)
        spec_commit, content = commit, repository.read(commit, path).get(path)
        if digest and (content is None or bytes_digest(content) != digest):
            version = at_commit.earlier_version(repository, commit, [path], partial(_has_digest, digest))
            if version is None:
                raise RepositoryError(
                    f"{path}: no commit in the history of {commit[:12]} holds the content {digest[:19]}, "
                    "from which the results were summarised",
                    hint="fetch the branch that held it, or all of a shallow clone: `git fetch --unshallow`",
                )
            spec_commit, content = version
        if content is None:
            return at_commit.SpecAtCommit(None, None)
        # Whether a spec can be read depends on settings, and these may have become stricter since.
        for settings_commit in (spec_commit, commit):
            if sweep := at_commit.SpecReader.at(repository, settings_commit).sweep(spec_commit, path):
                return at_commit.SpecAtCommit(sweep, content)
        return at_commit.SpecAtCommit(None, content)


def summary_inputs(sweep: str, files: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the files that the results are computed from: records and the overlays of recorded batches."""
    folder = f"{results_folder(sweep)}/{RECORDS}/"
    recorded = {f"{ARCHIVE}/{batch_of_records(path)}" for path in files if path.startswith(folder)}
    return {
        path: entry
        for path, entry in files.items()
        if path.startswith(folder)
        or path == laptop_path(sweep)
        or "/".join(path.split("/", 3)[:3]) in recorded
    }


def stop_fault(record: Record, compared: str) -> str | None:
    """Return why the thresholds that a trial saw do not end it at the step in its record; None if they do.

    For a rule in launch.json this cannot differ, because the lock covers it.
    """
    stopped = record.stopped
    if stopped is None or stopped.seen is None:
        return None
    if record.thresholds is None:
        return f"must be decided by the thresholds {stopped.seen[:19]}, which are not there"
    try:
        rule = next(
            rule
            for rule in parse_untrusted_object(record.thresholds.encode())["stop"]
            if rule["rule"] == stopped.rule
        )
        sign = 1.0 if rule["goal"] == Goal.MAXIMIZE else -1.0
        limits = [limit for step, limit in rule["thresholds"] if step <= stopped.step]
        points = record.curve(compared)
        reached = [sign * value for step, value in points if step <= stopped.step and value is not None]
        value = reached[-1] if rule["value"] == "last" else max(reached)
        if limits[-1] == stopped.threshold and value < sign * limits[-1]:
            return None
    except (RejectedInput, StopIteration, KeyError, TypeError, ValueError, IndexError):
        return f"must follow from the thresholds {stopped.seen[:19]} and the curve, and cannot be repeated"
    return (
        f"must be worse than {limits[-1]} at step {stopped.step} by the thresholds {stopped.seen[:19]}, "
        f"got {sign * value} and a threshold of {stopped.threshold}"
    )


def _row_differences(
    path: str, record: Record, row: ExpectedTrial | None, of: tuple[str, str, str | None]
) -> Iterator[FileDifference]:
    if row is None:
        yield FileDifference(path, record.trial, "index", f"must be a row of the table, got {record.index}")
        return
    must = dict(zip(("trial", "row", "batch", "code", "data"), (row.trial, row.row, *of), strict=True))
    for column, value in must.items():
        if getattr(record, column) != value:
            message = f"must be {value!r} by the table and its lock, got {getattr(record, column)!r}"
            yield FileDifference(path, row.trial, column, message)


def _has_digest(digest: str, content: bytes) -> bool:
    return bytes_digest(content) == digest


def _is_lock_of(name: str, content: bytes) -> bool:
    try:
        lock = batch_json.read(content)
    except ValueError:
        return False
    return lock.name == name and ends_in_digest(name, lock.digest)


REPEATED_COLUMNS = ("status", "reason", "ran", "started", "finished")
"""Members of a record that the summary repeats unchanged."""


def _table_differences(batch: StoredBatch, rows: list[dict[str, str]]) -> Iterator[FileDifference]:
    """Compare an edited table with the summary, cell by cell. A table in several files is not compared."""
    tables = [path for path in batch.hand_edits().changed if path.endswith(".csv")]
    if len(tables) != 1 or TABLE_FILE not in tables:
        return
    table = batch.tree[tables[0]]
    head = table.split(b"\n", maxsplit=1)[0].decode(errors="replace").split(",")
    own = {"trial": "trial", REPLICATE_COLUMN: REPLICATE_COLUMN}
    columns = [own.get(name, f"{PARAMETER_PREFIX}{name}") for name in head]
    # The summary adds a guard against spreadsheet formulas to parameters.
    lines = [
        ",".join(row.get(name, "").replace("\"'", '"', 0 if name in own else 1) for name in columns)
        for row in rows
        if row.get("batch") == batch.name
    ]
    expected = "".join(f"{line}\n" for line in (",".join(head), *lines)).encode()
    yield from file_differences(
        f"{batch.folder}/{tables[0]}", expected, table, because=f"as {SUMMARY_FILE} repeats it"
    )


def _provenance_differences(
    batch: StoredBatch, provenance: Any, contents: Mapping[str, bytes], rows: list[dict[str, str]]
) -> Iterator[FileDifference]:
    try:
        listed = {
            attempt["record"]: trial["trial"]
            for trial in provenance["trials"]
            for attempt in trial.get("attempts", ())
        }
    except (KeyError, TypeError, AttributeError):
        return  # the rebuild reports an unreadable provenance
    path, known = batch.records_file(), set[str]()
    for part in batch_records.records_files(batch, contents):
        for number, record in records_jsonl.read(contents[part]):
            if isinstance(record, record_json.CorruptRecord):
                line = contents[part].split(b"\n")[number - 1]
            else:
                line = record_json.to_line(record).encode()  # the form that its digest covers
            digest = bytes_digest(line)
            if digest in known:
                continue
            known.add(digest)
            if digest not in listed:
                values: Mapping[str, Any] = {}
                with suppress(RejectedInput):
                    values = parse_untrusted_object(line)
                trial = str(values.get("trial", ""))
                message = (
                    f"must be a record that {PROVENANCE_FILE} knows, got one with the digest {digest[:19]}"
                )
                yield FileDifference(part, trial or f"line {number}", "", message)
                own = [row for row in rows if row.get("trial") == trial]
                yield from _column_differences(part, values, own)
    for digest in sorted(listed.keys() - known):
        message = f"must be there with the digest {digest[:19]} by {PROVENANCE_FILE}, and is not"
        yield FileDifference(path, str(listed[digest]), "", message)


def _column_differences(
    path: str, values: Mapping[str, Any], rows: list[dict[str, str]]
) -> Iterator[FileDifference]:
    """Compare the text members of a record with the summary row of a trial that has one attempt."""
    if len(rows) != 1 or rows[0].get("attempts") != "1":
        return
    for column in REPEATED_COLUMNS:
        must, got = rows[0].get(column, ""), values.get(column) or ""
        if must != got:
            message = f"must be {must!r} as {SUMMARY_FILE} repeats it, got {got!r}"
            yield FileDifference(path, rows[0]["trial"], column, message)
