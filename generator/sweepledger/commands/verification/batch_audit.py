"""What recorded batches say of themselves, held against each other: overlay, lock, table, records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from generator.commands import past, recorded
from generator.commands.differing import Difference, differences
from generator.errors import RepositoryError
from generator.formats import lock, record
from generator.formats.lock import LOCK_FILE
from generator.formats.record import Corrupt
from generator.render.naming import batch_digest
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import Entry, Repository
from generator.results import results_folder
from generator.results.provenance import PROVENANCE_FILE
from generator.results.tree import RESULTS
from generator.structs.record import ExpectedTrial, Record
from generator.structs.tree import FileTree
from generator.structs.values import bytes_digest

PLAIN_MODE = "100644"
RECORDS = "records"


@dataclass(frozen=True)
class Audit:
    """A commit, and where to look for what stood before."""

    repository: Repository
    commit: str

    def batch(self, batch: StoredBatch) -> Iterator[Difference]:
        """Hold a batch's files against its lock, the lock against the batch's name, the trials' ids."""
        path = f"{batch.folder}/{LOCK_FILE}"
        try:
            held = batch.lock
        except RepositoryError as error:
            yield Difference(path, "", "", str(error).removeprefix(f"{path}").lstrip(": "))
            yield from self._as_it_was(batch, LOCK_FILE, lambda content: _is_lock_of(batch.name, content))
            return
        drift = batch.hand_edits()
        for name in (*drift.added, *drift.changed):
            said = held.files[name]
            told = list(self._as_it_was(batch, name, _digests_to(said)))
            got = bytes_digest(batch.tree[name]) if name in batch.tree.files else "nothing"
            yield from told or [
                Difference(
                    f"{batch.folder}/{name}", "", "", f"must have the digest {said} by the lock, got {got}"
                )
            ]
        for name in drift.added:
            yield Difference(path, "", f"files.{name}", "must name a file that is there, and does not")
        for name in drift.stale:
            yield Difference(f"{batch.folder}/{name}", "", "", "must not be there by the lock, and is")
        yield from self._rows(batch)
        if not drift:
            yield from self._lock(batch)

    def _lock(self, batch: StoredBatch) -> Iterator[Difference]:
        """The batch's name ends in the digest of all of it."""
        path, held = f"{batch.folder}/{LOCK_FILE}", batch.lock
        digest = batch_digest(batch.tree, held.name, held.digest)
        if held.name == batch.name and digest == held.digest and _ends_in(batch.name, digest):
            return
        told = list(self._as_it_was(batch, LOCK_FILE, lambda content: _fits(batch, content)))
        message = (
            f"must be of {batch.name}, whose files have the digest {digest[:19]}, got {held.digest[:19]}"
        )
        yield from told or [Difference(path, "", "digest", message)]

    def _rows(self, batch: StoredBatch) -> Iterator[Difference]:
        try:
            rows = zip(batch.rows, batch.trials, strict=True)
        except (RepositoryError, KeyError, ValueError) as error:
            yield Difference(batch.folder, "", "", str(error))
            return
        for row, trial in rows:
            if row.trial != trial.id:
                message = f"must be {trial.id} by its values and program, got {row.trial}"
                yield Difference(batch.folder, row.trial, "trial", message)
        if len(batch.rows) != batch.lock.trials:
            message = f"must have {batch.lock.trials} trials by the lock, got {len(batch.rows)}"
            yield Difference(batch.folder, "", "", message)

    def _as_it_was(
        self, batch: StoredBatch, name: str, is_it: Callable[[bytes], bool]
    ) -> tuple[Difference, ...]:
        """Compare a file with the version in history that fits; of none nothing can be said."""
        places = [f"{place}/{batch.name}/{name}" for place in (ARCHIVE, ACTIVE)]
        found = past.earlier(self.repository, self.commit, places, is_it)
        if found is None:
            return ()
        commit, content = found
        because = f"as in commit {commit[:12]}"
        return differences(f"{batch.folder}/{name}", content, batch.tree.files.get(name), because=because)

    def inputs(self, sweep: str, held: Mapping[str, Entry]) -> Iterator[Difference]:
        """Compare what results were made of with the same files in the commit that brought the results."""
        folder = results_folder(sweep)
        origin = past.brought(self.repository, self.commit, f"{folder}/{PROVENANCE_FILE}")
        if origin is None or origin == self.commit:
            return
        then, now = (
            inputs_of(sweep, files) for files in (self.repository.files(origin, RESULTS, ARCHIVE), held)
        )
        changed = sorted(path for path in {*then, *now} if then.get(path) != now.get(path))
        contents = self.repository.blobs(
            entry.id for part in (then, now) for path in changed if (entry := part.get(path))
        )
        for path in changed:
            must, got = (contents[entry.id] if (entry := part.get(path)) else None for part in (then, now))
            yield from differences(path, must, got, because=f"as commit {origin[:12]} summarised it")


