"""CIFAR-10 as it is published: an archive of binary records or one of Python pickles, or the latter unpacked.

Each is verified by what its publisher's file is known by: the archives by SHA-256, the unpacked pickles by
length and MD5 (no better sums of theirs are published; MD5 still cannot be met by somebody else's file).
Of the unpacked binary records no sums are known, so they are refused.
"""

import hashlib
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainer import files, pickles
from trainer.contract import BAD_SWEEP, Problem, TrialError
from trainer.images import CLASSES, Dataset, Images, Layout


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive: its length and, where published, its MD5."""

    name: str
    length: int
    md5: str | None = None


@dataclass(frozen=True, slots=True)
class Archive:
    """A published archive, and where in it the images are."""

    file: str
    length: int
    sha256: str
    folder: str
    train: tuple[Member, ...]
    test: tuple[Member, ...]

    @property
    def digest(self) -> str:
        """Stand for the archive: the sum of what `sha256sum *` prints in a folder that holds it alone."""
        return files.digest({self.file: self.sha256})


@dataclass(frozen=True, slots=True)
class Manifest:
    """The two archives of one dataset."""

    name: str
    binary: Archive
    python: Archive
    layout: Layout
    prepared: str | None = None
    """SHA-256 of the images and classes in the order of the prepared file; None where nobody has told it."""

    @property
    def digests(self) -> tuple[str, ...]:
        """List the digests of all forms in which the dataset is published."""
        return self.binary.digest, self.python.digest


CIFAR10 = Manifest(
    "cifar10",
    Archive(
        "cifar-10-binary.tar.gz",
        170_052_171,
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        "cifar-10-batches-bin",
        tuple(Member(f"data_batch_{number}.bin", 30_730_000) for number in range(1, 6)),
        (Member("test_batch.bin", 30_730_000),),
    ),
    Archive(
        "cifar-10-python.tar.gz",
        170_498_071,
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        "cifar-10-batches-py",
        (
            Member("data_batch_1", 31_035_704, "c99cafc152244af753f735de768cd75f"),
            Member("data_batch_2", 31_035_320, "d4bba439e000b95fd0a9bffe97cbabec"),
            Member("data_batch_3", 31_035_999, "54ebc095f3ab1f0389bbae665268c751"),
            Member("data_batch_4", 31_035_696, "634d18415352ddfa80567beed471001a"),
            Member("data_batch_5", 31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb"),
        ),
        (Member("test_batch", 31_035_526, "40351d587109b95175f43aff81a1287e"),),
    ),
    Layout(50_000, 10_000, channels=3, side=32),
)

Batch = tuple[bytes, bytes]
"""Pixels and classes of some images."""
Decode = Callable[[bytes, int], Batch]
"""Takes the content of a file and the bytes of an image; raises ValueError in words."""


def load(folder: Path, manifest: Manifest) -> Dataset | None:
    """Read and verify the form that is there; None where there is none. Raises TrialError."""
    binary, python = manifest.binary, manifest.python
    if (folder / binary.file).exists():
        return _of_archive(folder, binary, manifest, _records)
    if (folder / python.file).exists():
        return _of_archive(folder, python, manifest, _pickled)
    if (folder / python.folder).is_dir():
        members = (*python.train, *python.test)
        contents = {member.name: _unpacked(folder / python.folder, member) for member in members}
        return _dataset(contents, folder / python.folder, python, manifest, _pickled)
    if (folder / binary.folder).is_dir():
        message = "cannot be verified: no sums of these unpacked files are known"
        hint = f"put {binary.file}, from which they came, beside the folder"
        raise TrialError([Problem(str(folder / binary.folder), message, BAD_SWEEP, hint)])
    return None


def _of_archive(folder: Path, archive: Archive, manifest: Manifest, decode: Decode) -> Dataset:
    path = folder / archive.file
    with files.verified_stream(path, length=archive.length, expected=archive.sha256) as stream:
        try:
            contents = dict(_members(stream, archive))
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise files.wrong(path, f"must be a tar archive packed by gzip, but {error}") from error
    missing = [member.name for member in (*archive.train, *archive.test) if member.name not in contents]
    if missing:
        raise files.wrong(path, f"must hold {archive.folder}/{missing[0]} in its whole length, but does not")
    return _dataset(contents, path, archive, manifest, decode)


def _members(stream: BinaryIO, archive: Archive) -> Iterator[tuple[str, bytes]]:
    """Give the wanted files of an archive in whatever order they come; nothing is unpacked to disk."""
    wanted = {f"{archive.folder}/{member.name}": member for member in (*archive.train, *archive.test)}
    with tarfile.open(fileobj=stream, mode="r|gz") as tar:
        for entry in tar:
            member = wanted.get(entry.name)
            content = tar.extractfile(entry) if member is not None and entry.isreg() else None
            if member is not None and content is not None and entry.size == member.length:
                yield member.name, content.read()


def _unpacked(folder: Path, member: Member) -> bytes:
    path = folder / member.name
    content = files.read(path, limit=member.length)
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if len(content) != member.length or found != member.md5:
        raise files.wrong(
            path,
            f"must have {member.length} bytes and MD5 {member.md5}, got {len(content)} bytes and {found}",
        )
    return content


def _dataset(
    contents: dict[str, bytes], path: Path, archive: Archive, manifest: Manifest, decode: Decode
) -> Dataset:
    layout = manifest.layout

    def images(members: tuple[Member, ...], count: int) -> Images:
        batches = []
        for member in members:
            try:
                batches.append(decode(contents[member.name], layout.image))
            except ValueError as error:
                raise files.wrong(path, f"{member.name} {error}") from error
        pixels, labels = (b"".join(parts) for parts in zip(*batches, strict=True))
        if len(labels) != count or max(labels) >= CLASSES:
            message = f"must hold {count} images of classes 0 to {CLASSES - 1}, got {len(labels)} of other"
            raise files.wrong(path, message)
        return Images(pixels, labels, channels=layout.channels, side=layout.side)

    return Dataset(
        manifest.name,
        archive.digest,
        images(archive.train, layout.train),
        images(archive.test, layout.test),
    )


def _records(content: bytes, image: int) -> Batch:
    """Take records apart: the class, then the pixels, without anything between."""
    size = image + 1
    if len(content) % size:
        raise ValueError(f"must be records of {size} bytes, got {len(content)} bytes")
    view = memoryview(content)
    pixels = b"".join(view[start + 1 : start + size] for start in range(0, len(content), size))
    return pixels, content[::size]


def _pickled(content: bytes, image: int) -> Batch:
    """Take the array and the list of classes out of a pickle."""
    try:
        found = pickles.load(content)
    except pickles.RefusedError as error:
        raise ValueError(f"must be a pickle of numbers, text and arrays alone, but {error}") from error
    pixels = found.get(b"data") if isinstance(found, dict) else None
    labels = found.get(b"labels") if isinstance(found, dict) else None
    if not isinstance(pixels, pickles.Array) or not isinstance(labels, list):
        raise ValueError("must hold an array named data and a list named labels")  # noqa: TRY004 of a file
    if pixels.shape != (len(labels), image) or not all(type(label) is int for label in labels):
        raise ValueError(f"must hold {image} pixels for each class, got an array of {pixels.shape}")
    return pixels.content, bytes(labels)
