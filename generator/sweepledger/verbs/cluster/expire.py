"""Delete the files of batches that were recorded long ago.

Files on volumes or in the bucket are deleted when the records have been in git for `results.keep` days. Only
records on the remote's branch count. Exits with 5 if a trial left a record that git does not contain, and with 3 if
deleting failed; all other folders are deleted nevertheless.
"""

# Deletion is final, so any doubt, about the branch or a volume, keeps a folder.

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sweepledger.cli.options import RemoteOption, flag, option
from sweepledger.cli.response import EXIT_DRIFT, EXIT_STORAGE, Response
from sweepledger.engine import termination
from sweepledger.errors import GeneratorError, IdleError, RepositoryError, UsageError
from sweepledger.formats import record_json, records_jsonl
from sweepledger.operations.collection.attempts import TrialReader
from sweepledger.operations.record_stores.bucket import bucket_results
from sweepledger.operations.repository import at_commit, batch_records
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, fetch, present_since
from sweepledger.repo.results_volume import VolumeRoot
from sweepledger.results import bounds
from sweepledger.results.outcomes import BatchRecords, evaluate
from sweepledger.structs.names import DELETING_PREFIX, RESULTS, split_batch_name
from sweepledger.structs.record import Record
from sweepledger.structs.settings import Settings

if TYPE_CHECKING:
    from sweepledger.operations.collection.record_store import Shelf

RESULTS_VOLUME = "results"


def expire(
    workspace: Workspace,
    results: Path | None = option(
        "--results DIR", "Folder of the results volume; needed unless results are in a bucket."
    ),
    checkpoints: Path | None = option("--checkpoints DIR", "Folder of the checkpoint volume, if separate."),
    artifacts: Path | None = option("--artifacts DIR", "Folder of the artifact volume, if separate."),
    remote: RemoteOption = None,
    dry_run: bool = flag("--dry-run", "Print what would be deleted, and delete nothing."),
) -> Response:
    name = remote or workspace.remote
    workspace.remote_url(name)
    folders = {RESULTS_VOLUME: results, "checkpoints": checkpoints, "artifacts": artifacts}
    volumes = {volume: folder.absolute() for volume, folder in folders.items() if folder is not None}
    expired = expire_batches(workspace, volumes, remote=name, now=time.time(), dry_run=dry_run)
    states = {batch.state for batch in expired.batches}
    code = EXIT_STORAGE if FolderState.FAILED in states else EXIT_DRIFT * (FolderState.LATE in states)
    return Response(expired, tuple(_lines(expired)), exit_code=code)


def _lines(expired: "Expired") -> Iterator[str]:
    verb = "would delete" if expired.dry_run else "deleted"
    for batch in expired.batches:
        line = f"{batch.state}: {batch.batch}: {batch.reason}"
        if batch.state is FolderState.EXPIRED:
            line = f"{verb}: {batch.batch} ({', '.join(batch.volumes)})"
        if batch.state is FolderState.LATE:
            line += "\n  hint: inspect the records, then delete the folder yourself; `sweep retry` runs a trial again"
        yield line
    for path in expired.unknown:
        yield f"unknown: {path}: not the folder of a batch, kept"
    count = sum(batch.state is FolderState.EXPIRED for batch in expired.batches)
    yield f"{verb} the folders of {count} of {len(expired.batches)} batch(es), {expired.keep_days} days old"


class FolderState(StrEnum):
    """The outcome for the folders of a batch."""

    EXPIRED = "expired"
    """They were deleted, or would be."""
    KEPT = "kept"
    """They are not old enough."""
    LATE = "late"
    """A record of a trial is not in git: the user decides."""
    FAILED = "failed"
    """The storage failed."""


Reason = tuple[FolderState, str]
"""State of a batch's folders, and why they stay."""


@dataclass(frozen=True)
class BatchExpiry:
    """A batch with a folder on at least one volume."""

    batch: str
    state: FolderState
    volumes: tuple[str, ...]
    reason: str | None = None


@dataclass(frozen=True)
class BranchRecords:
    """What the branch contains, as fetched."""

    repository: Repository
    tip: str

    @cached_property
    def stored(self) -> tuple[StoredBatch, ...]:
        """Its batches."""
        return tuple(batches.in_commit(self.repository, self.tip))

    @cached_property
    def archived(self) -> Mapping[str, StoredBatch]:
        """Batches that are in the archive only."""
        active = {batch.name for batch in self.stored if batch.is_active}
        return {batch.name: batch for batch in self.stored if batch.name not in active}

    @cached_property
    def continued_sweeps(self) -> frozenset[str]:
        """Sweeps with an active batch whose trials may continue from checkpoints of other trials."""
        return frozenset(
            batch.sweep
            for batch in self.stored
            if batch.is_active
            and not (batches.readable([batch]) and (batch.lock.restarts or not batch.lock.parents))
        )

    @cached_property
    def files(self) -> frozenset[str]:
        """Every file below `results/`."""
        return frozenset(self.repository.files(self.tip, RESULTS))


