"""The IDX format in which MNIST and Fashion-MNIST are published: their four files, and the sums of these."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from trainer import files
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.images import CLASSES, Dataset, Images, Layout

SIDE = 28
"""Pixels, of an image's edge."""
LAYOUT = Layout(60_000, 10_000, channels=1, side=SIDE)
UNSIGNED_BYTES = b"\0\0\x08"
"""How a file of bytes starts; then the number of dimensions, and each as a big-endian 32-bit number."""


@dataclass(frozen=True, slots=True)
class IdxFile:
    """A published file, unpacked (a `.gz` of it may be packed by anybody): its name, length and sum."""

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
    layout: Layout = LAYOUT
    prepared: str | None = None
    """SHA-256 of the images and classes in the order of the prepared file."""

    @property
    def files(self) -> tuple[IdxFile, ...]:
        """List the four."""
        return self.train_images, self.train_labels, self.test_images, self.test_labels

    @property
    def digest(self) -> str:
        """Stand for all four: the sum of what `sha256sum *` prints in a folder of them, unpacked."""
        return files.digest({file.name: file.sha256 for file in self.files})

    @property
    def digests(self) -> tuple[str, ...]:
        """List the digests of all forms in which the dataset is published: one."""
        return (self.digest,)


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
    prepared="06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
)

FASHION_MNIST = Manifest(
    "fashion-mnist",
    IdxFile(
        "train-images-idx3-ubyte",
        47_040_016,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    ),
    IdxFile(
        "train-labels-idx1-ubyte",
        60_008,
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    ),
    IdxFile(
        "t10k-images-idx3-ubyte",
        7_840_016,
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    ),
    IdxFile(
        "t10k-labels-idx1-ubyte",
        10_008,
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    prepared="ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
)


def load(folder: Path, manifest: Manifest) -> Dataset | None:
    """Read and verify the four files; None where there is none of them. Raises TrialError."""
    missing = [file.name for file in manifest.files if not present(folder, file)]
    if len(missing) == len(manifest.files):
        return None
    # Some of the four is an accident: to train on something else instead would be less than was asked for.
    if missing:
        message = f"must hold all four IDX files or none, but lacks {', '.join(missing)}"
        raise TrialError([Problem(str(folder), message, BAD_SWEEP)])
    return Dataset(
        manifest.name,
        manifest.digest,
        _images(folder, manifest.train_images, manifest.train_labels),
        _images(folder, manifest.test_images, manifest.test_labels),
    )


def present(folder: Path, file: IdxFile) -> Path | None:
    """Find the file as it is or with `.gz` added."""
    candidates = (folder / file.name, folder / f"{file.name}.gz")
    return next((path for path in candidates if path.exists()), None)


def read(folder: Path, file: IdxFile, *, item: tuple[int, ...]) -> memoryview:
    """Read the verified content of a file whose items have the given shape. Raises TrialError."""
    path = present(folder, file) or folder / file.name
    content = files.verified(files.read(path, limit=file.length), file.sha256, path)
    shape, start = _header(content)
    if shape is None or shape[1:] != item or len(content) - start != math.prod(shape):
        wanted = " x ".join(["count", *map(str, item)])
        message = f"must be an IDX file of {wanted} bytes, got dimensions {shape} and {len(content)} bytes"
        raise TrialError([Problem(str(path), message, BAD_SWEEP)])
    return memoryview(content)[start:]


def _images(folder: Path, images: IdxFile, labels: IdxFile) -> Images:
    found = Images(
        read(folder, images, item=(SIDE, SIDE)), read(folder, labels, item=()), channels=1, side=SIDE
    )
    # The sums vouch for the published files; this holds a manifest of other files to the same.
    if len(found.pixels) != found.count * SIDE * SIDE or max(found.labels, default=CLASSES) >= CLASSES:
        message = f"must hold one class from 0 to {CLASSES - 1} for each of the images, got {found.count}"
        raise TrialError([Problem(str(folder / labels.name), message, BAD_SWEEP)])
    return found


def _header(content: bytes) -> tuple[tuple[int, ...] | None, int]:
    """Give the dimensions and where the items start; None where this is no IDX file of bytes."""
    dimensions = content[3] if content[:3] == UNSIGNED_BYTES and len(content) > len(UNSIGNED_BYTES) else 0
    start = 4 + 4 * dimensions
    if not dimensions or len(content) < start:
        return None, 0
    return struct.unpack(f">{dimensions}I", content[4:start]), start
