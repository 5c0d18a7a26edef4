"""A small version of CIFAR-10's binary archive in its exact layout."""

import gzip
import io
import tarfile
from collections.abc import Mapping

from trainer.files import CifarManifest, Layout, sha256

IMAGE = 3 * 32 * 32
BATCH = 4
"""Images per training batch; the test batch has two."""
LAYOUT = Layout(5 * BATCH, 2, channels=3, side=32)
FOLDER, FILE = "cifar-10-batches-bin", "cifar-10-binary.tar.gz"


def pixels(image: int) -> bytes:
    """Return an image unlike all others: the first row of each channel encodes channel and image."""
    return bytes((image * 7 + position * (1 + position // 1024)) % 256 for position in range(IMAGE))


def classes(images: range) -> bytes:
    return bytes(image * 3 % 10 for image in images)


def members() -> dict[str, bytes]:
    """Return the files with images of the archive by name."""
    train = {
        f"data_batch_{number}.bin": range((number - 1) * BATCH, number * BATCH) for number in range(1, 6)
    }
    batches = train | {"test_batch.bin": range(5 * BATCH, 5 * BATCH + 2)}
    return {
        name: b"".join(classes(range(image, image + 1)) + pixels(image) for image in images)
        for name, images in batches.items()
    }


def packed(contents: Mapping[str, bytes]) -> bytes:
    """Pack the archive in the published order: unsorted, with files besides the batches."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        top = tarfile.TarInfo(FOLDER)
        top.type = tarfile.DIRTYPE
        tar.addfile(top)
        for name in ("batches.meta.txt", *sorted(contents, reverse=True), "readme.html"):
            content = contents.get(name, b"airplane\n")
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def manifest(contents: Mapping[str, bytes], prepared: str | None = None) -> CifarManifest:
    content = packed(contents)
    names = [f"{FOLDER}/{name}" for name in sorted(members())]
    train, test = tuple(names[:5]), tuple(names[5:])
    return CifarManifest("cifar10", FILE, len(content), sha256(content), train, test, LAYOUT, prepared)
