from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.trainer import archives
from tests.trainer.archives import BATCH, FILE, IMAGE, members, packed
from trainer.contract import BAD_SWEEP, TrialError
from trainer.data import CIFAR10
from trainer.files import CifarManifest

TRAIN, TEST = range(5 * BATCH), range(5 * BATCH, 5 * BATCH + 2)


@pytest.fixture(scope="module")
def published() -> CifarManifest:
    return archives.manifest(members())


def archive(folder: Path, contents: Mapping[str, bytes]) -> Path:
    (folder / FILE).write_bytes(packed(contents))
    return folder


def refusal(folder: Path, manifest: CifarManifest) -> str:
    with pytest.raises(TrialError) as caught:
        manifest.load(folder)
    assert caught.value.exit_code == BAD_SWEEP
    return str(caught.value)


def test_the_archive_gives_every_image_in_order(
    tmp_path: Path, published: CifarManifest
) -> None:
    assert published.load(tmp_path) is None

    dataset = published.load(archive(tmp_path, members()))

    assert dataset is not None
    assert dataset.train.pixels == b"".join(map(archives.pixels, TRAIN))
    assert dataset.train.labels == archives.classes(TRAIN)
    assert dataset.test.pixels == b"".join(map(archives.pixels, TEST))
    assert dataset.test.labels == archives.classes(TEST)
    assert (dataset.name, dataset.train.channels, dataset.train.side) == ("cifar10", 3, 32)


def test_an_archive_with_a_wrong_sum_is_not_opened(
    tmp_path: Path, published: CifarManifest
) -> None:
    path = archive(tmp_path, members()) / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")

    wrong_sum = refusal(tmp_path, published)
    path.write_bytes(whole[:-100])
    truncated = refusal(tmp_path, published)

    assert wrong_sum.startswith(f"{path}: must have SHA-256 ")
    assert truncated.startswith(f"{path}: must have {len(whole)} bytes, got {len(whole) - 100}\n")


@pytest.mark.parametrize("batch", [b"", bytes(IMAGE), bytes(2 * (IMAGE + 1))], ids=["empty", "cut", "fewer"])
def test_a_batch_without_all_its_records_is_rejected(tmp_path: Path, batch: bytes) -> None:
    contents = members() | {"data_batch_1.bin": batch}

    message = refusal(archive(tmp_path, contents), archives.manifest(contents))

    assert f"must hold 20 records of {IMAGE + 1} bytes, got {16 * (IMAGE + 1) + len(batch)} bytes" in message


def test_the_published_manifest_is_of_sixty_thousand_images() -> None:
    assert (CIFAR10.layout.train, CIFAR10.layout.test) == (50_000, 10_000)
    assert [Path(name).name for name in (*CIFAR10.train, *CIFAR10.test)] == sorted(members())
