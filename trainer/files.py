"""Bytes from and to disk: read whole and verified, written whole or not at all. Knows no images."""

import gzip
import hashlib
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trainer.contract import BAD_SWEEP, STORAGE_FAILED, Problem, TrialError


def sha256(content: bytes | memoryview) -> str:
    """Hash bytes: 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def digest(sums: Mapping[str, str]) -> str:
    """Stand for several files: `sha256:` and the sum of what `sha256sum` prints for them, sorted by name."""
    listing = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    return f"sha256:{sha256(listing.encode())}"


def read(path: Path, *, limit: int) -> bytes:
    """Read a file of at most `limit` bytes, unpacked where its name ends in `.gz`.

    One byte more is read of a longer one, so that its sum cannot match. Raises TrialError.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TrialError(
            [Problem(str(path), f"must be a whole gzip file, but {error}", BAD_SWEEP)]
        ) from error
    except OSError as error:
        raise storage_error(path, "cannot be read", error) from error


def verified(content: bytes, expected: str, path: Path) -> bytes:
    """Give the content back if it has the expected sum. Raises TrialError with both sums."""
    found = sha256(content)
    if found != expected:
        raise wrong(path, f"must have SHA-256 {expected}, got {found} ({len(content)} bytes)")
    return content


@contextmanager
def verified_stream(path: Path, *, length: int, expected: str) -> Iterator[BinaryIO]:
    """Open a file that is too large to hold, after its sum has been taken. Raises TrialError."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != length:
                raise wrong(path, f"must have {length} bytes, got {size}")
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != expected:
                raise wrong(path, f"must have SHA-256 {expected}, got {found} ({size} bytes)")
            stream.seek(0)
            yield stream
    except OSError as error:
        raise storage_error(path, "cannot be read", error) from error


def mapped(path: Path, *, length: int) -> memoryview:
    """Map a file of exactly this length: all processes that do so share its pages. Raises TrialError.

    Writable for torch's sake, which warns otherwise; what is written stays in this process.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != length:
                raise wrong(path, f"must have {length} bytes, got {size}")
            return memoryview(mmap.mmap(stream.fileno(), length, access=mmap.ACCESS_COPY))
    except OSError as error:
        raise storage_error(path, "cannot be read", error) from error


def wrong(path: Path, message: str) -> TrialError:
    """Tell of a file that is not the one it should be."""
    hint = "the file is damaged or is another one; put the right one there, nothing was trained on it"
    return TrialError([Problem(str(path), message, BAD_SWEEP, hint)])


def write(path: Path, *parts: bytes | memoryview) -> None:
    """Put a file in place as a whole: no reader ever sees half of it. Raises TrialError."""
    temporary = path.with_name(f"{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as stream:
                stream.writelines(parts)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise storage_error(path, "cannot be written", error) from error


def storage_error(path: Path, what: str, error: OSError) -> TrialError:
    """Tell of a disk that refused."""
    return TrialError([Problem(str(path), f"{what}: {error.strerror or error}", STORAGE_FAILED)])
