"""Recorded batches, each compared with its lock, its table, its records and the summary."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.commands.repository import at_commit, batch_records
from sweepledger.commands.verification.file_diff import FileDifference, cells_of, file_differences
from sweepledger.errors import RepositoryError
from sweepledger.formats import batch_yaml, record_json
from sweepledger.formats.batch_yaml import LOCK_FILE
from sweepledger.formats.hyperparams_csv import REPLICATE_COLUMN
from sweepledger.formats.record_json import CorruptRecord
from sweepledger.formats.summary_csv import PARAMETER_PREFIX, SUMMARY_FILE
from sweepledger.render.overlay import batch_digest
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import Entry, Repository
from sweepledger.results.paths import results_folder
from sweepledger.results.provenance import PROVENANCE_FILE
from sweepledger.results.tree import RESULTS
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.record import ExpectedTrial, Record
from sweepledger.structs.values import bytes_digest

PLAIN_MODE = "100644"
RECORDS = "records"


@dataclass(frozen=True)
class BatchAudit:
    """A commit, and where to look for what stood before."""

    repository: Repository
    commit: str

    def batch(self, batch: StoredBatch) -> Iterator[FileDifference]:
        """Hold a batch's files against its lock, the lock against the batch's name, the trials' ids."""
        path = f"{batch.folder}/{LOCK_FILE}"
        try:
            held = batch.lock
        except RepositoryError as error:
            yield FileDifference(path, "", "", str(error).removeprefix(f"{path}").lstrip(": "))
            yield from self._as_it_was(batch, LOCK_FILE, lambda content: _is_lock_of(batch.name, content))
            return
        drift = batch.hand_edits()
        for name in (*drift.added, *drift.changed):
            said = held.files[name]
            told = list(self._as_it_was(batch, name, _digests_to(said)))
            got = bytes_digest(batch.tree[name]) if name in batch.tree.files else "nothing"
            yield from told or [
                FileDifference(
                    f"{batch.folder}/{name}", "", "", f"must have the digest {said} by the lock, got {got}"
                )
            ]
        for name in drift.added:
            yield FileDifference(path, "", f"files.{name}", "must name a file that is there, and does not")
        for name in drift.stale:
            yield FileDifference(f"{batch.folder}/{name}", "", "", "must not be there by the lock, and is")
        yield from self._rows(batch)
        if not drift:
            yield from self._lock(batch)

    def _lock(self, batch: StoredBatch) -> Iterator[FileDifference]:
        """The batch's name ends in the digest of all of it."""
        path, held = f"{batch.folder}/{LOCK_FILE}", batch.lock
        digest = batch_digest(batch.tree, held.name, held.digest)
        if held.name == batch.name and digest == held.digest and _ends_in(batch.name, digest):
            return
        told = list(self._as_it_was(batch, LOCK_FILE, lambda content: _fits(batch, content)))
        message = (
            f"must be of {batch.name}, whose files have the digest {digest[:19]}, got {held.digest[:19]}"
        )
        yield from told or [FileDifference(path, "", "digest", message)]

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

    def _as_it_was(
        self, batch: StoredBatch, name: str, is_it: Callable[[bytes], bool]
    ) -> tuple[FileDifference, ...]:
        """Compare a file with the version in history that fits; of none nothing can be said."""
        places = [f"{place}/{batch.name}/{name}" for place in (ARCHIVE, ACTIVE)]
        found = at_commit.earlier_version(self.repository, self.commit, places, is_it)
        if found is None:
            return ()
        commit, content = found
        because = f"as in commit {commit[:12]}"
        return file_differences(
            f"{batch.folder}/{name}", content, batch.tree.files.get(name), because=because
        )

    def inputs(self, sweep: str, held: Mapping[str, Entry]) -> Iterator[FileDifference]:
        """Compare what results were made of with the same files in the commit that brought the results."""
        folder = results_folder(sweep)
        origin = at_commit.commit_of_version(self.repository, self.commit, f"{folder}/{PROVENANCE_FILE}")
        if origin is None or origin == self.commit:
            return
        then, now = (
            summary_inputs(sweep, files) for files in (self.repository.files(origin, RESULTS, ARCHIVE), held)
        )
        changed = sorted(path for path in {*then, *now} if then.get(path) != now.get(path))
        contents = self.repository.blobs(
            entry.id for part in (then, now) for path in changed if (entry := part.get(path))
        )
        for path in changed:
            must, got = (contents[entry.id] if (entry := part.get(path)) else None for part in (then, now))
            yield from file_differences(path, must, got, because=f"as commit {origin[:12]} summarised it")


