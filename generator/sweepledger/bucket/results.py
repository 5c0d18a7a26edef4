"""Results in a bucket for their readers: records of trials, files of attempts, and batches to delete.

The methods are those of a volume (`repo/results_volume.py`). Anybody who can write to the bucket can choose keys, so
keys are not trusted: content counts if it has the digest in its key, and a record counts for the collector only if
the cluster or a seal confirms that digest.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from sweepledger.bucket import layout, transfer
from sweepledger.bucket.layout import ObjectKind, ObjectName, StoredFile
from sweepledger.bucket.objects import Bucket
from sweepledger.errors import StorageError
from sweepledger.formats import record_json
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import DELETING_PREFIX
from sweepledger.structs.record import LARGEST_TRIAL_FILE

MOST_LISTED = 1_000_000
"""Objects in a list of records: ten attempts of the largest batch."""
AHEAD = 256
"""Trials whose records are fetched at the same time: at most 8 MiB of valid records."""
MARK = "deleting"


@dataclass
class RecordObjects:
    """The records of one batch: one list, then one request for each record, many at a time."""

    bucket: Bucket
    batch: str
    key: bytes | None = None
    """The key of seals; None: nothing is sealed."""
    digests: dict[tuple[int, str], str] = field(default_factory=dict)
    """SHA-256 of the records that were read, by trial and attempt."""
    sealed: set[tuple[int, str]] = field(default_factory=set)
    """Those with the seal of a sidecar."""
    _ahead: dict[int, list[bytes | None]] = field(default_factory=dict)

    @cached_property
    def _listed(self) -> dict[int, list[tuple[ObjectName, int]]]:
        """The records by trial, sealed ones first, up to the number that counts."""
        listed: dict[int, list[tuple[ObjectName, int]]] = {}
        for number, found in enumerate(self.bucket.list(layout.prefix(self.batch, ObjectKind.RECORD))):
            if number >= MOST_LISTED:
                raise StorageError(
                    f"{self.bucket.url}/{self.batch}: must have at most {MOST_LISTED} records, got more",
                    hint="something fills the bucket; see docs/decisions/0015-object-storage.md",
                )
            name = layout.parse(self.batch, ObjectKind.RECORD, found.key)
            if name is None:
                continue
            of_trial = listed.setdefault(name.index, [])
            if len(of_trial) < record_json.MOST_RECORDS + record_json.MOST_COUNTED or self._has_seal(name):
                of_trial.append((name, found.bytes))
        for index, of_trial in listed.items():
            of_trial.sort(key=lambda found: (not self._has_seal(found[0]), found[0].key))
            listed[index] = of_trial[: record_json.MOST_RECORDS + record_json.MOST_COUNTED]
        return listed

    def _has_seal(self, name: ObjectName) -> bool:
        return self.key is not None and name.is_sealed(self.key)

    @cached_property
    def begun(self) -> list[int]:
        """The trials with a record, sorted."""
        return sorted(self._listed)

    def records(self, index: int) -> Iterator[bytes | None]:
        """Yield the records of a trial, as `volume.attempt_records` does. Raises StorageError.

        Read trials in ascending order if possible: the following ones are fetched at the same time.
        """
        if index not in self._ahead and index in self._listed:
            self._ahead = {}
            self._fetch(index)
        yield from self._ahead.pop(index, ())

    def _fetch(self, first: int) -> None:
        start = bisect_left(self.begun, first)
        wanted: list[ObjectName] = []
        for index in self.begun[start : start + AHEAD]:
            before, room = len(wanted), record_json.MOST_RECORD_BYTES
            versions = Counter(name.uid for name, _ in self._listed[index])
            for name, size in self._listed[index][: record_json.MOST_RECORDS]:
                if room < 0:
                    break
                # A sidecar writes one record: of several, only the one with a seal can be told from the others.
                is_clear = versions[name.uid] == 1 or self._has_seal(name)
                if is_clear and size <= LARGEST_TRIAL_FILE:
                    wanted.append(name)
                    room -= size
            unread = len(self._listed[index]) - (len(wanted) - before)
            self._ahead[index] = [record_json.UNREAD] * unread
        for name, content in zip(wanted, self.bucket.get_all(name.key for name in wanted), strict=True):
            if content is not None and layout.digest(content) != name.sha256:
                content = None  # noqa: PLW2901 - it is not what its key says
            if content is not None:
                self.digests[name.index, name.uid] = name.sha256
                self.sealed |= {(name.index, name.uid)} if self._has_seal(name) else set()
            self._ahead[name.index].append(content)


@dataclass
class BucketResults:
    """The results of all batches in a bucket."""

    bucket: Bucket
    key: bytes | None = None
    _batches: dict[str, RecordObjects] = field(default_factory=dict)
    _known: frozenset[str] | None = None
    """The batches that had anything in the bucket when this was first asked: an archive has many without."""

    @property
    def counts_alone(self) -> bool:
        """Whether a record can count after its pod is gone; this needs seals."""
        return self.key is not None

    @property
    def is_common(self) -> bool:
        """Whether a failure for one batch means a failure for all; no, as other batches may use other stores."""
        return False

    def thresholds(self, batch: str, place: str, digest: str) -> str | None:  # noqa: ARG002
        """Return None: thresholds are files of an attempt, which the collector does not read."""
        return None

    def has_every_trial(self, lock: BatchLock) -> bool:  # noqa: ARG002 - to ask is to list
        """Return True: missing trials are found when the records are read."""
        return True

    def batch(self, name: str) -> RecordObjects:
        """Return the records of a batch, listed once."""
        return self._batches.setdefault(name, RecordObjects(self.bucket, name, self.key))

    def records(self, batch: str, index: int, place: str = "") -> Iterator[bytes | None]:  # noqa: ARG002 - of a folder
        """Yield the records of a trial; see `RecordObjects.records`. The batch may be marked as being deleted."""
        return self.batch(batch.removeprefix(DELETING_PREFIX)).records(index)

    def unconfirmed(self, batch: str) -> Mapping[tuple[int, str], str]:
        """Return the SHA-256 of the records that were read and have no seal, by trial and attempt."""
        read = self.batch(batch)
        return {attempt: sha256 for attempt, sha256 in read.digests.items() if attempt not in read.sealed}

    def has_begun(self, batch: str) -> bool:
        """Return whether a trial of the batch has left anything. Raises StorageError."""
        return any(True for _ in self.bucket.list(f"{batch}/"))

    def last_change(self, batch: str) -> float | None:
        """Return when the newest record was written, by the bucket's clock; None without one."""
        if self._known is None:
            self._known = frozenset(self.bucket.folders())
        if batch not in self._known:
            return None
        listed = self.bucket.list(layout.prefix(batch, ObjectKind.RECORD))
        return max((found.changed for found in listed), default=None)

    def files(self, batch: str, index: int, uid: str) -> dict[str, StoredFile]:
        """Return the files of an attempt by path, from the newest list if there are several.

        Raises StorageError.
        """
        listed = [
            (name.is_sealed(self.key), found.changed, name)
            for found in self.bucket.list(f"{layout.prefix(batch, ObjectKind.FILES, index)}{uid}/")
            if (name := layout.parse(batch, ObjectKind.FILES, found.key)) is not None and name.uid == uid
        ]
        for is_sealed, _, name in sorted(listed, key=lambda row: (row[0], row[1], row[2].key), reverse=True):
            files = transfer.read_list(self.bucket, name) if is_sealed else None
            if files is not None:
                return {file.path: file for file in files}
        return {}

    @contextmanager
    def opened(self, batch: str, index: int, path: str, *, uid: str) -> Iterator["ObjectSource"]:
        """Open a file of an attempt. Raises StorageError."""
        file = self.files(batch, index, uid).get(path)
        if file is None:
            raise StorageError(
                f"{self.bucket.url}/{batch}: attempt {uid} of row {index} has no file {path!r}",
                hint="its pod ended before it was saved, or it has expired",
            )
        ((_, chunks),) = transfer.contents(self.bucket, batch, index, [file])
        yield ObjectSource(chunks)

    def output(self, batch: str, index: int) -> dict[str, tuple[str, str]]:
        """Return standard output and standard error of each attempt, by pod uid. Raises StorageError."""
        outputs: dict[str, tuple[str, str]] = {}
        for uid in sorted({name.uid for name in transfer.names(self.bucket, batch, ObjectKind.FILES, index)}):
            files = self.files(batch, index, uid)
            named = {kind: files.get(f"{uid}.{kind}") for kind in ("out", "err")}
            shown = {kind: file for kind, file in named.items() if file and file.bytes <= LARGEST_TRIAL_FILE}
            stored = transfer.contents(self.bucket, batch, index, shown.values())
            texts = [b"".join(chunks).decode(errors="replace") for _, chunks in stored]
            if shown:
                read = dict(zip(shown, texts, strict=True))
                outputs[uid] = (read.get("out", ""), read.get("err", ""))
        return outputs

    # ------------------------------------------------------------------------------- what `sweep cluster expire` calls

    @property
    def place(self) -> str:
        """The address, for messages."""
        return self.bucket.url

    @property
    def identity(self) -> str:
        """An identifier that is equal for two names of the same bucket."""
        return self.bucket.url

    def names(self) -> tuple[str, ...]:
        """Return the names of batches and of deletion marks. Raises StorageError."""
        return self.bucket.folders()

    def has_folder(self, name: str) -> bool:
        """Return whether there are objects of a batch, under its own name or marked as being deleted."""
        batch = name.removeprefix(DELETING_PREFIX)
        is_marked = self.bucket.get(_mark(batch)) is not None
        return is_marked if name != batch else not is_marked and self.has_begun(batch)

    def newest(self, name: str) -> float:
        """Return when the newest object of a batch was written, by the bucket's clock."""
        listed = self.bucket.list(f"{name.removeprefix(DELETING_PREFIX)}/")
        return max((found.changed for found in listed), default=0.0)

    def move(self, name: str, to: str) -> None:
        """Mark a batch as being deleted, or remove the mark: objects cannot be renamed."""
        if to.startswith(DELETING_PREFIX):
            self.bucket.put(_mark(name), b"")
        else:
            self.bucket.delete([_mark(to)])
        self._batches.pop(name.removeprefix(DELETING_PREFIX), None)

    def remove(self, name: str) -> None:
        """Delete the objects of a batch, its records last, then its mark. Raises StorageError."""
        batch = name.removeprefix(DELETING_PREFIX)
        for kind in (layout.CHUNKS, ObjectKind.FILES, ObjectKind.CHECKPOINT, ""):
            self.bucket.delete(found.key for found in self.bucket.list(f"{batch}/{kind}"))
        self.bucket.delete([_mark(batch)])
        self._batches.pop(batch, None)


def _mark(batch: str) -> str:
    return f"{DELETING_PREFIX}{batch}/{MARK}"


class ObjectSource:
    """The content of a stored file, with the interface of an open file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, at most `size`; empty at the end. Raises StorageError."""
        if size < 0:
            content, self._rest = self._rest + b"".join(self._chunks), b""
            return content
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = chunk
        content, self._rest = self._rest[:size], self._rest[size:]
        return content
