"""Keys of objects: records, lists of files and checkpoints of each attempt, and the chunks of their content.

    <batch>/records/<index>/<uid>/<sha256>[.<seal>].json              the record, byte for byte
    <batch>/files/<index>/<uid>/<sha256>[.<seal>].json                list of the attempt's files
    <batch>/checkpoints/<index>/<uid>/<number>-<sha256>[.<seal>].json list of a checkpoint's files
    <batch>/packs/<pod>/<uid>/<number>-<sha256>[.<seal>].json         journal of a pod with several trials
    <batch>/chunks/<index>/<sha256>                                   content of files

A key is only a claim: readers compare the content of an object with the digest in its key. If seals are used, only
sidecars have the secret key for them, so sidecars recognise objects that others wrote.
"""

import hashlib
import hmac
import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from sweepledger.formats.json import MAX_DOCUMENT_BYTES, RejectedInput, parse_untrusted_object


class ObjectKind(StrEnum):
    """The kind of a named object."""

    RECORD = "records"
    FILES = "files"
    CHECKPOINT = "checkpoints"
    PACK = "packs"


CHUNKS = "chunks"
NUMBERED = frozenset({ObjectKind.CHECKPOINT, ObjectKind.PACK})
"""Kinds of which a later object replaces an earlier one."""
NAME = re.compile(
    r"(?P<index>0|[1-9][0-9]{0,8})/(?P<uid>[A-Za-z0-9][A-Za-z0-9_.-]{0,127})"
    r"/(?:(?P<number>[0-9]{9})-)?(?P<sha256>[0-9a-f]{64})(?:\.(?P<seal>[0-9a-f]{64}))?\.json",
    re.ASCII,
)


def digest(content: bytes) -> str:
    """Return the SHA-256 of content, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class ObjectName:
    """The claims of a key about its object, none of them verified."""

    batch: str
    kind: ObjectKind
    index: int
    uid: str
    sha256: str
    number: int = 0
    """Of a checkpoint or journal: later ones have larger numbers, whatever the clocks of their nodes say."""
    seal: str | None = None

    @property
    def key(self) -> str:
        """The key of the object."""
        number = f"{self.number:09d}-" if self.kind in NUMBERED else ""
        seal = "" if self.seal is None else f".{self.seal}"
        return f"{self.batch}/{self.kind}/{self.index}/{self.uid}/{number}{self.sha256}{seal}.json"

    def sealed(self, key: bytes | None) -> "ObjectName":
        """Return the name with a seal by this key; without a key, the name has no seal."""
        return replace(self, seal=None if key is None else self._mac(key))

    def is_sealed(self, key: bytes | None) -> bool:
        """Return whether a holder of the key wrote this name; True if there is no key."""
        return key is None or (self.seal is not None and hmac.compare_digest(self.seal, self._mac(key)))

    def _mac(self, key: bytes) -> str:
        text = f"{self.batch}\n{self.kind}\n{self.index}\n{self.uid}\n{self.number}\n{self.sha256}\n"
        return hmac.digest(key, text.encode(), "sha256").hex()


def parse(batch: str, kind: ObjectKind, key: str) -> ObjectName | None:
    """Return the name that an object's key in a batch states; None if this program writes no such key."""
    prefix = f"{batch}/{kind}/"
    match = NAME.fullmatch(key.removeprefix(prefix)) if key.startswith(prefix) else None
    if match is None or (match["number"] is None) is (kind in NUMBERED):
        return None
    index, number = int(match["index"]), int(match["number"] or 0)
    return ObjectName(batch, kind, index, match["uid"], match["sha256"], number, match["seal"])


def prefix(batch: str, kind: ObjectKind, index: int | None = None) -> str:
    """Return the prefix of the objects of one kind, of a batch or of a trial."""
    return f"{batch}/{kind}/" if index is None else f"{batch}/{kind}/{index}/"


def chunk_key(batch: str, index: int, sha256: str) -> str:
    """Return the key of a chunk."""
    return f"{batch}/{CHUNKS}/{index}/{sha256}"


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
    """A file whose content is in the bucket."""

    path: str
    bytes: int
    sha256: str
    chunks: tuple[str, ...]
    """Digests of its parts, `CHUNK_BYTES` each but for the last."""


def format_list(files: tuple[StoredFile, ...]) -> bytes:
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


def parse_list(content: bytes) -> tuple[StoredFile, ...]:
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
    if not isinstance(chunks, list) or len(chunks) != wanted:
        raise RejectedInput("not-a-file")
    if not all(isinstance(each, str) and SHA256.fullmatch(each) for each in (sha256, *chunks)):
        raise RejectedInput("not-a-file")
    return StoredFile(path, size, sha256, tuple(chunks))


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
