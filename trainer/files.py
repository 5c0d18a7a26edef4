"""Files: read whole and verified, written atomically, and the formats in which datasets are published.

Those are IDX (MNIST, Fashion-MNIST) and CIFAR-10's archives of binary records or of Python pickles. Which
datasets exist, and what their checksums are, is in `data`.
"""

import gzip
import hashlib
import io
import math
import mmap
import os
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn

from trainer.contract import BAD_SWEEP, STORAGE_FAILED, Problem, TrialError

CLASSES = 10
"""The number of classes of every dataset."""
UNSIGNED_BYTES = b"\0\0\x08"
"""Magic number of an IDX file of bytes; the dimensions follow as big-endian 32-bit numbers."""
UNSIGNED_BYTE = b"u1"
"""NumPy's name for the type of a byte."""
ARRAY_STATE = 5
"""Length of a pickled array's state: version, shape, type, column order, content."""


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


@contextmanager
def _verified_stream(path: Path, archive: "CifarArchive") -> Iterator[BinaryIO]:
    """Open a file that is too large for memory, after verifying its checksum. Raises TrialError."""
    try:
        with path.open("rb") as stream:
            _check_length(path, stream, archive.length)
            actual = hashlib.file_digest(stream, "sha256").hexdigest()
            if actual != archive.sha256:
                message = f"must have SHA-256 {archive.sha256}, got {actual} ({archive.length} bytes)"
                raise wrong_file(path, message)
            stream.seek(0)
            yield stream
    except OSError as error:
        raise _storage_error(path, "cannot be read", error) from error


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
class IdxFile:
    """A published file, decompressed (the sum of a `.gz` depends on who compressed it)."""

    name: str
    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class IdxManifest:
    """The four IDX files of a dataset."""

    name: str
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]
    """Training images, training labels, test images, test labels."""
    layout: Layout
    prepared: str | None = None
    """SHA-256 of the images and classes in the order of the prepared file."""

    @property
    def digest(self) -> str:
        """One digest for all four: the sum of what `sha256sum *` prints in a folder of them, decompressed."""
        return digest_of({file.name: file.sha256 for file in self.files})

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of all forms in which the dataset is published: one."""
        return (self.digest,)

    def load(self, folder: Path) -> Dataset | None:
        """Read and verify the four files; None if the folder has none of them. Raises TrialError."""
        missing = [file.name for file in self.files if idx_path(folder, file) is None]
        if len(missing) == len(self.files):
            return None
        # Some of the four are an accident; training on other data instead would hide it.
        if missing:
            message = f"must hold all four IDX files or none, but lacks {', '.join(missing)}"
            raise TrialError([Problem(str(folder), message, BAD_SWEEP)])
        train_images, train_labels, test_images, test_labels = self.files
        return Dataset(
            self.name,
            self.digest,
            self._images(folder, train_images, train_labels),
            self._images(folder, test_images, test_labels),
        )

    def _images(self, folder: Path, images: IdxFile, labels: IdxFile) -> Images:
        side = self.layout.side
        read = Images(
            _idx_items(folder, images, (side, side)), _idx_items(folder, labels, ()), channels=1, side=side
        )
        # The checksums prove this for the published files; a manifest of other files is checked too.
        if len(read.pixels) != read.count * side * side or max(read.labels, default=CLASSES) >= CLASSES:
            message = f"must hold one class from 0 to {CLASSES - 1} for each image, got {read.count}"
            raise TrialError([Problem(str(folder / labels.name), message, BAD_SWEEP)])
        return read


def idx_path(folder: Path, file: IdxFile) -> Path | None:
    """Return the path of the file, plain or with `.gz` added; None if there is neither."""
    candidates = (folder / file.name, folder / f"{file.name}.gz")
    return next((path for path in candidates if path.exists()), None)


def _idx_items(folder: Path, file: IdxFile, item: tuple[int, ...]) -> memoryview:
    """Return the verified content of a file whose items have the given shape. Raises TrialError."""
    path = idx_path(folder, file) or folder / file.name
    content = verified(read(path, limit=file.length), path, expected=file.sha256)
    shape, start = _idx_header(content)
    if shape is None or shape[1:] != item or len(content) - start != math.prod(shape):
        wanted = " x ".join(["count", *map(str, item)])
        message = f"must be an IDX file of {wanted} bytes, got dimensions {shape} and {len(content)} bytes"
        raise TrialError([Problem(str(path), message, BAD_SWEEP)])
    return memoryview(content)[start:]


def _idx_header(content: bytes) -> tuple[tuple[int, ...] | None, int]:
    """Return the dimensions and where the items start; None if this is not an IDX file of bytes."""
    dimensions = content[3] if content[:3] == UNSIGNED_BYTES and len(content) > len(UNSIGNED_BYTES) else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(content) < start:
        return None, 0
    return struct.unpack(f">{dimensions}I", content[4:start]), start


# CIFAR-10


@dataclass(frozen=True, slots=True)
class CifarMember:
    """A file of an archive: its length and, if published, its MD5."""

    name: str
    length: int
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class CifarArchive:
    """A published archive, and where the images are in it."""

    file: str
    length: int
    sha256: str
    folder: str
    train: tuple[CifarMember, ...]
    test: tuple[CifarMember, ...]

    @property
    def members(self) -> tuple[CifarMember, ...]:
        """All files with images."""
        return (*self.train, *self.test)

    @property
    def digest(self) -> str:
        """The digest of a folder that holds the archive alone."""
        return digest_of({self.file: self.sha256})


@dataclass(frozen=True, slots=True)
class CifarManifest:
    """The two archives in which a dataset is published.

    An archive is verified by its SHA-256. The files of the Python archive, if it has been unpacked, are
    verified by length and MD5: no better checksums of them are published, and nobody can yet construct a
    file for a given MD5. The unpacked binary files have no published checksums, so they are rejected.
    """

    name: str
    binary: CifarArchive
    python: CifarArchive
    layout: Layout
    prepared: str | None = None
    """SHA-256 of the images and classes in the order of the prepared file; None if unknown."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of all forms in which the dataset is published."""
        return self.binary.digest, self.python.digest

    def load(self, folder: Path) -> Dataset | None:
        """Read and verify whichever form the folder holds; None if it holds none. Raises TrialError."""
        binary, python = self.binary, self.python
        if (folder / binary.file).exists():
            contents = _archive_contents(folder / binary.file, binary)
            return self._dataset(contents, folder / binary.file, archive=binary, decode=_records)
        if (folder / python.file).exists():
            contents = _archive_contents(folder / python.file, python)
            return self._dataset(contents, folder / python.file, archive=python, decode=_pickled)
        if (folder / python.folder).is_dir():
            contents = {member.name: _unpacked(folder / python.folder, member) for member in python.members}
            return self._dataset(contents, folder / python.folder, archive=python, decode=_pickled)
        if (folder / binary.folder).is_dir():
            message = "cannot be verified: no checksums of these unpacked files are published"
            hint = f"put {binary.file}, from which they came, beside the folder"
            raise TrialError([Problem(str(folder / binary.folder), message, BAD_SWEEP, hint)])
        return None

    def _dataset(
        self, contents: dict[str, bytes], path: Path, *, archive: CifarArchive, decode: "_Decode"
    ) -> Dataset:
        layout = self.layout

        def images(members: tuple[CifarMember, ...], count: int) -> Images:
            batches = []
            for member in members:
                try:
                    batches.append(decode(contents[member.name], layout.image))
                except ValueError as error:
                    raise wrong_file(path, f"{member.name} {error}") from error
            pixels, labels = (b"".join(parts) for parts in zip(*batches, strict=True))
            if len(labels) != count or max(labels) >= CLASSES:
                message = f"must hold {count} images of classes 0 to {CLASSES - 1}, got {len(labels)}"
                raise wrong_file(path, message)
            return Images(pixels, labels, channels=layout.channels, side=layout.side)

        train, test = images(archive.train, layout.train), images(archive.test, layout.test)
        return Dataset(self.name, archive.digest, train, test)


