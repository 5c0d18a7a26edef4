"""Opens and reads files at untrusted paths: no symbolic link is followed, no device blocks.

Standard library only.
"""

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER_FLAGS = FILE_FLAGS | os.O_DIRECTORY

NOT_REGULAR_ERRNOS = frozenset({errno.ELOOP, errno.ENOENT, errno.ENXIO, errno.EISDIR, errno.ENOTDIR})
"""Errors of opening a link, a device, a folder or a missing file; any other is a failure of the file system."""


def read_regular(path: Path | str, limit: int, *, dir_fd: int | None = None) -> bytes | None:
    """Return the content of a regular file, at most `limit` + 1 bytes; None for anything else. Raises OSError.

    A file that changes during the read is read a second time. A relative path starts at the open folder
    `dir_fd`.
    """
    try:
        descriptor = os.open(path, FILE_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in NOT_REGULAR_ERRNOS:
            return None
        raise
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return None
        content = _content(descriptor, before.st_size, limit)
        after = os.fstat(descriptor)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            # The file was written during the read: the content may mix two versions.
            os.lseek(descriptor, 0, os.SEEK_SET)
            content = _content(descriptor, after.st_size, limit)
        return content
    finally:
        os.close(descriptor)


def open_below(folder: Path | str, parts: Sequence[str], flags: int) -> int:
    """Open a path below a folder, of which no part may be a link; return the descriptor. Raises OSError."""
    descriptor = os.open(folder, FOLDER_FLAGS)
    for number, part in enumerate(parts, start=1):
        parent = descriptor
        try:
            descriptor = os.open(part, flags if number == len(parts) else FOLDER_FLAGS, dir_fd=parent)
        finally:
            os.close(parent)
    return descriptor


def _content(descriptor: int, size: int, limit: int) -> bytes:
    """Read to the end, or one byte beyond the limit. The file may have grown since `size` was read."""
    content = b""
    while len(content) <= limit:
        wanted = min(max(size - len(content), 0), limit - len(content)) + 1
        chunk = os.read(descriptor, wanted)
        content = content + chunk if content else chunk
        if len(chunk) < wanted:
            break
    return content