def summary_inputs(sweep: str, files: Mapping[str, Entry]) -> dict[str, Entry]:
    """Choose the files that a sweep's results are made of: records, and the overlays that have some."""
    folder = f"{results_folder(sweep)}/{RECORDS}/"
    found = {path: entry for path, entry in files.items() if path.startswith(folder)}
    overlays = {f"{ARCHIVE}/{path.removeprefix(folder).removesuffix('.jsonl')}" for path in found}
    archived = {path: entry for path, entry in files.items() if path.startswith(f"{ARCHIVE}/")}
    return found | {
        path: entry for path, entry in archived.items() if "/".join(path.split("/")[:3]) in overlays
    }


def record_differences(batch: StoredBatch, content: bytes) -> Iterator[FileDifference]:
    """Say which records of a batch cannot be read, or are none of its trials'."""
    path = batch_records.records_file(batch)
    try:
        rows = {trial.index: trial for trial in batch_records.expected_trials(batch)}
        data = None if batch.lock.program.data is None else batch.lock.program.data.digest
        code = batch.lock.program.code.tree
    except (RepositoryError, KeyError, ValueError):
        return  # the overlay has been told of
    lines = content.decode(errors="replace").split("\n")
    for number, line in enumerate(lines, start=1):
        found = record_json.from_line(line) if line else None
        if isinstance(found, CorruptRecord):
            yield FileDifference(
                path, f"line {number}", "", f"must be a record, got one that is {found.reason}"
            )
        elif found is not None:
            yield from _belongs(path, found, rows.get(found.index), (batch.name, code, data))


def _belongs(
    path: str, found: Record, row: ExpectedTrial | None, of: tuple[str, str, str | None]
) -> Iterator[FileDifference]:
    if row is None:
        yield FileDifference(path, found.trial, "index", f"must be a row of the table, got {found.index}")
        return
    must = dict(zip(("trial", "row", "batch", "code", "data"), (row.trial, row.row, *of), strict=True))
    for column, value in must.items():
        if getattr(found, column) != value:
            message = f"must be {value!r} by the table and its lock, got {getattr(found, column)!r}"
            yield FileDifference(path, row.trial, column, message)


def mode_differences(held: Mapping[str, Entry]) -> Iterator[FileDifference]:
    """Say which files are links, or programs: the collector writes none."""
    for path, entry in held.items():
        if entry.mode != PLAIN_MODE:
            yield FileDifference(path, "", "", f"must have the mode {PLAIN_MODE}, got {entry.mode}")


def _digests_to(digest: str) -> Callable[[bytes], bool]:
    return lambda content: bytes_digest(content) == digest


def _ends_in(name: str, digest: str) -> bool:
    return name.endswith(f"-{digest.removeprefix('sha256:')[:8]}")


def _is_lock_of(name: str, content: bytes) -> bool:
    try:
        held = batch_yaml.read(content)
    except ValueError:
        return False
    return held.name == name and _ends_in(name, held.digest)


def _fits(batch: StoredBatch, content: bytes) -> bool:
    """Return whether a lock is the one that a batch's other files were named with."""
    if not _is_lock_of(batch.name, content):
        return False
    tree, held = FileTree({**batch.tree.files, LOCK_FILE: content}), batch_yaml.read(content)
    return batch_digest(tree, held.name, held.digest) == held.digest


REPEATED_COLUMNS = ("status", "reason", "ran", "started", "finished")
"""Members of a record that the summary shows as they are."""


