import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.trainer import archives
from tests.trainer.archives import BATCH, BINARY, IMAGE, PYTHON, batches, members, packed, pickled
from trainer.contract import BAD_SWEEP, TrialError
from trainer.data import CIFAR10
from trainer.files import CifarArchive, CifarManifest, RefusedPickleError, sha256, unpickle

TRAIN, TEST = range(5 * BATCH), range(5 * BATCH, 5 * BATCH + 2)


@pytest.fixture(scope="module")
def published() -> CifarManifest:
    return archives.manifest(members(BINARY), members(PYTHON))


def archive(folder: Path, form: str, contents: Mapping[str, bytes] | None = None) -> Path:
    name = "cifar-10-binary.tar.gz" if form == BINARY else "cifar-10-python.tar.gz"
    (folder / name).write_bytes(packed(form, members(form) if contents is None else contents))
    return folder


def unpacked(folder: Path, form: str, changed: Mapping[str, bytes] | None = None) -> Path:
    (folder / form).mkdir()
    for name, content in members(form, changed).items():
        (folder / form / name).write_bytes(content)
    return folder


def refusal(folder: Path, manifest: CifarManifest) -> str:
    with pytest.raises(TrialError) as caught:
        manifest.load(folder)
    assert caught.value.exit_code == BAD_SWEEP
    return str(caught.value)


@pytest.mark.parametrize("form", [BINARY, PYTHON])
def test_both_archives_give_every_image_with_its_class_in_order(
    tmp_path: Path, published: CifarManifest, form: str
) -> None:
    dataset = published.load(archive(tmp_path, form))

    assert dataset is not None
    assert dataset.train.pixels == b"".join(map(archives.pixels, TRAIN))
    assert dataset.train.labels == archives.classes(TRAIN)
    assert dataset.test.pixels == b"".join(map(archives.pixels, TEST))
    assert dataset.test.labels == archives.classes(TEST)
    assert (dataset.name, dataset.train.channels, dataset.train.side) == ("cifar10", 3, 32)


def test_the_digest_says_which_archive_the_images_came_from(tmp_path: Path, published: CifarManifest) -> None:
    python = published.load(archive(tmp_path, PYTHON))
    # The binary one is preferred: it is no program.
    both = published.load(archive(tmp_path, BINARY))

    assert python is not None
    assert both is not None
    assert (python.digest, both.digest) == (published.python.digest, published.binary.digest)
    assert len(set(published.digests)) == 2


def test_unpacked_pickles_are_the_archive_they_came_from(tmp_path: Path, published: CifarManifest) -> None:
    dataset = published.load(unpacked(tmp_path, PYTHON))

    assert dataset is not None
    assert dataset.digest == published.python.digest
    assert dataset.train.labels == archives.classes(TRAIN)


def test_unpacked_records_are_rejected_because_they_cannot_be_verified(
    tmp_path: Path, published: CifarManifest
) -> None:
    message = refusal(unpacked(tmp_path, BINARY), published)

    assert message.startswith(f"{tmp_path}/{BINARY}: cannot be verified: ")
    assert "put cifar-10-binary.tar.gz" in message


def test_an_empty_folder_has_no_dataset(tmp_path: Path, published: CifarManifest) -> None:
    assert published.load(tmp_path) is None


@pytest.mark.parametrize("form", [BINARY, PYTHON])
def test_an_archive_with_a_wrong_sum_is_not_opened(
    tmp_path: Path, published: CifarManifest, form: str
) -> None:
    path = next(archive(tmp_path, form).iterdir())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    assert refusal(tmp_path, published).startswith(f"{path}: must have SHA-256 ")


@pytest.mark.parametrize("form", [BINARY, PYTHON])
def test_a_truncated_archive_is_reported_by_its_length(
    tmp_path: Path, published: CifarManifest, form: str
) -> None:
    path = next(archive(tmp_path, form).iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])

    assert refusal(tmp_path, published).startswith(
        f"{path}: must have {len(whole)} bytes, got {len(whole) - 100}\n"
    )


@pytest.mark.parametrize("damage", [b"", b"\x00"], ids=["shorter", "longer"])
def test_an_unpacked_pickle_that_is_not_the_published_one_is_named(
    tmp_path: Path, published: CifarManifest, damage: bytes
) -> None:
    right = members(PYTHON)["data_batch_3"]
    unpacked(tmp_path, PYTHON, {"data_batch_3": right + damage if damage else right[:-1]})

    message = refusal(tmp_path, published)

    assert message.startswith(f"{tmp_path}/{PYTHON}/data_batch_3: must have {len(right)} bytes and MD5 ")


