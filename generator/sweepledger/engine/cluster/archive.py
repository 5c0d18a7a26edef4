"""An archive from strangers, unpacked while it arrives: matched names, small regular files, nothing else.

Only `TarInfo.frombuf` of the standard library is used: its readers follow extended headers without a bound,
in memory and in recursion, and make large what is small in the archive. No name that is wanted needs them.
"""

import re
import tarfile
from pathlib import Path
from typing import Protocol

BLOCK = tarfile.BLOCKSIZE
PORTION = 1 << 16
LARGEST_FILE = 1 << 20
"""Bytes; the collector passes over larger ones, and the launcher writes none."""
LARGEST_ARCHIVE = 2 << 30
"""Bytes of one batch: 100,000 trials with 20 kB each."""
MOST_FILES = 1_000_000
"""100,000 trials, three attempts at each, three files of each attempt."""
LARGEST_EXTENSION = 1 << 16

MEMBER = re.compile(r"(?:\./)?([0-9]{1,6})/([A-Za-z0-9-]{1,64}\.(?:json|out|err))", re.ASCII)
"""What the collector reads: `<index>/<pod uid>.json` and its output; all else stays where it is."""

REGULAR = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE})
EXTENSIONS = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE})
EMPTY = frozenset(
    {tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE}
)
"""What nothing follows, whatever size the header gives."""
MEANINGFUL = (b"GNU.sparse.", b" size=")
"""Extensions by which a file is another than its header says."""


class Refused(Exception):  # noqa: N818 - a verdict on the archive, not an error of ours
    """The archive cannot be believed; its text says why."""


class Source(Protocol):
    """Where bytes come from, as they arrive."""

    def read(self, size: int) -> bytes:
        """Give so many bytes, fewer only at the end."""


def unpack(source: Source, into: Path) -> int:
    """Keep the records and outputs of an archive in a new folder; give how many. Nothing leaves the folder.

    A link, a device, another name or a larger file is passed over: a trial owns its folder and can put
    anything there. What no trial can bring about (a file twice, a sparse one, a cut) raises Refused,
    and nothing is kept.
    """
    kept = 0
    while (member := _next(source)) is not None:
        matched = MEMBER.fullmatch(member.name)
        if matched and member.type in REGULAR and member.size <= LARGEST_FILE:
            kept += 1
            if kept > MOST_FILES:
                raise Refused(f"it has more than {MOST_FILES} files")
            _write(into / matched[1], matched[2], _exactly(source, member.size))
            _skip(source, -member.size % BLOCK)
        else:
            _skip(source, member.size + -member.size % BLOCK)
    # Tars fill up their last record, and a writer whom nobody hears to the end would fail.
    while source.read(PORTION):
        pass
    return kept


def _next(source: Source) -> tarfile.TarInfo | None:
    """Read a header; None at the end mark."""
    block = _exactly(source, BLOCK)
    if not any(block):
        return None
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise Refused(str(error)) from error
    if member.size < 0:
        raise Refused(f"a file has {member.size} bytes")
    if member.type == tarfile.GNUTYPE_SPARSE:
        raise Refused("it has a sparse file")
    if member.type in EMPTY:
        member.size = 0
    if member.type in EXTENSIONS:
        if member.size > LARGEST_EXTENSION:
            raise Refused(f"a header has {member.size} bytes")
        content = _exactly(source, member.size)
        _skip(source, -member.size % BLOCK)
        if any(word in content for word in MEANINGFUL):
            raise Refused("it has a sparse file, or one whose size is not what its header says")
        member.size = 0
    return member


def _write(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (folder / name).open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise Refused(f"it has {folder.name}/{name} twice") from error


def _exactly(source: Source, size: int) -> bytes:
    content = source.read(size)
    if len(content) < size:
        raise Refused("it is cut off")
    return content


def _skip(source: Source, size: int) -> None:
    while size:
        size -= len(_exactly(source, min(size, PORTION)))
