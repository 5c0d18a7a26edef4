"""Files: read whole and verified, written atomically, and the formats in which datasets are published.

Those are IDX (MNIST, Fashion-MNIST) and CIFAR-10's archive of binary records. Which datasets exist, and what their
checksums are, is in `data`.
"""

import gzip
import hashlib
import mmap
import os
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainer.contract import BAD_SWEEP, STORAGE_FAILED, Problem, TrialError

CLASSES = 10
"""The number of classes of every dataset."""
IDX_FILES = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
"""The images and the classes of the two parts of a dataset, in the form of MNIST."""
IDX_IMAGES, IDX_LABELS = 16, 8
"""Bytes before the items: the magic number, and one number per dimension."""


# Any file


def sha256(content: bytes | memoryview) -> str:
    """Return the SHA-256 of bytes as 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def digest_of(sums: Mapping[str, str]) -> str:
    """Return one digest for several files: `sha256:` and the sum of what `sha256sum` prints for them."""
    listing = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    return f"sha256:{sha256(listing.encode())}"


def read(path: Path, *, limit: int) -> bytes:
    """Return the content of a file of at most `limit` bytes, decompressed if its name ends in `.gz`.

    A longer file is read up to one extra byte, so that its checksum cannot match. Raises TrialError.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"must be a complete gzip file, but {error}"
        raise TrialError([Problem(str(path), message, BAD_SWEEP)]) from error
    except OSError as error:
        raise _storage_error(path, "cannot be read", error) from error


def verified(content: bytes, path: Path, *, expected: str) -> bytes:
    """Return the content if it has the expected SHA-256. Raises TrialError with both checksums."""
    actual = sha256(content)
    if actual != expected:
        raise wrong_file(path, f"must have SHA-256 {expected}, got {actual} ({len(content)} bytes)")
    return content


def mapped(path: Path, *, length: int) -> memoryview:
    """Map a file of exactly this length; all processes that do so share its pages. Raises TrialError.

    The map is writable, because torch warns otherwise; writes stay in this process.
    """
    try:
        with path.open("rb") as stream:
            _check_length(path, stream, length)
            return memoryview(mmap.mmap(stream.fileno(), length, access=mmap.ACCESS_COPY))
    except OSError as error:
        raise _storage_error(path, "cannot be read", error) from error


