"""The batches that exist before a command plans or changes any: merged, recorded and proposed ones.

Batches recorded at HEAD count as merged, pushed or not: they are never removed or requested again. Specs that have
their batches already are recognised by digests, without reading and expanding them.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sweepledger.errors import UnreadableError
from sweepledger.repo import batches
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.files import read_input
from sweepledger.repo.git import Entry, Repository, WorkTreeChanges, base_commit, rebased_commit
from sweepledger.structs.batch import SpecFile
from sweepledger.structs.names import LOCK_FILE, RESULTS, SETTINGS_FILE, SUFFIX
from sweepledger.structs.values import blob_id, bytes_digest


@dataclass(frozen=True)
class StoredBatches:
    """The existing batches, before anything is planned."""

    commit: str | None
    """The base commit."""
    merged: tuple[StoredBatch, ...]
    """The batches that are never removed and whose trials are not new: those of the base commit, and all recorded."""
    present: tuple[StoredBatch, ...]
    """The batches in the work tree."""
    results_of: Mapping[str, str] = field(default_factory=dict)
    """The commit that has the results of a sweep, for those of which HEAD has all, and the base commit has not."""
    apart: frozenset[str] = frozenset()
    """Sweeps of which neither has all results."""
    merged_of: Mapping[str, tuple[StoredBatch, ...]] = field(init=False)
    """The merged and recorded batches, by sweep."""
    present_of: Mapping[str, tuple[StoredBatch, ...]] = field(init=False)
    """The batches in the work tree, by sweep."""
    copies: tuple[StoredBatch, ...] = field(init=False)
    """The active batches of the work tree whose merged or recorded folder is in its archive as well.

    A merge leaves them where one branch has recorded a batch and the other has proposed the same.
    """

    def __post_init__(self) -> None:
        archived = {batch.folder for batch in self.merged if not batch.is_active}
        archived &= {batch.folder for batch in self.present}
        active = (batch for batch in self.present if batch.is_active)
        copies = tuple(batch for batch in active if f"{ARCHIVE}/{batch.name}" in archived)
        object.__setattr__(self, "merged_of", batches.by_sweep(self.merged))
        object.__setattr__(self, "present_of", batches.by_sweep(self.present))
        object.__setattr__(self, "copies", copies)

    @property
    def results(self) -> str | None:
        """The commit with the most results."""
        return next(iter(self.results_of.values()), self.commit)

    @property
    def added(self) -> tuple[StoredBatch, ...]:
        """The proposed batches: those of the work tree that are neither merged nor recorded."""
        merged = {batch.name for batch in self.merged}
        return tuple(batch for batch in self.present if batch.name not in merged)

    def prefetch(self, sweeps: Iterable[str]) -> Self:
        """Read the merged batches of some sweeps with one process."""
        batches.prefetch(batch for sweep in sweeps for batch in self.merged_of.get(sweep, ()))
        return self


def stored_batches(
    repository: Repository,
    branch: str,
    base: str | None,
    sweeps: Iterable[str] = (),
    *,
    known_to_git: bool = False,
) -> StoredBatches:
    """Return the existing batches; read those of some sweeps. Raises StorageError, UsageError for an unknown base.

    With `known_to_git`, active batches without a change by git's index are not read: there may be thousands.
    """
    commit = base_commit(repository, branch, base)
    merged = batches.in_commit(repository, commit)
    committed: Mapping[str, Mapping[str, str]] = {}
    if known_to_git and commit:
        changes = WorkTreeChanges.read(repository, ACTIVE)
        options = ("--cached", "--name-only", "-z", "--no-renames")
        staged = filter(None, repository.run("diff-index", *options, commit, "--", ACTIVE).split("\0"))
        active = [batch for batch in merged if batch.is_active]
        unsure = {*changes.uncommitted, *changes.ignored, *changes.unwatched}
        committed = batches.unchanged_folders(active, {}, staged, unsure)
    present = batches.in_work_tree(repository.folder, committed=committed)
    return with_recorded(repository, StoredBatches(commit, merged, present)).prefetch(sweeps)


def with_recorded(repository: Repository, stored: StoredBatches) -> StoredBatches:
    """Return batches; those that HEAD or the work tree has archived count as merged."""
    head, base = repository.commit("HEAD"), stored.commit
    at_head = () if head == base else batches.in_commit(repository, head, batches.ARCHIVE)
    recorded = _recorded(repository, head, at_head)
    known = {batch.name: batch for batch in (*at_head, *stored.merged)}
    known |= {name: batch for name, batch in recorded.items() if known[name].is_active}
    # Before a merge or rebase is finished, no commit of this branch has what the one brings and the other repeats.
    repeated = batches.in_commit(repository, rebased_commit(repository), batches.ARCHIVE)
    present = (batch for batch in stored.present if not batch.is_active)
    arriving = (batch for batch in (*repeated, *present) if batch.name not in known)
    known |= {batch.name: batch for batch in batches.readable(arriving)}
    at_base = _recorded(repository, base, stored.merged) if head != base else {}
    ahead = frozenset(recorded[name].sweep for name in recorded.keys() - at_base.keys())
    behind = frozenset(at_base[name].sweep for name in at_base.keys() - recorded.keys())
    merged = batches.in_order(known.values())
    results = {sweep: head for sweep in ahead - behind if head is not None}
    return StoredBatches(base, merged, stored.present, results, ahead & behind)


def _recorded(
    repository: Repository, commit: str | None, stored: Iterable[StoredBatch]
) -> dict[str, StoredBatch]:
    archived = [batch for batch in stored if not batch.is_active]
    files = repository.files(commit, RESULTS) if archived else {}
    return {batch.name: batch for batch in archived if batch.records_file() in files}


def settled_specs(
    root: Path,
    base_entries: Mapping[str, Entry],
    merged: Iterable[StoredBatch],
    added: Iterable[StoredBatch],
    paths: Iterable[Path],
) -> frozenset[Path]:
    """Return the specs that equal those of the base commit and from which the newest merged batch was made.

    `base_entries` has at least the specs and the settings of the base commit, `merged` its batches, by number, and
    `added` those that only the work tree has. If the settings differ from those of the base commit, none is returned.
    """
    settings, merged_settings = root / SETTINGS_FILE, base_entries.get(SETTINGS_FILE)
    if settings.exists() and not settings.is_file():
        return frozenset()
    if settings.exists() != (merged_settings is not None):
        return frozenset()
    if merged_settings is not None and not is_content_of(merged_settings, read_input(settings)):
        return frozenset()
    growing = {batch.sweep for batch in added}
    newest = {batch.sweep: batch for batch in merged if batch.sweep not in growing}
    batches.prefetch(newest.values(), LOCK_FILE)
    return frozenset(path for path in paths if _is_settled(root, base_entries, newest, path))


def _is_settled(
    root: Path, base_entries: Mapping[str, Entry], newest: Mapping[str, StoredBatch], path: Path
) -> bool:
    batch = newest.get(path.name.removesuffix(SUFFIX))
    if batch is None:
        return False
    location = os.fspath(path).removeprefix(f"{root}{os.sep}").replace(os.sep, "/")
    content = read_input(path)
    # Earlier bytes that a batch was made from are a change as any other: they may lack a cancellation.
    if not is_content_of(base_entries.get(location), content):
        return False
    try:
        # The digest of a spec that names a table covers the table, too, so that such a spec is always read.
        return batch.lock.spec == SpecFile(location, bytes_digest(content))
    except UnreadableError:
        return False


def is_content_of(entry: Entry | None, content: bytes) -> bool:
    """Return whether an entry of a commit has this content."""
    return entry is not None and entry.id == blob_id(content)
