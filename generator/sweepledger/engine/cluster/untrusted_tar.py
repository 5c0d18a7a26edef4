"""An untrusted archive, unpacked while it is received: small regular files with matching names, nothing else.

Only `TarInfo.frombuf` of the standard library is used. Its readers follow extended headers without a limit on
memory and recursion, and expand sparse files; no wanted name needs extended headers.
"""

import re
import tarfile
from pathlib import Path

from sweepledger.process import ByteSource
from sweepledger.structs.record import LARGEST_TRIAL_FILE

BLOCK = tarfile.BLOCKSIZE
CHUNK_BYTES = 1 << 16
LARGEST_ARCHIVE = 2 << 30
"""Bytes of the archive of one batch: 100,000 trials with 20 kB each."""
MOST_FILES = 1_000_000
"""100,000 trials with three attempts and three files per attempt."""
LARGEST_EXTENSION = 1 << 16

MEMBER = re.compile(r"(?:\./)?([0-9]{1,6})/([A-Za-z0-9-]{1,64}\.(?:json|out|err))", re.ASCII)
"""The files that the collector reads: records `<index>/<pod uid>.json` and outputs."""

REGULAR = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE})
EXTENSIONS = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE})
EMPTY = frozenset(
    {tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE}
)
"""Types without content, whatever size the header states."""
MEANINGFUL = (b"GNU.sparse.", b" size=")
"""Extensions that change the size or content of a file."""


class ArchiveError(Exception):
    """The archive is invalid; the text names the reason."""


def unpack(source: ByteSource, into: Path) -> int:
    """Unpack the records and outputs of an archive into a new folder; return their number.

    Links, devices, larger files and files with other names are skipped, because a trial can write anything to
    its folder. Raises ArchiveError for what no trial can cause: a repeated file, a sparse file, a truncated
    archive. The caller then discards the folder.
    """
    count = 0
    while (member := _next(source)) is not None:
        matched = MEMBER.fullmatch(member.name)
        if matched and member.type in REGULAR and member.size <= LARGEST_TRIAL_FILE:
            count += 1
            if count > MOST_FILES:
                raise ArchiveError(f"it contains more than {MOST_FILES} files")
            _write(into / matched[1], matched[2], _exactly(source, member.size))
            _skip(source, -member.size % BLOCK)
        else:
            _skip(source, member.size + -member.size % BLOCK)
    # The writer fails if the padding of the last record is not read.
    while source.read(CHUNK_BYTES):
        pass
    return count


def _next(source: ByteSource) -> tarfile.TarInfo | None:
    """Return the next header; None at the end mark."""
    block = _exactly(source, BLOCK)
    if not any(block):
        return None
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise ArchiveError(str(error)) from error
    if member.size < 0:
        raise ArchiveError(f"a file has a size of {member.size} bytes")
    if member.type == tarfile.GNUTYPE_SPARSE:
        raise ArchiveError("it contains a sparse file")
    if member.type in EMPTY:
        member.size = 0
    if member.type in EXTENSIONS:
        if member.size > LARGEST_EXTENSION:
            raise ArchiveError(f"an extended header has {member.size} bytes")
        content = _exactly(source, member.size)
        _skip(source, -member.size % BLOCK)
        if any(word in content for word in MEANINGFUL):
            raise ArchiveError("it contains a sparse file, or a file whose size differs from its header")
        member.size = 0
    return member


def _write(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (folder / name).open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise ArchiveError(f"it contains {folder.name}/{name} twice") from error


def _exactly(source: ByteSource, size: int) -> bytes:
    content = source.read(size)
    if len(content) < size:
        raise ArchiveError("it is truncated")
    return content


def _skip(source: ByteSource, size: int) -> None:
    while size:
        size -= len(_exactly(source, min(size, CHUNK_BYTES)))
