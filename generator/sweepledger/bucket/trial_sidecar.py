"""The work of a pod's sidecar for one trial; docs/launcher.md has the contract.

Before the launcher starts it restores earlier records, `$SWEEP_CHECKPOINTS` and `$SWEEP_PARENT` from the bucket.
It saves checkpoints while the program runs, and everything else once the launcher has written the record, or at
SIGTERM. Its termination message says which records it has seen in the bucket.
"""

import json
import os
import select
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweepledger.bucket import transfer
from sweepledger.bucket.layout import ObjectKind, ObjectName
from sweepledger.bucket.objects import Bucket
from sweepledger.errors import StorageError
from sweepledger.safe_open import read_regular
from sweepledger.storage import remove_folder, write_file

if TYPE_CHECKING:
    from sweepledger.structs.record import Record

LOOK_SECONDS = 0.1
"""Between two looks for the record."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds between attempts at a step that failed."""
MOST_EARLIER = 30
"""Earlier records that are restored: more than attempts and disruptions of a trial; they fit the message."""
MESSAGE_BYTES = 4095
STEPS = frozenset({"record", "checkpoint", "files"})
"""What there is to save."""
LEAVE_SECONDS = 1.0
"""Of the grace period, for the message."""
DATA_SECONDS = 300.0
"""Of copying a dataset, after which the container ends and its next start goes on; a deleted pod waits so long."""
LARGEST_RECORD_FILE = 1 << 20
"""Bytes of a record, as `record_json.LARGEST_TRIAL_FILE`."""


def _option(variable: str, kind: Callable[[str], Any] = str, default: Any = MISSING) -> Any:
    """Return an option that is read from a variable of the environment; without a default it must be set."""
    return field(default=default, metadata={"variable": variable, "kind": kind})


def _needed(given: Mapping[str, str], name: str, kind: Callable[[str], Any] = str) -> Any:
    if not given.get(name):
        raise ValueError(f"the environment variable {name} must be set")
    try:
        return kind(given[name])
    except ValueError:
        raise ValueError(f"{name} must be a number, got {given[name]!r}") from None