def test_a_hostile_pickle_is_rejected_before_it_runs(tmp_path: Path) -> None:
    marker = tmp_path / "created"
    contents = members(PYTHON, {"data_batch_2": archives.hostile(marker)})
    manifest = archives.manifest(members(BINARY), contents)

    message = refusal(archive(tmp_path, PYTHON, contents), manifest)

    assert "data_batch_2 must be a pickle of numbers, text and arrays only" in message
    assert "but it holds posix.mkdir" in message
    assert not marker.exists()
    pickle.loads(archives.hostile(marker))  # noqa: S301 the danger is real
    assert marker.exists()


def test_current_numpy_reads_the_same_from_these_pickles() -> None:
    images = range(4)
    numpy = pytest.importorskip("numpy")

    theirs = pickle.loads(pickled(images), encoding="bytes")[b"data"]  # noqa: S301 made here

    ours = unpickle(pickled(images))
    assert isinstance(ours, dict)
    assert theirs.dtype == numpy.uint8
    assert (theirs.shape, theirs.tobytes()) == (ours[b"data"].shape, ours[b"data"].content)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (b"cos\nsystem\nU\x04true\x85R", "it holds os.system"),
        (b"cbuiltins\neval\n", "it holds builtins.eval"),
        (b"cnumpy\nload\n", "it holds numpy.load"),
        (b"cnumpy\ndtype\nU\x01O\x85R", "it holds an array of b'O'"),
        (b"cnumpy\nndarray\n)R(K\x01K\x02K\x03tb", "it holds an array in an unknown form"),
        (
            b"cnumpy\nndarray\n)R(K\x01K\x02\x85NK\x00U\x01xtb",
            "it holds an array of something other than bytes",
        ),
        (
            b"cnumpy\nndarray\n)R(K\x01K\x02\x85cnumpy\ndtype\nU\x02u1\x85R\x89U\x01xtb",
            "it holds an array of (2,) with 1 bytes",
        ),
        (b"P1\n", "it is damaged"),
        (b"h\x63", "it is damaged"),
        (b"", "must hold an array named data"),
    ],
)
def test_anything_else_in_a_pickle_is_rejected_by_name(tmp_path: Path, array: bytes, message: str) -> None:
    contents = members(PYTHON, {"test_batch": pickled(TEST, array=array or b"N")})
    manifest = archives.manifest(members(BINARY), contents)

    assert message in refusal(archive(tmp_path, PYTHON, contents), manifest)


@pytest.mark.parametrize("cut", [1, 10, 100, 1000])
def test_a_pickle_that_ends_too_soon_is_damaged(cut: int) -> None:
    with pytest.raises(RefusedPickleError):
        unpickle(pickled(range(4))[:-cut])


@pytest.mark.parametrize(
    ("form", "name", "content", "message"),
    [
        (
            BINARY,
            "data_batch_1.bin",
            bytes(IMAGE),
            "data_batch_1.bin must be records of 3073 bytes, got 3072",
        ),
        (BINARY, "test_batch.bin", bytes([10]) + bytes(IMAGE), "must hold 2 images of classes 0 to 9, got 1"),
        (
            PYTHON,
            "data_batch_1",
            pickle.dumps([1, 2]),
            "must hold an array named data and a list named labels",
        ),
        (PYTHON, "test_batch", pickled(range(3)), "must hold 2 images of classes 0 to 9, got 3"),
    ],
)
def test_a_batch_that_is_not_what_it_should_be_is_named(
    tmp_path: Path, form: str, name: str, content: bytes, message: str
) -> None:
    contents = members(form, {name: content})
    other = members(PYTHON if form == BINARY else BINARY)
    manifest = archives.manifest(contents, other) if form == BINARY else archives.manifest(other, contents)

    assert message in refusal(archive(tmp_path, form, contents), manifest)


def test_an_archive_without_one_of_its_batches_is_rejected(tmp_path: Path, published: CifarManifest) -> None:
    contents = members(BINARY)
    del contents["data_batch_4.bin"]
    archive(tmp_path, BINARY, contents)
    manifest = archives.manifest(contents | {"data_batch_4.bin": b""}, members(PYTHON))
    shorter = packed(BINARY, contents)
    binary = CifarArchive(
        manifest.binary.file,
        len(shorter),
        sha256(shorter),
        BINARY,
        published.binary.train,
        published.binary.test,
    )
    shortened = CifarManifest("cifar10", binary, published.python, published.layout)

    assert f"must hold {BINARY}/data_batch_4.bin in its full length" in refusal(tmp_path, shortened)


def test_the_published_manifest_is_of_sixty_thousand_images_in_two_archives() -> None:
    record = CIFAR10.layout.image + 1

    assert (CIFAR10.layout.train, CIFAR10.layout.test) == (50_000, 10_000)
    assert {member.length for member in CIFAR10.binary.train + CIFAR10.binary.test} == {10_000 * record}
    assert [member.name for member in CIFAR10.python.train] == [f"data_batch_{n}" for n in range(1, 6)]
    assert list(batches()) == [member.name for member in CIFAR10.python.train + CIFAR10.python.test]
