"""The list of an attempt's files, or of a checkpoint's: paths, sizes, digests and chunks, as JSON.

It is written after all chunks, so whoever reads it finds whole files. Paths are chosen by trials.
"""

import json
import re
from dataclasses import dataclass

from sweepledger.formats.json import MAX_DOCUMENT_BYTES, RejectedInput, parse_untrusted_object

CHUNK_BYTES = 8 << 20
"""Large enough for the throughput of a bucket; some of them fit the sidecar's memory at a time."""
MOST_FILES = 4000
MOST_BYTES = 1 << 40
MOST_LEVELS = 32
LONGEST_PATH = 500
VERSION = 1
SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of which the bucket has the content."""

    path: str
    bytes: int
    sha256: str
    chunks: tuple[str, ...]
    """Digests of its parts, `CHUNK_BYTES` each but for the last."""


def dump(files: tuple[StoredFile, ...]) -> bytes:
    """Return the JSON of a list; equal lists give equal bytes. Raises ValueError if it is too large."""
    rows = [
        {"path": file.path, "bytes": file.bytes, "sha256": file.sha256}
        | ({} if len(file.chunks) == 1 else {"chunks": list(file.chunks)})
        for file in sorted(files, key=lambda file: file.path)
    ]
    content = json.dumps({"files": rows, "version": VERSION}, sort_keys=True, separators=(",", ":")).encode()
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"the list of {len(files)} files has more than {MAX_DOCUMENT_BYTES} bytes")
    return content


def read(content: bytes) -> tuple[StoredFile, ...]:
    """Return the files of an untrusted list. Raises RejectedInput."""
    data = parse_untrusted_object(content)
    rows = data.get("files")
    if data.get("version") != VERSION or not isinstance(rows, list) or len(rows) > MOST_FILES:
        raise RejectedInput("not-a-list-of-files")
    files = tuple(map(_read_file, rows))
    names = {file.path for file in files}
    folders = {
        "/".join(parts[:end]) for parts in (name.split("/") for name in names) for end in range(1, len(parts))
    }
    if len(names) < len(files) or names & folders or sum(file.bytes for file in files) > MOST_BYTES:
        raise RejectedInput("not-a-list-of-files")
    return files


def _read_file(row: object) -> StoredFile:
    keys = {"path", "bytes", "sha256"}
    if not isinstance(row, dict) or not keys <= row.keys() <= keys | {"chunks"}:
        raise RejectedInput("not-a-file")
    path, size, sha256 = row["path"], row["bytes"], row["sha256"]
    chunks = row.get("chunks", [sha256])
    if not (isinstance(path, str) and is_plain(path)) or type(size) is not int or not 0 <= size <= MOST_BYTES:
        raise RejectedInput("not-a-file")
    wanted = max(1, -(-size // CHUNK_BYTES))
    if not isinstance(chunks, list) or len(chunks) != wanted or not all(map(_is_digest, (sha256, *chunks))):
        raise RejectedInput("not-a-file")
    return StoredFile(path, size, sha256, tuple(chunks))


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def is_plain(path: str) -> bool:
    """Return whether a path stays below its folder and is text."""
    parts = path.split("/")
    return (
        len(path) <= LONGEST_PATH
        and len(parts) <= MOST_LEVELS
        and "\0" not in path
        and not {"", ".", ".."}.intersection(parts)
        and not any("\ud800" <= letter <= "\udfff" for letter in path)
    )
