"""The IDX format in which MNIST is published, and the sums of its four files. Knows one format, no splits."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from trainer import files
from trainer.contract import BAD_SWEEP, Problem, TrialError

UNSIGNED_BYTES = b"\0\0\x08"
"""How a file of bytes starts; then the number of dimensions, and each as a big-endian 32-bit number."""


@dataclass(frozen=True, slots=True)
class IdxFile:
    """A published file, not packed: its name, length and sum."""

    name: str
    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The four files of a dataset."""

    name: str
    train_images: IdxFile
    train_labels: IdxFile
    test_images: IdxFile
    test_labels: IdxFile

    @property
    def files(self) -> tuple[IdxFile, ...]:
        """List the four in the order of the digest."""
        return self.train_images, self.train_labels, self.test_images, self.test_labels

    @property
    def digest(self) -> str:
        """Stand for all four: the sum of what `sha256sum` prints for them, unpacked, in this order."""
        listing = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
        return "sha256:" + files.sha256(listing.encode())


MNIST = Manifest(
    "mnist",
    IdxFile(
        "train-images-idx3-ubyte",
        47_040_016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    IdxFile(
        "train-labels-idx1-ubyte",
        60_008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    IdxFile(
        "t10k-images-idx3-ubyte",
        7_840_016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    IdxFile(
        "t10k-labels-idx1-ubyte",
        10_008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
)


def present(folder: Path, file: IdxFile) -> Path | None:
    """Find the file as it is or with `.gz` added."""
    candidates = (folder / file.name, folder / f"{file.name}.gz")
    return next((path for path in candidates if path.exists()), None)


def read(folder: Path, file: IdxFile, *, item: tuple[int, ...]) -> bytes:
    """Read the verified content of a file whose items have the given shape. Raises TrialError."""
    path = present(folder, file) or folder / file.name
    content = files.verified(files.read(path, limit=file.length), file.sha256, path)
    shape, start = _header(content)
    if shape is None or shape[1:] != item or len(content) - start != math.prod(shape):
        wanted = " x ".join(["count", *map(str, item)])
        message = f"must be an IDX file of {wanted} bytes, got dimensions {shape} and {len(content)} bytes"
        raise TrialError([Problem(str(path), message, BAD_SWEEP)])
    return content[start:]


def _header(content: bytes) -> tuple[tuple[int, ...] | None, int]:
    """Give the dimensions and where the items start; None where this is no IDX file of bytes."""
    dimensions = content[3] if content[:3] == UNSIGNED_BYTES and len(content) > len(UNSIGNED_BYTES) else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(content) < start:
        return None, 0
    return struct.unpack(f">{dimensions}I", content[4:start]), start
