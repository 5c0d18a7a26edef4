"""Specs that have their batches already, told by digests instead of by reading and expanding them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import UnreadableError
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.files import read_input
from sweepledger.repo.git import Entry
from sweepledger.structs.batch import SpecFile
from sweepledger.structs.names import LOCK_FILE, SETTINGS_FILE, SUFFIX
from sweepledger.structs.values import blob_id, bytes_digest


def settled_specs(
    workspace: Workspace,
    base_entries: Mapping[str, Entry],
    merged: Iterable[StoredBatch],
    added: Iterable[StoredBatch],
    paths: Iterable[Path],
) -> frozenset[Path]:
    """Return the specs that equal those of the base commit and that the newest merged batch was made from.

    `base_entries` has at least the specs and the settings of the base commit, `merged` its batches, by number, and
    `added` those that only the work tree has. If the settings differ from those of the base commit, no spec is settled.
    """
    if not _same_settings(workspace, base_entries):
        return frozenset()
    growing = {batch.sweep for batch in added}
    newest = {batch.sweep: batch for batch in merged if batch.sweep not in growing}
    batches.prefetch(newest.values(), LOCK_FILE)
    return frozenset(path for path in paths if _is_settled(workspace, base_entries, newest, path))


def _is_settled(
    workspace: Workspace, base_entries: Mapping[str, Entry], newest: Mapping[str, StoredBatch], path: Path
) -> bool:
    batch = newest.get(path.name.removesuffix(SUFFIX))
    if batch is None:
        return False
    location = os.fspath(path).removeprefix(f"{workspace.root}{os.sep}").replace(os.sep, "/")
    content = read_input(path)
    # Earlier bytes that a batch was made from are a change as any other: they may lack a cancellation.
    return is_content_of(base_entries.get(location), content) and _was_made_from(batch, location, content)


def is_content_of(entry: Entry | None, content: bytes) -> bool:
    """Return whether an entry of a commit has this content."""
    return entry is not None and entry.id == blob_id(content, like=entry.id)


def _was_made_from(batch: StoredBatch, path: str, content: bytes) -> bool:
    """Return whether a lock names a spec by its path and digest.

    The digest of a spec that names a table covers the table, too, so that such a spec is always read.
    """
    try:
        return batch.lock.spec == SpecFile(path, bytes_digest(content))
    except UnreadableError:
        return False


def _same_settings(workspace: Workspace, base_entries: Mapping[str, Entry]) -> bool:
    path = workspace.root / SETTINGS_FILE
    if SETTINGS_FILE not in base_entries:
        return not path.exists()
    return path.is_file() and is_content_of(base_entries[SETTINGS_FILE], read_input(path))
