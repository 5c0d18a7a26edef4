"""Datasets in a bucket: the objects of a folder, one for each file, copied into a pod and verified.

Names and content come from whoever can write to the bucket. Nothing is therefore written outside the folder, and the
program starts only if the digest of the whole copy is the one in the settings.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sweepledger.bucket import layout
from sweepledger.bucket.layout import CHUNK_BYTES
from sweepledger.bucket.objects import Bucket, ListedObject, ahead
from sweepledger.bucket.transfer import open_new
from sweepledger.errors import StorageError
from sweepledger.storage import storage_errors
from sweepledger.structs.values import listing_digest

MOST_FILES = 100_000
"""Each costs a request, so a dataset of more is better packed into some large files."""


def copy(
    bucket: Bucket, folders: str, into: Path, *, digest: str, most_bytes: int, has_time: Callable[[], bool]
) -> None:
    """Copy the objects of a folder, continuing an earlier copy, and verify the whole. Raises StorageError.

    `folders` may list several datasets as `NAME=FOLDER`, separated by spaces: each is copied into a folder of its name,
    and all are verified together.
    """
    if "=" not in folders:
        objects = _objects(bucket, folders, most_bytes)
        actual = _copy_objects(bucket, objects, into, has_time)
    else:
        parts, room = dict[str, dict[str, ListedObject]](), most_bytes
        for part in folders.split(" "):
            name, _, folder = part.partition("=")
            parts[name] = _objects(bucket, folder, room)
            room -= sum(found.bytes for found in parts[name].values())
        digests = {name: _copy_objects(bucket, parts[name], into / name, has_time) for name in sorted(parts)}
        actual = listing_digest(digests)
    if actual != digest:
        raise StorageError(
            f"{bucket.url}/{folders}: contains other data: must be {digest}, got {actual}",
            hint="upload the files again, or correct the digest of the dataset in sweepledger.yaml",
        )


def _copy_objects(
    bucket: Bucket, objects: Mapping[str, ListedObject], into: Path, has_time: Callable[[], bool]
) -> str:
    """Copy objects to their paths in a folder, and return the digest of all. Raises StorageError."""
    return listing_digest(
        {name: _copy_file(bucket, found, into / name, has_time) for name, found in sorted(objects.items())}
    )


def _objects(bucket: Bucket, folder: str, most_bytes: int) -> dict[str, ListedObject]:
    """Return the files of a dataset by their paths. Raises StorageError."""
    objects: dict[str, ListedObject] = {}
    size = 0
    for found in bucket.list(f"{folder}/"):
        name = found.key.removeprefix(f"{folder}/")
        if name.endswith("/") or not name:
            continue  # consoles of clouds make an empty object for a folder
        if not layout.is_plain(name):
            raise StorageError(f"{bucket.url}/{folder}: {name!r} is no path below a folder")
        objects[name], size = found, size + found.bytes
        if len(objects) > MOST_FILES or size > most_bytes:
            raise StorageError(
                f"{bucket.url}/{folder}: must have at most {MOST_FILES} files and {most_bytes} bytes, got more",
                hint="raise the size of the dataset in sweepledger.yaml, or pack files",
            )
    if not objects:
        raise StorageError(f"{bucket.url}/{folder}: has no files")
    return objects


def _copy_file(bucket: Bucket, found: ListedObject, path: Path, has_time: Callable[[], bool]) -> str:
    """Write a file or complete an earlier partial copy, and return its digest. Raises StorageError."""
    sha256 = hashlib.sha256()
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with storage_errors(path), os.fdopen(open_new(path, flags), "r+b") as file:
        # Whole chunks only: the last one may be half a chunk that was written when the container ended.
        kept = min(os.fstat(file.fileno()).st_size, found.bytes) // CHUNK_BYTES * CHUNK_BYTES
        for _ in range(0, kept, CHUNK_BYTES):
            sha256.update(file.read(CHUNK_BYTES))
        file.truncate(kept)
        file.seek(kept)
        starts = range(kept, found.bytes, CHUNK_BYTES)
        wanted = ((found.key, start, min(start + CHUNK_BYTES, found.bytes)) for start in starts)
        for part in ahead(bucket.get_part, wanted):
            file.write(part)
            sha256.update(part)
            if not has_time():
                raise StorageError(f"{bucket.url}/{found.key}: the next start of this container goes on")
    return sha256.hexdigest()
