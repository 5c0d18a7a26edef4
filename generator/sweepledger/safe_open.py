"""Opening a file that a stranger may have put there: no link is followed, no device is waited for.

Standard library only; both rims need it.
"""

import errno
import os
import stat
from pathlib import Path

STRANGE = frozenset({errno.ELOOP, errno.ENOENT, errno.ENXIO, errno.EISDIR, errno.ENOTDIR})
"""What opening a link, a device, a folder or nothing answers. All else is the file system's failure."""


def read_regular(path: Path | str, limit: int, *, dir_fd: int | None = None) -> bytes | None:
    """Read a regular file, at most one byte more than `limit`; None for anything else. Raises OSError.

    One that changes meanwhile is read once again. A relative path begins at the folder that `dir_fd` has
    open.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in STRANGE:
            return None
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        content = _content(descriptor, found.st_size, limit)
        now = os.fstat(descriptor)
        if (found.st_size, found.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
            # Somebody wrote meanwhile: half of the old and half of the new would be nobody's.
            os.lseek(descriptor, 0, os.SEEK_SET)
            content = _content(descriptor, now.st_size, limit)
        return content
    finally:
        os.close(descriptor)


def _content(descriptor: int, size: int, limit: int) -> bytes:
    """Read to the end, or one byte beyond the limit. The size is only likely; a file may have grown since."""
    content = b""
    while len(content) <= limit:
        wanted = min(max(size - len(content), 0), limit - len(content)) + 1
        chunk = os.read(descriptor, wanted)
        content = content + chunk if content else chunk
        if len(chunk) < wanted:
            break
    return content