def write(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file atomically, so that no reader ever sees a part of it. Raises TrialError."""
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
        raise _storage_error(path, "cannot be written", error) from error


def wrong_file(path: Path, message: str) -> TrialError:
    """Return the error for a file that is not the expected one."""
    hint = "the file is damaged or is a different one; replace it; nothing was trained on it"
    return TrialError([Problem(str(path), message, BAD_SWEEP, hint)])


def _storage_error(path: Path, what: str, error: OSError) -> TrialError:
    return TrialError([Problem(str(path), f"{what}: {error.strerror or error}", STORAGE_FAILED)])


def _check_length(path: Path, stream: BinaryIO, length: int) -> None:
    size = os.fstat(stream.fileno()).st_size
    if size != length:
        raise wrong_file(path, f"must have {length} bytes, got {size}")


# What every format is read into


@dataclass(frozen=True, slots=True)
class Layout:
    """The number, channels and size of a dataset's images."""

    train: int
    test: int
    channels: int
    side: int

    @property
    def image(self) -> int:
        """Bytes per image."""
        return self.channels * self.side * self.side

    @property
    def length(self) -> int:
        """Bytes of all images and their classes."""
        return (self.train + self.test) * (self.image + 1)


@dataclass(frozen=True, slots=True)
class Images:
    """Images and their classes: one byte per pixel, 0 to 255, and one byte per class."""

    pixels: bytes | memoryview
    """Count x channels x side x side, without gaps: in memory, or pages of a file that trials share."""
    labels: bytes | memoryview
    channels: int
    side: int

    @property
    def count(self) -> int:
        """The number of images."""
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Images to train on and images to test on."""

    name: str
    """The real name: 5,000 digits are `mnist-5k`, not `mnist`."""
    digest: str
    """`sha256:` and 64 hex digits, computed from the published files."""
    train: Images
    test: Images


# IDX


@dataclass(frozen=True, slots=True)
class IdxManifest:
    """The four IDX files of a dataset, decompressed (the sum of a `.gz` depends on who compressed it)."""

    name: str
    sums: Mapping[str, str]
    """The SHA-256 of each of the four files."""
    layout: Layout
    prepared: str | None = None
    """SHA-256 of the images and classes in the order of the prepared file."""

    @property
    def digest(self) -> str:
        """One digest for all four: the sum of what `sha256sum *` prints in a folder of them, decompressed."""
        return digest_of(self.sums)

    def load(self, folder: Path) -> Dataset | None:
        """Read and verify the four files; None if the folder has none of them. Raises TrialError."""
        missing = [name for name in self.sums if idx_path(folder, name) is None]
        if len(missing) == len(self.sums):
            return None
        # Some of the four are an accident; training on other data instead would hide it.
        if missing:
            message = f"must hold all four IDX files or none, but lacks {', '.join(missing)}"
            raise TrialError([Problem(str(folder), message, BAD_SWEEP)])
        counts = (self.layout.train, self.layout.test)
        train, test = (
            self._images(folder, *names, count) for names, count in zip(IDX_FILES, counts, strict=True)
        )
        return Dataset(self.name, self.digest, train, test)

    def _images(self, folder: Path, images: str, labels: str, count: int) -> Images:
        pixels = self._items(folder, images, IDX_IMAGES, count * self.layout.image)
        return Images(
            pixels, self._items(folder, labels, IDX_LABELS, count), channels=1, side=self.layout.side
        )

    def _items(self, folder: Path, name: str, start: int, length: int) -> memoryview:
        path = idx_path(folder, name) or folder / name
        content = verified(read(path, limit=start + length), path, expected=self.sums[name])
        return memoryview(content)[start:]


def idx_path(folder: Path, name: str) -> Path | None:
    """Return the path of the file, plain or with `.gz` added; None if there is neither."""
    candidates = (folder / name, folder / f"{name}.gz")
    return next((path for path in candidates if path.exists()), None)


# CIFAR-10


@dataclass(frozen=True, slots=True)
class CifarManifest:
    """The archive in which a dataset is published, and the files of records in it."""

    name: str
    file: str
    length: int
    sha256: str
    train: tuple[str, ...]
    """Paths in the archive. A record is one byte for the class, then the pixels; nothing is between records."""
    test: tuple[str, ...]
    layout: Layout
    prepared: str | None = None
    """SHA-256 of the images and classes in the order of the prepared file; None if unknown."""

    @property
    def digest(self) -> str:
        """The digest of a folder that holds the archive alone."""
        return digest_of({self.file: self.sha256})

    def load(self, folder: Path) -> Dataset | None:
        """Read the archive after verifying it; None if the folder has none. Raises TrialError."""
        path = folder / self.file
        if not path.exists():
            return None
        members = self._members(path)
        train = self._images(path, b"".join(members.get(name, b"") for name in self.train), self.layout.train)
        test = self._images(path, b"".join(members.get(name, b"") for name in self.test), self.layout.test)
        return Dataset(self.name, self.digest, train, test)

    def _members(self, path: Path) -> dict[str, bytes]:
        """Return the files of records by path; nothing is unpacked to disk, and the archive is not held in memory."""
        records: dict[str, bytes] = {}
        try:
            with path.open("rb") as stream:
                _check_length(path, stream, self.length)
                actual = hashlib.file_digest(stream, "sha256").hexdigest()
                if actual != self.sha256:
                    message = f"must have SHA-256 {self.sha256}, got {actual} ({self.length} bytes)"
                    raise wrong_file(path, message)
                stream.seek(0)
                with tarfile.open(fileobj=stream, mode="r|gz") as archive:
                    for entry in archive:
                        content = archive.extractfile(entry) if entry.isreg() else None
                        if content is not None and entry.name in (*self.train, *self.test):
                            records[entry.name] = content.read()
        except OSError as error:
            raise _storage_error(path, "cannot be read", error) from error
        return records

    def _images(self, path: Path, records: bytes, count: int) -> Images:
        size = self.layout.image + 1
        if len(records) != count * size:
            raise wrong_file(path, f"must hold {count} records of {size} bytes, got {len(records)} bytes")
        view = memoryview(records)
        pixels = b"".join(view[start + 1 : start + size] for start in range(0, len(records), size))
        return Images(pixels, records[::size], channels=self.layout.channels, side=self.layout.side)