def inputs_of(sweep: str, files: Mapping[str, Entry]) -> dict[str, Entry]:
    """Choose the files that a sweep's results are made of: records, and the overlays that have some."""
    folder = f"{results_folder(sweep)}/{RECORDS}/"
    found = {path: entry for path, entry in files.items() if path.startswith(folder)}
    overlays = {f"{ARCHIVE}/{path.removeprefix(folder).removesuffix('.jsonl')}" for path in found}
    archived = {path: entry for path, entry in files.items() if path.startswith(f"{ARCHIVE}/")}
    return found | {
        path: entry for path, entry in archived.items() if "/".join(path.split("/")[:3]) in overlays
    }


def records(batch: StoredBatch, content: bytes) -> Iterator[Difference]:
    """Say which records of a batch cannot be read, or are none of its trials'."""
    path = recorded.records_file(batch)
    try:
        rows = {trial.index: trial for trial in recorded.expected(batch)}
        data = None if batch.lock.program.data is None else batch.lock.program.data.digest
        code = batch.lock.program.code.tree
    except (RepositoryError, KeyError, ValueError):
        return  # the overlay has been told of
    lines = content.decode(errors="replace").split("\n")
    for number, line in enumerate(lines, start=1):
        found = record.from_line(line) if line else None
        if isinstance(found, Corrupt):
            yield Difference(path, f"line {number}", "", f"must be a record, got one that is {found.reason}")
        elif found is not None:
            yield from _belongs(path, found, rows.get(found.index), (batch.name, code, data))


def _belongs(
    path: str, found: Record, row: ExpectedTrial | None, of: tuple[str, str, str | None]
) -> Iterator[Difference]:
    if row is None:
        yield Difference(path, found.trial, "index", f"must be a row of the table, got {found.index}")
        return
    must = dict(zip(("trial", "row", "batch", "code", "data"), (row.trial, row.row, *of), strict=True))
    for column, value in must.items():
        if getattr(found, column) != value:
            message = f"must be {value!r} by the table and its lock, got {getattr(found, column)!r}"
            yield Difference(path, row.trial, column, message)


def modes(held: Mapping[str, Entry]) -> Iterator[Difference]:
    """Say which files are links, or programs: the collector writes none."""
    for path, entry in held.items():
        if entry.mode != PLAIN_MODE:
            yield Difference(path, "", "", f"must have the mode {PLAIN_MODE}, got {entry.mode}")


def _digests_to(digest: str) -> Callable[[bytes], bool]:
    return lambda content: bytes_digest(content) == digest


def _ends_in(name: str, digest: str) -> bool:
    return name.endswith(f"-{digest.removeprefix('sha256:')[:8]}")


def _is_lock_of(name: str, content: bytes) -> bool:
    try:
        held = lock.read(content)
    except ValueError:
        return False
    return held.name == name and _ends_in(name, held.digest)


def _fits(batch: StoredBatch, content: bytes) -> bool:
    """Tell whether a lock is the one that a batch's other files were named with."""
    if not _is_lock_of(batch.name, content):
        return False
    tree, held = FileTree({**batch.tree.files, LOCK_FILE: content}), lock.read(content)
    return batch_digest(tree, held.name, held.digest) == held.digest
