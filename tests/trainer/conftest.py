import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer import sources
from trainer.data import MNIST, ROW, SIDE, load
from trainer.files import Dataset, IdxManifest, Images

EVERY = 20

# As the command does: threads that spin while they wait are slow when tests run in parallel.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session")
def mnist_5k() -> Dataset:
    return load("mnist", None)


@pytest.fixture(scope="session")
def few(mnist_5k: Dataset) -> Dataset:
    """Every twentieth real digit: 200 to train on, 50 to test on."""
    return Dataset("few", "sha256:few", thinned(mnist_5k.train), thinned(mnist_5k.test))


@pytest.fixture(scope="session")
def rows(mnist_5k: Dataset) -> bytes:
    """The 5,000 rows in the order of the file: per class 400 to train on, then 100 to test on."""
    train, test = as_rows(mnist_5k.train), as_rows(mnist_5k.test)
    return b"".join(
        train[class_ * 400 * ROW : (class_ + 1) * 400 * ROW]
        + test[class_ * 100 * ROW : (class_ + 1) * 100 * ROW]
        for class_ in range(10)
    )


@pytest.fixture(scope="session")
def mnist_files() -> Path:
    return published(MNIST)


@pytest.fixture
def folder_with(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def put(name: str, content: bytes) -> Path:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        return folder

    return put


def published(manifest: IdxManifest) -> Path:
    folder = sources.folder(manifest)
    if not folder.is_dir():
        pytest.skip(
            f"the images of {manifest.name} are missing; to fetch them, run python -m tests.trainer.sources"
        )
    return folder


def thinned(images: Images) -> Images:
    size = SIDE * SIDE
    kept = range(0, images.count, EVERY)
    return Images(
        b"".join(images.pixels[number * size : (number + 1) * size] for number in kept),
        bytes(images.labels[number] for number in kept),
        channels=1,
        side=SIDE,
    )


def as_rows(images: Images) -> bytes:
    size = SIDE * SIDE
    return b"".join(
        bytes(images.pixels[number * size : (number + 1) * size]) + bytes(images.labels[number : number + 1])
        for number in range(images.count)
    )
