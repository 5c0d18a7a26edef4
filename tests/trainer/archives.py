"""Small versions of CIFAR-10's two archives in their exact layout.

The pickles are those of Python 2 and the NumPy of 2009, opcode by opcode: current picklers do not write them.
"""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

from trainer.files import CifarArchive, CifarManifest, CifarMember, Layout, sha256

IMAGE = 3 * 32 * 32
BATCH = 4
"""Images per training batch; the test batch has two."""
LAYOUT = Layout(5 * BATCH, 2, channels=3, side=32)
BINARY, PYTHON = "cifar-10-batches-bin", "cifar-10-batches-py"


def pixels(image: int) -> bytes:
    """Return an image unlike all others: the first row of each channel encodes channel and image."""
    return bytes((image * 7 + position * (1 + position // 1024)) % 256 for position in range(IMAGE))


def classes(images: range) -> bytes:
    return bytes(image * 3 % 10 for image in images)


def batches() -> dict[str, range]:
    """Return the names of the batches in both archives, and the images in each."""
    train = {f"data_batch_{number}": range((number - 1) * BATCH, number * BATCH) for number in range(1, 6)}
    return train | {"test_batch": range(5 * BATCH, 5 * BATCH + 2)}


def records(images: range) -> bytes:
    return b"".join(classes(range(image, image + 1)) + pixels(image) for image in images)


def pickled(images: range, *, columns_first: bool = False, array: bytes | None = None) -> bytes:
    """Pickle a batch as Python 2 did; `array` replaces the part of the array."""
    rows = [pixels(image) for image in images]
    if columns_first:
        rows = [bytes(row[column] for row in rows) for column in range(IMAGE)]
    labels = b"".join(b"K" + bytes([class_]) for class_ in classes(images))
    return (
        b"\x80\x02}q\x01("
        + _text(b"batch_label")
        + _text(b"training batch 1 of 5")
        + _text(b"labels")
        + b"]q\x05("
        + labels
        + b"e"
        + _text(b"data")
        + (array or _array(b"".join(rows), len(images), columns_first=columns_first))
        + _text(b"filenames")
        + b"]q\x0f("
        + b"".join(_text(b"image_%d.png" % image) for image in images)
        + b"eu."
    )


def _array(content: bytes, count: int, *, columns_first: bool) -> bytes:
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x06cnumpy\nndarray\nq\x07K\x00\x85" + _text(b"b") + b"\x87R"
        b"(K\x01"
        + b"M"
        + struct.pack("<H", count)
        + b"M"
        + struct.pack("<H", IMAGE)
        + b"\x86cnumpy\ndtype\nq\x08"
        + _text(b"u1")
        + b"K\x00K\x01\x87R(K\x03"
        + _text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x88" if columns_first else b"\x89")
        + b"T"
        + struct.pack("<i", len(content))
        + content
        + b"tb"
    )


def _text(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text


class Hostile:
    """Its pickle creates a folder when an ordinary reader loads it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.marker),)


def hostile(marker: Path) -> bytes:
    return pickle.dumps(Hostile(marker), protocol=2)


def members(form: str, changed: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Return the files with images of an archive, some of them changed."""
    if form == BINARY:
        contents = {f"{name}.bin": records(images) for name, images in batches().items()}
    else:
        contents = {name: pickled(images) for name, images in batches().items()}
    return contents | (dict(changed) if changed else {})


def packed(form: str, contents: Mapping[str, bytes]) -> bytes:
    """Pack an archive in the published order: unsorted, with files besides the batches."""
    extra = "batches.meta.txt" if form == BINARY else "batches.meta"
    listed = [extra, *sorted(contents, reverse=True), "readme.html"]
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        top = tarfile.TarInfo(form)
        top.type = tarfile.DIRTYPE
        tar.addfile(top)
        for name in listed:
            content = contents.get(name, b"airplane\n")
            entry = tarfile.TarInfo(f"{form}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def manifest(binary: Mapping[str, bytes], python: Mapping[str, bytes]) -> CifarManifest:
    """Return the manifest of archives with these files."""
    return CifarManifest("cifar10", _archive(BINARY, binary), _archive(PYTHON, python), LAYOUT)


def _archive(form: str, contents: Mapping[str, bytes]) -> CifarArchive:
    content = packed(form, contents)
    listed = [
        CifarMember(name, len(member), hashlib.md5(member, usedforsecurity=False).hexdigest())
        for name, member in sorted(contents.items())
    ]
    name = "cifar-10-binary.tar.gz" if form == BINARY else "cifar-10-python.tar.gz"
    return CifarArchive(name, len(content), sha256(content), form, tuple(listed[:5]), tuple(listed[5:]))