@dataclass(frozen=True)
class SidecarOptions:
    """The options of a pod's sidecar, from environment variables."""

    url: str = _option("SWEEP_STORE_URL")
    batch: str = _option("SWEEP_BATCH")
    index: int = _option("JOB_COMPLETION_INDEX", int)
    """`SWEEP_INDEX` if it is set."""
    uid: str = _option("SWEEP_POD_UID")
    results: str = _option("SWEEP_RESULTS")
    """The folder that the launcher writes to."""
    state: str = _option("SWEEP_STORE_STATE")
    """A folder that only the sidecar has."""
    secrets: Path | None = None
    key: bytes | None = None
    rank: int = _option("SWEEP_RANK", int, 0)
    """Number of the pod within its trial: only that of rank 0 saves anything."""
    parent: tuple[str, int] | None = None
    """Batch and index of the trial whose checkpoints `parent_folder` gets."""
    parent_folder: str = ""
    data: tuple[str, str] | None = None
    """The folder of the bucket with the trial's dataset, or those of several, and the digest."""
    data_folder: str = _option("SWEEP_DATA", default="/sweep/data")
    most_data_bytes: int = _option("SWEEP_STORE_DATA_BYTES", int, 0)
    keep_checkpoints: bool = _option("SWEEP_STORE_KEEP_CHECKPOINTS", "true".__eq__, default=False)
    interval: float = _option("SWEEP_STORE_INTERVAL", float, 60.0)
    """Seconds between two looks for a new checkpoint."""
    grace: float = _option("SWEEP_STORE_GRACE", float, 25.0)
    """Seconds after SIGTERM in which everything must be saved."""
    patience: float = _option("SWEEP_STORE_PATIENCE", float, 45.0)
    """Seconds of waiting for a bucket, before the container ends and is started again."""
    most_bytes: int = _option("SWEEP_STORE_MOST_BYTES", int, 64 << 30)
    """Of the files of a trial."""
    log: str = _option("SWEEP_TERMINATION_LOG", default="/dev/termination-log")
    rows: range | None = None
    """The trials of the pod, if there are several; `index` is that of the pod then."""

    def of_row(self, row: int) -> "SidecarOptions":
        """Return the options of one trial of a pack."""
        folder = f"{self.results}/{row}"
        return replace(self, index=row, uid=f"{self.uid}-{row}", results=folder, rows=None, data=None)

    @classmethod
    def from_environment(cls, given: Mapping[str, str]) -> "SidecarOptions":
        """Return the options. Raises ValueError that names the variable."""
        if index := given.get("SWEEP_INDEX"):
            given = {**given, "JOB_COMPLETION_INDEX": index}
        secrets, key = given.get("SWEEP_STORE_SECRETS"), given.get("SWEEP_STORE_KEY_FILE")
        values: dict[str, Any] = {
            "secrets": Path(secrets) if secrets else None,
            "key": read_key(key) if key else None,
        }
        for option in fields(cls):
            name = option.metadata.get("variable")
            if name is not None and (given.get(name) or option.default is MISSING):
                values[option.name] = _needed(given, name, option.metadata["kind"])

        if parent := given.get("SWEEP_PARENT_FOLDER"):
            batch, _, row = parent.rpartition("/")
            if not batch or not row.isdecimal():
                raise ValueError(f"SWEEP_PARENT_FOLDER must be BATCH/INDEX, got {parent!r}")
            values |= {"parent": (batch, int(row)), "parent_folder": _needed(given, "SWEEP_PARENT")}
        if data := given.get("SWEEP_STORE_DATA"):
            values["data"] = data, _needed(given, "SWEEP_STORE_DATA_DIGEST")
        if given.get("SWEEP_STORE_PACK"):
            own, pack = values["index"], _needed(given, "SWEEP_STORE_PACK", int)
            trials = _needed(given, "SWEEP_STORE_TRIALS", int)
            values["rows"] = range(own * pack, min((own + 1) * pack, trials))
        return cls(**values)


def read_key(path: str) -> bytes:
    """Return the key for seals from a file. Raises ValueError."""
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise ValueError(f"SWEEP_STORE_KEY_FILE: {path}: {error.strerror}") from error
    if len(key) < 32:  # noqa: PLR2004 - as many as the digest has
        raise ValueError(f"SWEEP_STORE_KEY_FILE: {path}: must have at least 32 bytes, got {len(key)}")
    return key


