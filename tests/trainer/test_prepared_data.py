import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sweepledger.formats import yaml
from sweepledger.repo.datasets import digest_folder
from tests.trainer import archives
from tests.trainer.archives import members, packed
from trainer import data
from trainer.__main__ import main
from trainer.contract import BAD_SWEEP, STORAGE_FAILED, TrialError
from trainer.data import HEADER, MNIST, Manifest, prepare

ROOT = Path(__file__).parents[2]
NAME = "cifar10"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def manifests() -> Mapping[str, Manifest]:
    return {NAME: archives.manifest(members())}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(packed(members()))
    return tmp_path


def settings_digest(name: str) -> str:
    (settings,) = yaml.load_all((ROOT / "sweepledger.yaml").read_bytes())
    return str(dict(settings)["datasets"][name]["digest"])


def refusal(folder: Path, manifests: Mapping[str, Manifest]) -> TrialError:
    with pytest.raises(TrialError) as caught:
        data.load(NAME, folder, manifests=manifests)
    return caught.value


def test_the_prepared_file_equals_the_archive(folder: Path, manifests: Mapping[str, Manifest]) -> None:
    before = data.load(NAME, folder, manifests=manifests)

    message = prepare(NAME, folder, manifests=manifests)
    (folder / "cifar-10-binary.tar.gz").unlink()

    assert message == f"wrote {folder}/cifar10.u8 (22 images of cifar10, {before.digest})"
    assert data.load(NAME, folder, manifests=manifests) == before
    assert [path.name for path in folder.iterdir()] == ["cifar10.u8"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the shared pages")
def test_the_pixels_are_pages_which_nobody_writes(folder: Path, manifests: Mapping[str, Manifest]) -> None:
    prepare(NAME, folder, manifests=manifests)
    content = (folder / "cifar10.u8").read_bytes()

    dataset = data.load(NAME, folder, manifests=manifests)
    mapped = Path("/proc/self/maps").read_text()
    assert isinstance(dataset.train.pixels, memoryview)
    dataset.train.pixels[0] ^= 255

    assert f"{folder}/cifar10.u8" in mapped.replace("\\040", " ")
    assert (folder / "cifar10.u8").read_bytes() == content


def test_preparing_again_touches_nothing(folder: Path, manifests: Mapping[str, Manifest]) -> None:
    prepare(NAME, folder, manifests=manifests)
    before = (folder / "cifar10.u8").stat()

    assert prepare(NAME, folder, manifests=manifests) == f"nothing to do: {folder}/cifar10.u8 is up to date"

    after = (folder / "cifar10.u8").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def a_pixel(content: bytearray) -> None:
    content[HEADER + 5] ^= 1


def a_header(content: bytearray) -> None:
    content[20] ^= 1


def another_dataset(content: bytearray) -> None:
    content[:] = content.replace(b'"cifar10"', b'"cifar99"')


@pytest.mark.parametrize("damage", [a_pixel, a_header, another_dataset])
def test_a_damaged_prepared_file_is_rejected_and_can_be_replaced(
    folder: Path, manifests: Mapping[str, Manifest], damage: Callable[[bytearray], None]
) -> None:
    prepare(NAME, folder, manifests=manifests)
    path = folder / "cifar10.u8"
    right = path.read_bytes()
    content = bytearray(right)
    damage(content)
    path.write_bytes(content)

    error = refusal(folder, manifests)

    assert str(error).startswith(f"{path}: must ")
    assert error.exit_code == BAD_SWEEP
    assert prepare(NAME, folder, manifests=manifests).startswith(f"replaced a damaged file with {path} ")
    assert path.read_bytes() == right


def test_a_published_checksum_comes_first(folder: Path, manifests: Mapping[str, Manifest]) -> None:
    prepare(NAME, folder, manifests=manifests)
    pinned = archives.manifest(members(), prepared="0" * 64)

    assert "must be the prepared file of cifar10, got other bytes" in str(refusal(folder, {NAME: pinned}))


def test_damaged_originals_are_never_prepared(folder: Path, manifests: Mapping[str, Manifest]) -> None:
    path = folder / "cifar-10-binary.tar.gz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")

    with pytest.raises(TrialError, match="must have SHA-256"):
        prepare(NAME, folder, manifests=manifests)

    assert [file.name for file in folder.iterdir()] == [path.name]


def test_an_interrupted_write_keeps_the_file_before_it_and_leaves_no_other(
    folder: Path, manifests: Mapping[str, Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(28, "No space left on device")

    (folder / "cifar10.u8").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", broken)

    with pytest.raises(
        TrialError, match=r"cifar10\.u8: cannot be written: No space left on device"
    ) as caught:
        prepare(NAME, folder, manifests=manifests)

    assert caught.value.exit_code == STORAGE_FAILED
    assert (folder / "cifar10.u8").read_bytes() == b"old"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("form", ["--from FOLDER"])
def test_all_of_mnist_is_prepared(mnist_files: Path, tmp_path: Path, capsys: Capture, form: str) -> None:
    volume = tmp_path / "the volume"

    code = main(
        ["prepare", "mnist", *(part.replace("FOLDER", str(mnist_files)) for part in form.split(" "))],
        {"SWEEP_DATA": str(volume)},
    )

    dataset = data.load("mnist", volume)
    assert code == 0
    assert dataset.digest == MNIST.digest == digest_folder(mnist_files)[0]
    assert f"wrote {volume}/mnist.u8 (70000 images of mnist, {dataset.digest})" in capsys.readouterr().out
    assert dataset == MNIST.load(mnist_files)
    assert digest_folder(volume)[0] == settings_digest("mnist-60k")


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("cifar10", "must hold cifar-10-binary.tar.gz, but does not"),
        ("fashion-mnist", "must hold the four IDX files of fashion-mnist, but does not"),
    ],
)
def test_missing_files_are_named(tmp_path: Path, capsys: Capture, workload: str, message: str) -> None:
    code = main(["prepare", workload], {"SWEEP_DATA": str(tmp_path)})

    assert code == BAD_SWEEP
    assert capsys.readouterr().err.startswith(f"trainer: {tmp_path}: {message}\n  hint: ")