def summary_differences(
    sweep: str, done: tuple[StoredBatch, ...], contents: Mapping[str, bytes]
) -> Iterator[FileDifference]:
    """Hold tables and records of recorded batches against what the summary, itself unproven, says of them."""
    folder = results_folder(sweep)
    rows = _summary_rows(contents.get(f"{folder}/{SUMMARY_FILE}", b"").decode(errors="replace"))
    provenance = _provenance_batches(contents.get(f"{folder}/{PROVENANCE_FILE}", b""))
    for batch in done:
        yield from _table_differences(batch, rows)
        content = contents.get(batch_records.records_file(batch), b"")
        yield from _provenance_differences(batch, provenance.get(batch.name), content, rows)
    for name in sorted(provenance.keys() - {batch.name for batch in done}):
        message = f"must be there by {PROVENANCE_FILE}, and is missing"
        yield FileDifference(f"{folder}/records/{name}.jsonl", "", "", message)


def _table_differences(batch: StoredBatch, rows: list[dict[str, str]]) -> Iterator[FileDifference]:
    """Compare a table that is not the lock's, cell by cell. One in several files is told of as a whole."""
    tables = [path for path in batch.hand_edits().changed if path.endswith(".csv")]
    if len(tables) != 1 or "hyperparams.csv" not in tables:
        return
    found = batch.tree[tables[0]]
    head = found.split(b"\n", maxsplit=1)[0].decode(errors="replace").split(",")
    mine = [row for row in rows if row.get("batch") == batch.name]
    lines = [",".join(_repeated(row, name) for name in head) for row in mine]
    wanted = "".join(f"{line}\n" for line in (",".join(head), *lines)).encode()
    yield from file_differences(
        f"{batch.folder}/{tables[0]}", wanted, found, because=f"as {SUMMARY_FILE} repeats it"
    )


def _repeated(row: Mapping[str, str], name: str) -> str:
    if name in {"trial", REPLICATE_COLUMN}:
        return row.get(name, "")
    # A spreadsheet's guard against formulas is the summary's own.
    return row.get(f"{PARAMETER_PREFIX}{name}", "").replace("\"'", '"', 1)


def _provenance_differences(
    batch: StoredBatch, provenance: Any, content: bytes, rows: list[dict[str, str]]
) -> Iterator[FileDifference]:
    """Say which records are not those that the provenance was made of."""
    try:
        listed = {
            attempt["record"]: trial["trial"]
            for trial in provenance["trials"]
            for attempt in trial.get("attempts", ())
        }
    except (KeyError, TypeError, AttributeError):
        return  # it was told of as what it is
    path, known = batch_records.records_file(batch), set[str]()
    for number, line in enumerate(content.split(b"\n"), start=1):
        digest = bytes_digest(line)
        if not line or digest in known:
            continue
        known.add(digest)
        if digest not in listed:
            message = f"must be a record that {PROVENANCE_FILE} knows, got one with the digest {digest[:19]}"
            trial, values = _parse_record(line)
            yield FileDifference(path, trial or f"line {number}", "", message)
            yield from _column_differences(path, values, [row for row in rows if row.get("trial") == trial])
    for digest in sorted(listed.keys() - known):
        message = f"must be there with the digest {digest[:19]} by {PROVENANCE_FILE}, and is not"
        yield FileDifference(path, str(listed[digest]), "", message)


def _column_differences(
    path: str, values: Mapping[str, Any], rows: list[dict[str, str]]
) -> Iterator[FileDifference]:
    """Compare what a record says in words with its trial's one row, as far as both say it."""
    if len(rows) != 1 or rows[0].get("attempts") != "1":
        return
    for column in REPEATED_COLUMNS:
        must, got = rows[0].get(column, ""), values.get(column) or ""
        if must != got:
            message = f"must be {must!r} as {SUMMARY_FILE} repeats it, got {got!r}"
            yield FileDifference(path, rows[0]["trial"], column, message)


def _parse_record(line: bytes) -> tuple[str, Mapping[str, Any]]:
    """Return a record's trial and members; nothing of a line that is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "", {}
    return (str(found.get("trial", "")), found) if isinstance(found, dict) else ("", {})


def _provenance_batches(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)["batches"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _summary_rows(text: str) -> list[dict[str, str]]:
    lines = cells_of(text)
    return [dict(zip(lines[0], cells, strict=False)) for cells in lines[1:]] if lines else []