class Stop:
    """A request to stop, and the time left to save."""

    def __init__(self) -> None:
        self.until = float("inf")
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def request(self, grace: float) -> None:
        """Ask to stop; only the first request counts. Safe in a signal handler."""
        if not self.is_requested:
            self.until = time.monotonic() + grace
            os.write(self._writer, b"x")

    @property
    def is_requested(self) -> bool:
        """Whether a stop was requested."""
        return self.until != float("inf")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until a request or for some time; return whether there was a request."""
        select.select([self._reader], [], [], seconds)
        return self.is_requested

    @property
    def seconds_left(self) -> float:
        """Seconds until the grace period ends."""
        return self.until - time.monotonic()


@dataclass
class Sidecar:
    """The state of one pod's sidecar."""

    options: SidecarOptions
    stop: Stop
    say: Callable[[str], None]
    opened: Bucket | None = None
    """The bucket, if it is open already."""
    records: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the records in the bucket, by attempt: its own and those that it restored."""
    unsealed: int = 0
    """Earlier records that no sidecar with the key has written."""
    left_out: int = 0
    """Files that were not saved: links, devices, odd names, too many or too large."""
    saved: set[str] = field(default_factory=set)
    """Names of the steps that are done."""
    checkpoint: tuple[transfer.FoundFile, ...] = ()
    """The files of the newest checkpoint that this sidecar has saved."""

    def __post_init__(self) -> None:
        options = self.options
        self.bucket = self.opened or Bucket(options.url, secrets=options.secrets)
        self.uploader = transfer.Uploader(self.bucket, options.batch, options.index, options.uid, options.key)
        self._pause = FIRST_PAUSE

    # -------------------------------------------------------------------------------------------------- restore

    def restore(self) -> None:
        """Restore what the launcher needs, with retries for some time. Raises StorageError."""
        ready = Path(self.options.state, "ready")
        if ready.exists():  # the sidecar was restarted: the trial may have begun
            with suppress(OSError, ValueError):
                self.records = json.loads(ready.read_text())
            return
        until = time.monotonic() + self.options.patience
        while not self.attempt("restore", self.restore_once):
            if self.stop.is_requested:
                return
            if time.monotonic() > until:
                # The kubelet starts it again. Until its hook ends, it does not even see that the pod is deleted.
                raise StorageError("the bucket is still away: the next start of this container tries again")
        write_file(ready, json.dumps(self.records).encode())

    def restore_once(self) -> None:
        """Restore earlier records, and the checkpoints that the trial continues from. Raises StorageError."""
        options = self.options
        own = transfer.names(self.bucket, options.batch, ObjectKind.RECORD, options.index)
        sealed = [name for name in own if name.is_sealed(options.key)]
        self.unsealed = len(own) - len(sealed)
        earlier = sorted(sealed, key=attrgetter("key"))[:MOST_EARLIER]
        are_final = [self._restore_record(name) for name in earlier]
        if any(are_final):
            return
        self.copy_data()
        self._restore_checkpoint(self._own_checkpoints(), f"{options.results}/checkpoints")
        if options.parent is not None:
            batch, index = options.parent
            checkpoints = transfer.numbered(self.bucket, batch, index, options.key)
            if not self._restore_checkpoint(checkpoints, options.parent_folder):
                raise StorageError(f"{options.url}: there is no checkpoint of row {index} of {batch}")

    def _restore_record(self, name: ObjectName) -> bool:
        """Give the launcher an earlier record if it belongs to this trial; return whether it is final."""
        content, options = transfer.read(self.bucket, name), self.options
        record, own = read_record(content), (options.batch, options.index, name.uid)
        if content is None or record is None or (record.batch, record.index, record.uid) != own:
            return False
        place = Path(options.results, f"{record.uid}.json")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        self.records[record.uid] = name.sha256
        return record.status.is_final

    def copy_data(self) -> None:
        """Copy the dataset of the trial, if the bucket has it. Raises StorageError."""
        options, until = self.options, time.monotonic() + DATA_SECONDS
        if options.data is None:
            return
        from sweepledger.bucket import dataset  # noqa: PLC0415 - few trials have one in the bucket

        folder, digest = options.data
        dataset.copy(
            self.bucket,
            folder,
            Path(options.data_folder),
            digest=digest,
            most_bytes=options.most_data_bytes,
            has_time=lambda: time.monotonic() < until and not self.stop.is_requested,
        )

    def _restore_checkpoint(self, names: list[ObjectName], into: str) -> bool:
        """Restore the newest complete checkpoint; return whether there is one. Raises StorageError."""
        for name in names:
            _empty(into)
            try:
                if transfer.restore(self.bucket, name, into, most_bytes=self.options.most_bytes):
                    return True
            except transfer.DamagedFileError as error:
                self.say(f"an older checkpoint is taken: {error}")
        _empty(into)
        return False

    # ----------------------------------------------------------------------------------------------------- save

    def run(self) -> None:
        """Save until the pod ends."""
        self.restore()
        if self.options.rank > 0:
            self.saved |= STEPS
        self.write_message()
        if self.options.rank > 0:
            self.stop.wait()
            return
        read_record(None)  # loads its modules now, since the program runs: later it would delay the pod's end
        next_look = time.monotonic() + self.options.interval
        while not self.stop.wait(LOOK_SECONDS):
            if self.has_record():
                self.save()
                self.stop.wait()
            elif time.monotonic() >= next_look:
                self.uploader.is_interrupted = lambda: self.has_record() or self.stop.is_requested
                self.attempt("checkpoint", self.save_checkpoint)
                self.uploader.is_interrupted = bool
                next_look = time.monotonic() + self.options.interval
        self.save()

    def save(self) -> None:
        """Save everything once, the record first; retry failed steps until the grace period ends."""
        steps: list[tuple[str, Callable[[], None]]] = [
            ("record", self.save_record),
            ("checkpoint", self.save_checkpoint),
            ("files", self._save_files),
            ("tidy", self._delete_checkpoints),
        ]
        for name, step in steps:
            while name not in self.saved:
                if self.attempt(name, step):
                    # Without a record the launcher may still be writing one: SIGTERM comes after its end.
                    self.saved |= {name} if self.has_record() or self.stop.is_requested else set()
                    break
                if self.stop.seconds_left < LEAVE_SECONDS:
                    self.say(f"{name} is not saved: no time is left")
                    break
        self.write_message()

    @property
    def is_complete(self) -> bool:
        """Whether everything has been saved."""
        return self.saved >= STEPS

    def attempt(self, name: str, step: Callable[[], None]) -> bool:
        """Perform a step; if it failed, wait, longer each time."""
        try:
            step()
        except transfer.InterruptedUploadError:
            return False
        except transfer.FileChangedError as error:
            self.say(f"{name}: {error} changes while it is read")
        except (StorageError, OSError) as error:
            self.say(f"{name}: {error}")
        else:
            self._pause = FIRST_PAUSE
            return True
        if self.stop.is_requested:
            time.sleep(max(0.0, min(FIRST_PAUSE, self.stop.seconds_left)))
        else:
            self.stop.wait(self._pause)
            self._pause = min(LONGEST_PAUSE, self._pause * 2)
        return False

    def _record_path(self) -> str:
        return f"{self.options.results}/{self.options.uid}.json"

    def has_record(self) -> bool:
        """Return whether the launcher has written the record of this attempt."""
        return os.path.lexists(self._record_path())

    def _record(self) -> "tuple[Record, bytes] | None":
        content = read_regular(self._record_path(), LARGEST_RECORD_FILE)
        record = read_record(content)
        return None if record is None or content is None else (record, content)

    def save_record(self) -> None:
        """Save the record of this attempt, if there is one. Raises StorageError."""
        found = self._record()
        if found is not None:
            self.records[self.options.uid] = self.uploader.save(ObjectKind.RECORD, found[1]).sha256
            self.write_message()

    def _own_checkpoints(self) -> list[ObjectName]:
        options = self.options
        return transfer.numbered(self.bucket, options.batch, options.index, options.key)

    def _keeps_checkpoints(self) -> bool:
        """Return whether an attempt or a trial may continue from the checkpoints of this trial."""
        found = self._record()
        return self.options.keep_checkpoints or found is None or not found[0].status.is_success

    def save_checkpoint(self) -> None:
        """Save the newest checkpoint if anything may continue from it. Raises StorageError, FileChangedError."""
        if not self._keeps_checkpoints():
            return
        folder = f"{self.options.results}/checkpoints"
        files = self._within_bounds(transfer.find_files(self.options.results, "checkpoints")).files
        if files in {(), self.checkpoint}:
            return
        older = self._own_checkpoints()
        number = older[0].number + 1 if older else 1
        self.uploader.save_files(ObjectKind.CHECKPOINT, folder, [file.path for file in files], number)
        self.checkpoint = files
        try:
            # The one before stays: another pod of the trial, on a lost node, may have counted on its chunks.
            self._delete(older[1:], [*older[:1], *self._own_checkpoints()])
        except StorageError as error:  # a bucket may keep all versions, or lock them
            self.say(f"older checkpoints stay: {error}")

    def _delete(self, names: list[ObjectName], kept: list[ObjectName]) -> None:
        """Delete lists, and the content that no other list names. Raises StorageError."""
        if not names:
            return
        options = self.options
        gone = {name.key for name in names}
        lists = transfer.names(self.bucket, options.batch, ObjectKind.FILES, options.index)
        kept = [name for name in (*kept, *lists) if name.key not in gone]
        unused = self._chunks(names) - self._chunks(kept)
        self.bucket.delete(sorted(gone))
        self.uploader.delete_chunks(unused)

    def _chunks(self, names: list[ObjectName]) -> set[str]:
        lists = (transfer.read_list(self.bucket, name) or () for name in dict.fromkeys(names))
        return {sha256 for files in lists for file in files for sha256 in file.chunks}

    def _save_files(self) -> None:
        options = self.options
        own = transfer.find_files(options.results, "", is_flat=True)
        names = {f"{options.uid}.{kind}" for kind in ("out", "err", "artifacts")}
        files, left_out = [file for file in own.files if file.path in names], 0
        for folder in (f"artifacts/{options.uid}", "environments", "thresholds"):
            found = transfer.find_files(options.results, folder)
            files += [replace(file, path=f"{folder}/{file.path}") for file in found.files]
            left_out += found.left_out
        bounded = self._within_bounds(transfer.FoundFiles(tuple(files), left_out))
        self.left_out = bounded.left_out
        if bounded.files:
            self.uploader.save_files(ObjectKind.FILES, options.results, [file.path for file in bounded.files])

    def _within_bounds(self, found: transfer.FoundFiles) -> transfer.FoundFiles:
        """Return the files that fit a trial's limit of bytes, the smallest first."""
        smallest = sorted(found.files, key=attrgetter("bytes"))
        sizes = zip(smallest, accumulate(file.bytes for file in smallest), strict=True)
        chosen = {file.path for file, size in sizes if size <= self.options.most_bytes}
        files = tuple(file for file in found.files if file.path in chosen)
        return transfer.FoundFiles(files, found.left_out + len(found.files) - len(files))

    def _delete_checkpoints(self) -> None:
        """Delete the checkpoints of a finished trial, as the launcher does."""
        if self._keeps_checkpoints():
            return
        try:
            self._delete(self._own_checkpoints(), [])
        except StorageError as error:
            self.say(f"checkpoints stay: {error}")

    def write_message(self) -> None:
        """Write the termination message, which the node keeps however the sidecar ends."""
        records = dict(sorted(self.records.items()))
        write_message(self.options.log, {"complete": self.is_complete, "records": records}, [self])


