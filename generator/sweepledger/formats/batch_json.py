"""`batch.json`: the lock file of an overlay, with the digests of the overlay's files.

`batch_digest` computes the digest again from the files alone, without spec, bases or the original version.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from sweepledger.formats import documents, launch_json, yaml
from sweepledger.formats.hyperparams_csv import ColumnType, Table
from sweepledger.problems import TextError
from sweepledger.structs.batch import Batch, BatchLock
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import LOCK_FILE, PLACEHOLDER_DIGEST, batch_name
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.settings import SecretReference
from sweepledger.structs.values import blob_id, bytes_digest

MAX_KEPT = 1000
"""Locks that are kept, about 10 KB each: a check reads most of them at the base commit and in the work tree."""


@lru_cache(maxsize=MAX_KEPT)
def read(text: str | bytes) -> BatchLock:
    """Return the lock in an untrusted text; each text is parsed only once. Raises TextError."""
    lock = documents.read(BatchLock, text, name="a lock file")
    if unknown := set(lock.columns.values()) - set(ColumnType):
        raise TextError(f"not a lock file: columns: must be types of columns, but got {min(unknown)!r}")
    return lock


NOT_ARCHIVED = ("job.yaml", "kustomization.yaml", launch_json.LAUNCH_FILE)
"""Files that the archive leaves out: the lock and the table are enough to read results."""


def write(
    lock: BatchLock,
    batch: Batch,
    table: Table,
    pool: Pool | None,
    secrets: Mapping[str, SecretReference],
    manifests: Mapping[str, Sequence[Any]],
    *,
    has_sidecar: bool,
) -> tuple[BatchLock, FileTree]:
    """Return a batch's lock, completed with the digests of the batch and its files, and all files.

    The digest is computed with the digits in the name and the lock's digest blank; a lock with a digest keeps both.
    """
    banner = lock.generated
    launch = launch_json.write(lock.name, batch, table, pool, secrets, has_sidecar=has_sidecar, banner=banner)
    texts = {
        **{shard.file: shard.text for shard in table.shards},
        launch_json.LAUNCH_FILE: launch,
        **{path: yaml.dump(*objects, banner=banner) for path, objects in manifests.items()},
    }
    files = {path: text.encode() for path, text in texts.items()}
    sealed, tree = _sealed(lock, files)
    if lock.digest:
        return sealed, tree
    name = batch_name(lock.sweep, lock.number, tree.digest)
    named = replace(lock, name=name, digest=f"sha256:{tree.digest}")
    return _sealed(
        named, {path: text.replace(lock.name.encode(), name.encode()) for path, text in files.items()}
    )


def _sealed(lock: BatchLock, files: Mapping[str, bytes]) -> tuple[BatchLock, FileTree]:
    digests = dict(sorted(FileTree(files).digests.items()))
    blobs = {path: blob_id(files[path]) for path in NOT_ARCHIVED if path in files}
    sealed = replace(lock, files=digests, blobs=blobs)
    return sealed, FileTree({**files, LOCK_FILE: documents.write(sealed).encode()})


def batch_digest(tree: FileTree, name: str, digest: str) -> str:
    """Return the digest of a batch's files with its name and its own digest blank, as when it was rendered.

    It equals the lock's `digest` if and only if nothing changed since, for every version that rendered it.
    """
    blank = f"{name[: -len(PLACEHOLDER_DIGEST)]}{PLACEHOLDER_DIGEST}".encode()
    files = {path: content.replace(name.encode(), blank) for path, content in tree}
    lock = files.get(LOCK_FILE, b"").replace(f'"{digest}"'.encode(), b'""')
    for path, content in tree:
        if path != LOCK_FILE:
            for identify in (bytes_digest, blob_id):
                lock = lock.replace(identify(content).encode(), identify(files[path]).encode())
    return f"sha256:{FileTree({**files, LOCK_FILE: lock}).digest}"
