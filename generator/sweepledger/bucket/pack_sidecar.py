"""The sidecar of a pod with several trials: it saves each trial once it has a record, then frees its space.

It also saves the pod's journal, which tells the next pod which trials have begun. Its message names the rows of
each pod whose records it has seen, with one digest for all of these records.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from sweepledger.bucket import transfer, trial_sidecar
from sweepledger.bucket.layout import ObjectKind, ObjectName
from sweepledger.bucket.objects import AT_ONCE
from sweepledger.errors import StorageError
from sweepledger.formats import pack_digest
from sweepledger.safe_open import FOLDER_FLAGS, open_below, read_regular
from sweepledger.storage import remove_folder, write_file

JOURNAL = ".pack"
"""The file of base/components/pack in the pod's folder."""
LARGEST_JOURNAL = 1 << 20
JOURNAL_SECONDS = 2.0
"""Between two saves of the journal: a kubelet needs longer to see that a trial has filled its disk."""
OTHER_BYTES = 100
"""Of the message, for all but the records."""
WATCHED, SAVED = ".watched", ".saved"
"""Files that tell the pod's program that it has a sidecar, and that a row is saved."""


class _Row(trial_sidecar.Sidecar):
    def __init__(self, pod: "PackSidecar", row: int) -> None:
        super().__init__(pod.options.of_row(row), pod.stop, pod.say, pod.bucket)
        self.is_over = False
        """Whether everything that this pod can leave of it has been saved."""

    def write_message(self) -> None:
        """Write nothing: the pod's sidecar writes the message."""

    @property
    def has_begun(self) -> bool:
        """Whether this pod has a folder of the trial."""
        return Path(self.options.results).is_dir()

    def finish(self) -> None:
        """Save the trial, delete its saved files because later trials need the space, and mark it as saved."""
        self.save()
        if not (self.is_complete and self.has_record()):
            return
        own, root = self.records.get(self.options.uid, ""), str(Path(self.options.results).parent)
        write_file(Path(self.options.state, str(self.options.index)), f"{own} {self.left_out}".encode())
        self.is_over = True
        with suppress(OSError):  # the trials of the pod can write here, too
            folder = open_below(root, [str(self.options.index)], FOLDER_FLAGS)
            try:
                for name in ("artifacts", "checkpoints"):
                    with suppress(StorageError):
                        remove_folder(Path(f"/proc/self/fd/{folder}/{name}"))  # whatever its name is by now
                for kind in ("out", "err", "artifacts"):
                    with suppress(OSError):
                        os.unlink(f"{self.options.uid}.{kind}", dir_fd=folder)
            finally:
                os.close(folder)
        mark(f"{root}/{SAVED}-{self.options.index}")