def write_message(log: str, message: Mapping[str, Any], sidecars: Collection[Sidecar]) -> None:
    """Write a termination message with the counts of these trials' sidecars; cut it to the limit, and ignore errors."""
    counts = {name: sum(getattr(one, name) for one in sidecars) for name in ("left_out", "unsealed")}
    said = {**message, "store": 1, **{name: count for name, count in counts.items() if count}}
    text = json.dumps(said, sort_keys=True, separators=(",", ":")) + "\n"
    with suppress(OSError), open(log, "r+b") as file:  # noqa: PTH123 - r+: it must exist already
        file.truncate()
        file.write(text.encode()[:MESSAGE_BYTES])


def read_record(content: bytes | None) -> "Record | None":
    """Return a valid record; None for anything else."""
    # Loaded here, because it takes as long as half of all other modules, and most pods start without a record.
    from sweepledger.formats import record_json  # noqa: PLC0415
    from sweepledger.structs.record import Record  # noqa: PLC0415

    record = record_json.read(content)
    return record if isinstance(record, Record) else None


def _empty(folder: str) -> None:
    """Delete the remains of an interrupted restore in a folder. Raises StorageError."""
    path = Path(folder)
    for entry in path.iterdir() if path.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            remove_folder(entry)
        else:
            entry.unlink()