_Decode = Callable[[bytes, int], tuple[bytes, bytes]]
"""Takes a file's content and the bytes per image; returns pixels and classes, or raises ValueError."""


def _archive_contents(path: Path, archive: CifarArchive) -> dict[str, bytes]:
    """Return the files with images of an archive by name; nothing is unpacked to disk."""
    wanted = {f"{archive.folder}/{member.name}": member for member in archive.members}
    contents: dict[str, bytes] = {}
    with _verified_stream(path, archive) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|gz") as tar:
                for entry in tar:
                    member = wanted.get(entry.name)
                    content = tar.extractfile(entry) if member is not None and entry.isreg() else None
                    if member is not None and content is not None and entry.size == member.length:
                        contents[member.name] = content.read()
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise wrong_file(path, f"must be a tar archive compressed with gzip, but {error}") from error
    missing = [member.name for member in archive.members if member.name not in contents]
    if missing:
        raise wrong_file(path, f"must hold {archive.folder}/{missing[0]} in its full length, but does not")
    return contents


def _unpacked(folder: Path, member: CifarMember) -> bytes:
    path = folder / member.name
    content = read(path, limit=member.length)
    actual = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if len(content) != member.length or actual != member.md5:
        expected = f"{member.length} bytes and MD5 {member.md5}"
        raise wrong_file(path, f"must have {expected}, got {len(content)} bytes and {actual}")
    return content