def mark(path: str) -> None:
    """Create an empty file unless the name exists."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))


class PackSidecar(trial_sidecar.Sidecar):
    """The state of the sidecar of one pod."""

    def __init__(
        self, options: trial_sidecar.SidecarOptions, stop: trial_sidecar.Stop, say: Callable[[str], None]
    ) -> None:
        super().__init__(options, stop, say)
        self.rows = {row: _Row(self, row) for row in options.rows or ()}
        self.seen: defaultdict[str, dict[int, str]] = defaultdict(dict)
        """SHA-256 of the records in the bucket, by pod and row: its own and those that it restored."""
        self.journals: list[ObjectName] = []
        """What sidecars of these rows have saved of their journal, the newest first."""
        self._journal: bytes | None = None
        """The journal as it was saved."""
        self._journal_at = 0.0

    def restore_once(self) -> None:
        """Restore the journal, and all rows if a pod has begun before. Raises StorageError."""
        options = self.options
        self.copy_data()
        self.journals = self._listed_journals()
        for name in self.journals:
            if (content := transfer.read(self.bucket, name)) is not None:
                write_file(Path(options.results, JOURNAL), content)
                self._journal = content
                break
        if self.journals:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(_Row.restore_once, self.rows.values()))
        else:
            self.save_journal(b"")  # so that the next pod knows that there was one
        self.records = {
            attempt: sha256 for row in self.rows.values() for attempt, sha256 in row.records.items()
        }
        mark(f"{options.results}/{WATCHED}")

    def run(self) -> None:
        """Save each row once it has a record, until the pod ends."""
        self.restore()
        # What this container has saved before it was started again.
        for number, row in self.rows.items():
            with suppress(OSError, ValueError):
                own, left_out = Path(self.options.state, str(number)).read_text().split(" ")
                row.records[row.options.uid], row.left_out, row.is_over = own, int(left_out), True
        self._note([self, *self.rows.values()])
        self.write_message()
        # Loads its modules now, since the programs run: later it would delay the pod's end.
        trial_sidecar.read_record(None)
        next_look = time.monotonic() + self.options.interval
        while not self.stop.wait(trial_sidecar.LOOK_SECONDS):
            self.look_at_journal()
            self.save_rows([row for row in self.rows.values() if not row.is_over and row.has_record()])
            if time.monotonic() >= next_look:
                for row in self.rows.values():
                    if not row.is_over and row.has_begun and not self.stop.is_requested:
                        row.uploader.is_interrupted = lambda: self.stop.is_requested
                        row.attempt("checkpoint", row.save_checkpoint)
                        row.uploader.is_interrupted = bool
                next_look = time.monotonic() + self.options.interval
        self.look_at_journal(is_last=True)
        left = [row for row in self.rows.values() if not row.is_over and row.has_begun]
        for row in left:  # records first: they are small, and end further attempts
            if row.has_record() and row.attempt("record", row.save_record):
                row.saved.add("record")
        self._note(left)
        self.save_rows(left)
        self.write_message()

    def save_rows(self, rows: list[_Row]) -> None:
        """Save the files of rows, several rows at a time."""
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(_Row.finish, some))
            self._note(some)
            self.write_message()
            self.look_at_journal()

    # -------------------------------------------------------------------------------------------------- journal

    def look_at_journal(self, *, is_last: bool = False) -> None:
        """Save the journal if it has changed, at most every JOURNAL_SECONDS."""
        if not is_last and time.monotonic() < self._journal_at + JOURNAL_SECONDS:
            return
        content = read_regular(f"{self.options.results}/{JOURNAL}", LARGEST_JOURNAL)
        if content is not None and content != self._journal:
            self.attempt("journal", lambda: self.save_journal(content))

    def save_journal(self, content: bytes) -> None:
        """Save the journal, and delete its older versions. Raises StorageError."""
        older = self.journals or self._listed_journals()
        saved = self.uploader.save(ObjectKind.PACK, content, older[0].number + 1 if older else 1)
        self.journals, self._journal, self._journal_at = [saved], content, time.monotonic()
        with suppress(StorageError):  # a bucket may keep all versions, or lock them
            self.bucket.delete(name.key for name in older)

    def _listed_journals(self) -> list[ObjectName]:
        options = self.options
        return transfer.numbered(self.bucket, options.batch, options.index, options.key, ObjectKind.PACK)

    # -------------------------------------------------------------------------------------------------- message

    def _note(self, sidecars: Iterable[trial_sidecar.Sidecar]) -> None:
        for sidecar in sidecars:
            for attempt, sha256 in sidecar.records.items():
                pod, _, row = attempt.rpartition("-")
                self.seen[pod][int(row)] = sha256

    @property
    def is_complete(self) -> bool:
        """Whether all files of all rows have been saved."""
        return all(row.is_over or row.is_complete or not row.has_begun for row in self.rows.values())

    def write_message(self) -> None:
        """Write the termination message, which the node keeps however the sidecar ends."""
        is_complete = self.stop.is_requested and self.is_complete
        pods = sorted(self.seen, key=lambda pod: (pod != self.options.uid, -len(self.seen[pod]), pod))
        packs, room = dict[str, str](), trial_sidecar.MESSAGE_BYTES - OTHER_BYTES
        for pod in pods:
            text = pack_digest.vouch(self.seen[pod])
            room -= len(pod) + len(text) + len('"":"",')
            if room >= 0:
                packs[pod] = text
        message = {"complete": is_complete, "packs": packs}
        trial_sidecar.write_message(self.options.log, message, self.rows.values())
