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

    A relative path begins at the folder that `dir_fd` has open.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in STRANGE:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit + 1)