def _records(content: bytes, image: int) -> tuple[bytes, bytes]:
    """Split records: one byte for the class, then the pixels, without gaps."""
    size = image + 1
    if len(content) % size:
        raise ValueError(f"must be records of {size} bytes, got {len(content)} bytes")
    view = memoryview(content)
    pixels = b"".join(view[start + 1 : start + size] for start in range(0, len(content), size))
    return pixels, content[::size]


def _pickled(content: bytes, image: int) -> tuple[bytes, bytes]:
    """Return the array and the list of classes of a pickle."""
    try:
        batch = unpickle(content)
    except RefusedPickleError as error:
        raise ValueError(f"must be a pickle of numbers, text and arrays only, but {error}") from error
    pixels = batch.get(b"data") if isinstance(batch, dict) else None
    labels = batch.get(b"labels") if isinstance(batch, dict) else None
    if not isinstance(pixels, PickledArray) or not isinstance(labels, list):
        raise ValueError("must hold an array named data and a list named labels")  # noqa: TRY004 of a file
    if pixels.shape != (len(labels), image) or not all(type(label) is int for label in labels):
        raise ValueError(f"must hold {image} pixels for each class, got an array of {pixels.shape}")
    return pixels.content, bytes(labels)


# Pickles of numbers, text and arrays of bytes. A pickle is a program, so this reader offers it only three
# callables, which are stand-ins that keep their arguments. It neither needs nor reaches NumPy.


class RefusedPickleError(Exception):
    """The pickle holds something else, or is not a complete pickle; says what."""


class PickledArray:
    """An array of unsigned bytes: its shape, and its content row by row."""

    __slots__ = ("content", "shape")

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.content = b""

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != ARRAY_STATE:
            _refuse("an array in an unknown form")
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _Type) or not isinstance(content, bytes) or not _is_shape(shape):
            _refuse("an array of something other than bytes")
        if math.prod(shape) != len(content):
            _refuse(f"an array of {shape} with {len(content)} bytes")
        self.shape = shape
        if columns_first:
            rows = shape[0]
            content = b"".join(content[row::rows] for row in range(rows))
        self.content = content


class _Type:
    """Stands in for numpy.dtype; accepts unsigned bytes only."""

    __slots__ = ()

    def __init__(self, name: object, *_: object) -> None:
        if name not in (UNSIGNED_BYTE, UNSIGNED_BYTE.decode()):
            _refuse(f"an array of {name!r}")

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and flags, which do not matter for single bytes."""


def _reconstruct(*_: object) -> PickledArray:
    """Stand in for NumPy's function of this name: return an empty array, whose state follows."""
    return PickledArray()


class _Reader(pickle.Unpickler):
    KNOWN: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): PickledArray,
        ("numpy", "dtype"): _Type,
    }

    def find_class(self, module: str, name: str, /) -> Any:
        """Return the stand-in; refuse any other name."""
        known = self.KNOWN.get((module, name))
        if known is None:
            _refuse(f"{module}.{name}")
        return known


def unpickle(content: bytes) -> object:
    """Read a pickle; text of Python 2 becomes bytes. Raises RefusedPickleError."""
    try:
        return _Reader(io.BytesIO(content), encoding="bytes").load()
    except RefusedPickleError:
        raise
    # The errors that broken or hostile pickles cause have no common class.
    except Exception as error:
        raise RefusedPickleError(f"it is damaged ({type(error).__name__})") from error


def _is_shape(shape: object) -> bool:
    if not isinstance(shape, tuple) or not shape:
        return False
    return all(isinstance(length, int) and length > 0 for length in shape)


def _refuse(what: str) -> NoReturn:
    raise RefusedPickleError(f"it holds {what}")