@dataclass(frozen=True)
class ExpiryCase:
    """A batch, with all inputs of the decision whether its folders are deleted."""

    batch: str
    branch: BranchRecords
    volumes: Mapping[str, "Shelf"]
    """Volumes with a folder of the batch; `results` is last, in case the run is interrupted."""
    limit: float
    """Folders that are younger than this time stay."""

    @property
    def deleting_name(self) -> str:
        """The name of the folders during their deletion."""
        return f"{DELETING_PREFIX}{self.batch}"

    @property
    def stored(self) -> StoredBatch:
        """The batch in the archive."""
        return self.branch.archived[self.batch]

    def recorded(self) -> Iterator[Record | record_json.CorruptRecord]:
        """Yield the records of the batch on the branch."""
        paths = batch_records.records_files(self.stored, self.branch.files)
        for content in self.branch.repository.read(self.branch.tip, *paths).values():
            yield from records_jsonl.records(content)

    def holding(self, name: str) -> "tuple[Shelf, ...]":
        """Return the volumes that have a folder with this name."""
        return tuple(shelf for shelf in self.volumes.values() if shelf.has_folder(name))

    def why_not(self, *names: str) -> Reason | None:
        """Return why folders with these names must stay; None if they may be deleted. The branch is checked first."""
        return self._unsettled() or self._young(names) or self._late(names)

    def _unsettled(self) -> Reason | None:
        """Require that the batch is in the branch's archive, and that its records are old enough."""
        if self.batch not in self.branch.archived:
            return FolderState.KEPT, "is not in overlays/archive/ on the branch"
        records = self.stored.records_file()
        if records not in self.branch.files:
            return FolderState.KEPT, f"{records} is not on the branch"
        if self.stored.sweep in self.branch.continued_sweeps:
            return FolderState.KEPT, "trials of its sweep that are under way may go on from its checkpoints"
        recorded_at = self._recorded_at()
        if recorded_at is None or recorded_at > self.limit:
            return FolderState.KEPT, f"its records came to the branch {_format_time(recorded_at)}"
        return None

    def _recorded_at(self) -> float | None:
        """Return when the records came to the branch, or when the last attempt in them ended; None if it is unknown.

        The collector's clone is shallow, so that its size does not grow: it has the records, but not their history.
        Without any record, only the times of the folder's own files count.
        """
        if not self.branch.repository.is_shallow:
            return present_since(self.branch.repository, self.branch.tip, self.stored.records_file())
        times = [_ended(record) for record in self.recorded()]
        return None if None in times else max((time for time in times if time is not None), default=0.0)

    def _young(self, names: Iterable[str]) -> Reason | None:
        """Require that no file is younger, because one of the two clocks may be wrong."""
        times = [shelf.newest(name) for name in names for shelf in self.holding(name)]
        newest = max(times, default=self.limit)
        if newest <= self.limit:
            return None
        return FolderState.KEPT, f"a file of it was written {_format_time(newest)}"

    def _late(self, names: Iterable[str]) -> Reason | None:
        """Require that git has every record that the collector would record."""
        volume, stored = self.volumes.get(RESULTS_VOLUME), self.stored
        if volume is None:
            return None
        # On the second check, the folder has the name of its deletion, and must not be read twice.
        held = list(filter(volume.has_folder, dict.fromkeys((*names, self.deleting_name))))

        def files(index: int) -> Iterator[bytes | None]:
            for name in held:
                yield from volume.records(name, index, stored.lock.place(index))

        # What the collector would record; git keeps the numbers of the others.
        records, _ = TrialReader(stored, files, by_engine=False).read(range(len(stored.rows)))
        batch = BatchRecords(stored.lock, batch_records.expected_trials(stored), tuple(records))
        judged = evaluate(bounds.kept(batch)).attempts
        collectable = {attempt.line for attempts in judged for attempt in attempts}
        read = [record for record in self.recorded() if isinstance(record, Record)]
        # Git may have them as they were before the cluster's cause was added.
        lines = map(record_json.to_line, (*read, *map(termination.without_cause, read)))
        if late := len(collectable.difference(lines)):
            return FolderState.LATE, f"{late} record(s) of its trials are not in {stored.records_file()}"
        return None

    def remove(self) -> Reason | None:
        """Finish an interrupted deletion; then rename the folders, check them again, and delete them.

        A pod with an open file may have written after the first check. Return why they stay, as `why_not` does.
        """
        for volume in self.holding(self.deleting_name):
            volume.remove(self.deleting_name)
        with ExitStack() as put_back:
            moved = self.holding(self.batch)
            for volume in moved:
                volume.move(self.batch, self.deleting_name)
                put_back.callback(volume.move, self.deleting_name, self.batch)
            reason = self.why_not(self.deleting_name)
            if reason is None:
                put_back.pop_all()
                for volume in moved:
                    volume.remove(self.deleting_name)
            return reason


