import gzip
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from trainer.contract import BAD_SWEEP, TrialError
from trainer.data import MANIFESTS, ROWS_FILE, ROWS_SHA256, SIDE, load, prepare
from trainer.files import Dataset, IdxManifest, Layout, sha256

Put = Callable[[str, bytes], Path]
SIZE = SIDE * SIDE


def idx_bytes(shape: tuple[int, ...], items: bytes) -> bytes:
    return b"\0\0\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + items


IMAGES = bytes(number % 251 for number in range(3 * SIZE))
FILES = {
    "train-images-idx3-ubyte": idx_bytes((3, SIDE, SIDE), IMAGES),
    "train-labels-idx1-ubyte": idx_bytes((3,), b"\0\x05\x09"),
    "t10k-images-idx3-ubyte": idx_bytes((1, SIDE, SIDE), IMAGES[:SIZE]),
    "t10k-labels-idx1-ubyte": idx_bytes((1,), b"\x05"),
}
IMAGES_FILE, *OTHERS = FILES


def manifests(files: dict[str, bytes]) -> Mapping[str, IdxManifest]:
    return {"mnist": a_manifest(files)}


def a_manifest(files: dict[str, bytes]) -> IdxManifest:
    sums = {name: sha256(content) for name, content in files.items()}
    return IdxManifest("mnist", sums, Layout(3, 1, channels=1, side=SIDE))


def refusal(
    folder: Path | None, files: dict[str, bytes] | None = None, workload: str = "mnist"
) -> TrialError:
    with pytest.raises(TrialError) as caught:
        load(workload, folder, manifests=MANIFESTS if files is None else manifests(files))
    return caught.value


def test_the_split_is_stratified_400_to_100_in_each_class(mnist_5k: Dataset) -> None:
    assert Counter(mnist_5k.train.labels) == dict.fromkeys(range(10), 400)
    assert Counter(mnist_5k.test.labels) == dict.fromkeys(range(10), 100)
    assert len(mnist_5k.train.pixels) == 4000 * SIZE
    assert len(mnist_5k.test.pixels) == 1000 * SIZE


def test_preparing_replaces_a_damaged_file_and_leaves_no_other(folder_with: Put, rows: bytes) -> None:
    folder = folder_with(ROWS_FILE, rows[:-1])

    message = prepare("mnist", folder)

    assert message.startswith("replaced a file with a wrong checksum with ")
    assert (folder / ROWS_FILE).read_bytes() == rows
    assert [path.name for path in folder.iterdir()] == [ROWS_FILE]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda rows: rows[:-1], id="truncated"),
        pytest.param(lambda rows: b"\1" + rows[1:], id="one pixel"),
    ],
)
def test_a_wrong_checksum_is_named(folder_with: Put, rows: bytes, damage: Callable[[bytes], bytes]) -> None:
    wrong = damage(rows)
    folder = folder_with(ROWS_FILE, wrong)

    error = refusal(folder)

    assert str(error).startswith(
        f"{folder}/{ROWS_FILE}: must have SHA-256 {ROWS_SHA256}, got {sha256(wrong)} ({len(wrong)} bytes)\n"
    )
    assert error.exit_code == BAD_SWEEP


def test_an_empty_folder_says_how_to_fill_it(tmp_path: Path) -> None:
    error = refusal(tmp_path)

    assert str(error) == (
        f"{tmp_path}: must hold mnist-5k.u8 or the four IDX files of mnist, but holds neither\n"
        "  hint: `python -m trainer prepare mnist` puts 5,000 digits there"
    )
    assert error.exit_code == BAD_SWEEP


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_idx_files_are_read_plain_or_packed(folder_with: Put, packed: bool) -> None:  # noqa: FBT001
    for name, content in FILES.items():
        folder = folder_with(f"{name}.gz" if packed else name, gzip.compress(content) if packed else content)

    dataset = load("mnist", folder, manifests=manifests(FILES))

    assert dataset.name == "mnist"
    assert (dataset.train.pixels, dataset.train.labels) == (IMAGES, b"\0\x05\x09")
    assert (dataset.test.pixels, dataset.test.labels) == (IMAGES[:SIZE], b"\x05")


def test_some_of_the_idx_files_are_rejected_even_beside_the_rows(folder_with: Put, rows: bytes) -> None:
    folder_with(ROWS_FILE, rows)
    folder = folder_with(IMAGES_FILE, FILES[IMAGES_FILE])

    error = refusal(folder, FILES)

    assert str(error) == (f"{folder}: must hold all four IDX files or none, but lacks {', '.join(OTHERS)}")


def test_a_truncated_gzip_file_is_named(folder_with: Put) -> None:
    for name, content in FILES.items():
        folder = folder_with(f"{name}.gz", gzip.compress(content))
    folder_with(f"{IMAGES_FILE}.gz", gzip.compress(FILES[IMAGES_FILE])[:-20])

    error = refusal(folder, FILES)

    assert str(error).startswith(f"{folder}/{IMAGES_FILE}.gz: must be a complete gzip file, but ")
    assert error.exit_code == BAD_SWEEP