def _ended(record: Record | record_json.CorruptRecord) -> float | None:
    """Return when an attempt ended: the later of the observed and the reported time; None if it is unclear."""
    if isinstance(record, record_json.CorruptRecord):
        return None
    texts = (record.finished, *(record.observed or ()))
    try:
        return max(datetime.fromisoformat(text).timestamp() for text in texts)
    except (ValueError, OverflowError, TypeError):
        return None


def _format_time(time: float | None) -> str:
    if time is None:
        return "at an unknown time"
    try:
        return f"at {datetime.fromtimestamp(int(time), UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # trials may write anything
        return "at a time that no calendar has"


DAY = 86_400


@dataclass(frozen=True)
class Expired:
    """The outcome for the folders on the volumes."""

    dry_run: bool
    keep_days: int
    batches: tuple[BatchExpiry, ...]
    unknown: tuple[str, ...]
    """Paths that are not folders of batches: never touched."""


def expire_batches(
    workspace: Workspace, volumes: Mapping[str, Path], *, remote: str, now: float, dry_run: bool = False
) -> Expired:
    """Delete folders whose records have been in git for `results.keep`.

    `volumes` has `results`, unless these are in a bucket, and may have further volumes.
    Only the remote's branch, with its settings, determines this, not the work tree. Raises IdleError if they set
    no time, SpecError, RepositoryError, StorageError.
    """
    name = workspace.settings.git.branch
    branch = BranchRecords(workspace.repository, fetch(workspace.repository, remote, name))
    settings = _followed_settings(branch, f"{remote}/{name}", name)
    days = settings.results.keep_days
    assert days is not None, "otherwise nothing is deleted"
    with ExitStack() as stack:
        opened: dict[str, Shelf] = {}
        if settings.results.bucket is not None:
            opened[RESULTS_VOLUME] = bucket_results(settings.results.bucket, workspace.repository)
        elif RESULTS_VOLUME not in volumes:
            raise UsageError("--results must be given", hint="mount the results volume and name its folder")
        for label, place in sorted(volumes.items(), key=lambda item: (item[0] == RESULTS_VOLUME, item[0])):
            volume = stack.enter_context(VolumeRoot.opened(place))
            opened = {known: other for known, other in opened.items() if other.identity != volume.identity}
            opened[label] = volume
        by_batch, unknown = _folders(opened)
        expired = []
        for batch, held in by_batch.items():
            case = ExpiryCase(batch, branch, held, now - days * DAY)
            try:
                reason = case.why_not(batch) or (None if dry_run else case.remove())
            except GeneratorError as error:  # which affects only this batch
                reason = FolderState.FAILED, str(error)
            state, text = reason or (FolderState.EXPIRED, None)
            expired.append(BatchExpiry(batch, state, tuple(held), text))
        return Expired(dry_run, days, tuple(expired), unknown)


def _followed_settings(branch: BranchRecords, followed: str, name: str) -> Settings:
    """Return the settings of the branch with the retention. Raises SpecError, RepositoryError, IdleError."""
    settings = at_commit.valid_settings(branch.repository, branch.tip)
    if settings.git.branch != name:
        raise RepositoryError(
            f"{followed} is not the branch that the cluster follows: its settings have branch {settings.git.branch!r}",
            hint="correct `branch:` in sweepledger.yaml of the branch itself",
        )
    if not settings.results.store.facts.keeps_files:
        raise IdleError(
            f"results.store is {settings.results.store} on {followed}, which keeps no files: nothing is deleted",
            hint="older batches may have folders on a volume: store: volume with results.keep deletes these",
        )
    if settings.results.keep_days is None:
        raise IdleError(
            f"results.keep is not set on {followed}: nothing is deleted",
            hint="for example `results: {keep: 30d}`, and merge that",
        )
    return settings


def _folders(volumes: "Mapping[str, Shelf]") -> "tuple[dict[str, dict[str, Shelf]], tuple[str, ...]]":
    """Return the volumes with a folder of a batch, by the batch's name, and the paths of other folders."""
    by_batch: dict[str, dict[str, Shelf]] = {}
    unknown = []
    for label, opened in volumes.items():
        for name in opened.names():
            batch = name.removeprefix(DELETING_PREFIX)
            if split_batch_name(batch) is not None and opened.has_folder(name):
                by_batch.setdefault(batch, {})[label] = opened
            else:
                unknown.append(f"{opened.place}/{name}")
    return dict(sorted(by_batch.items())), tuple(unknown)
