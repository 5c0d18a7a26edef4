"""Datasets in a bucket: what the sidecar copies before the program starts, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.bucket import dataset
from sweepledger.bucket.layout import CHUNK_BYTES
from sweepledger.bucket.objects import Bucket
from sweepledger.errors import StorageError
from sweepledger.repo.datasets import digest_folder
from sweepledger.structs.settings import Dataset, SeveralDatasets
from tests.bucket.pods import PATIENCE, Pod
from tests.launcher.folders import REPORT, shell

MakePod = Callable[..., Pod]
FOLDER = "data/digits"
LARGE = b"x" * CHUNK_BYTES + b"y" * 10
FILES = {"train/images": LARGE, "train/labels": b"0123456789", "README": b""}
ROOM = 1 << 30


OF_SEVERAL = f"labels=data/labels pixels={FOLDER}"
LABELS = {"y": b"0123456789", "pixels/x": b"no other dataset"}


def given(bucket: Bucket, files: dict[str, bytes] = FILES, folder: str = FOLDER) -> None:
    """Upload a dataset as any client of the cloud does: an object for each file."""
    for name, content in files.items():
        bucket.put(f"{folder}/{name}", content)


def digest_of(folder: Path, files: dict[str, bytes]) -> str:
    """Return the digest that `sweep cluster data` computes of the same files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return digest_folder(folder)[0]


@pytest.fixture
def digest(tmp_path: Path) -> str:
    return digest_of(tmp_path / "source", FILES)


@pytest.fixture
def digest_of_all(digest: str, tmp_path: Path) -> str:
    """What a lock calls both datasets."""
    parts = [Dataset("labels", None, digest_of(tmp_path / "labels", LABELS)), Dataset("pixels", None, digest)]
    return SeveralDatasets(tuple(parts)).identity


def copied(
    bucket: Bucket,
    into: Path,
    digest: str,
    *,
    most_bytes: int = ROOM,
    times: Callable[[], bool] = lambda: True,
    folder: str = FOLDER,
) -> None:
    dataset.copy(bucket, folder, into, digest=digest, most_bytes=most_bytes, has_time=times)


def with_data(made: Pod, digest: str, folder: str = FOLDER) -> Pod:
    made.variables |= {"SWEEP_STORE_DATA": folder, "SWEEP_STORE_DATA_DIGEST": digest}
    made.variables |= {"SWEEP_STORE_DATA_BYTES": str(ROOM), "SWEEP_DATA": str(made.root / "data")}
    return made


def given_both(bucket: Bucket) -> None:
    given(bucket)
    given(bucket, LABELS, "data/labels")


def test_each_of_several_datasets_comes_into_the_folder_of_its_name(pod: MakePod, digest_of_all: str) -> None:
    made = with_data(pod(command=shell(REPORT)), digest_of_all, OF_SEVERAL)
    given_both(made.bucket())

    assert made.run().code == 0

    data = made.root / "data"
    assert made.message["complete"]
    assert sorted(path.name for path in data.iterdir()) == ["labels", "pixels"]
    assert {name: (data / "pixels" / name).read_bytes() for name in FILES} == FILES
    assert {name: (data / "labels" / name).read_bytes() for name in LABELS} == LABELS


def test_size_and_digest_of_several_datasets_are_those_of_all(
    bucket: Bucket, tmp_path: Path, digest_of_all: str
) -> None:
    given_both(bucket)
    size = sum(map(len, (*FILES.values(), *LABELS.values())))

    with pytest.raises(StorageError, match=r"must have at most .* got more"):
        copied(bucket, tmp_path / "data", digest_of_all, folder=OF_SEVERAL, most_bytes=size - 1)
    assert not (tmp_path / "data").exists()
    copied(bucket, tmp_path / "data", digest_of_all, folder=OF_SEVERAL, most_bytes=size)
    bucket.put("data/labels/y", b"1123456789")
    with pytest.raises(StorageError, match=r"data/labels pixels=.* contains other data: must be sha256:"):
        copied(bucket, tmp_path / "other", digest_of_all, folder=OF_SEVERAL)


def test_a_trial_with_a_final_record_copies_no_data(plain_pod: MakePod, digest: str) -> None:
    first = plain_pod(command=shell(REPORT))
    assert first.run().code == 0
    again = with_data(plain_pod(uid="uid-2", command=shell(REPORT)), digest)

    assert again.run().code == 0

    assert not (again.root / "data").exists()


def test_an_interrupted_copy_goes_on_where_it_ended(bucket: Bucket, tmp_path: Path, digest: str) -> None:
    given(bucket)
    left = iter([True, False])
    with pytest.raises(StorageError, match="goes on"):
        copied(bucket, tmp_path / "data", digest, times=lambda: next(left))
    asked: list[tuple[str, int]] = []
    get_part = bucket.get_part

    def counted(key: str, start: int, end: int) -> bytes:
        asked.append((key, start))
        return get_part(key, start, end)

    bucket.get_part = counted  # type: ignore[method-assign]

    copied(bucket, tmp_path / "data", digest)

    assert (f"{FOLDER}/train/images", 0) not in asked, "the first chunk is there"
    assert digest_folder(tmp_path / "data")[0] == digest


def test_a_part_damaged_in_the_pod_is_found(bucket: Bucket, tmp_path: Path, digest: str) -> None:
    given(bucket)
    (tmp_path / "data/train").mkdir(parents=True)
    (tmp_path / "data/train/images").write_bytes(b"z" * CHUNK_BYTES)

    with pytest.raises(StorageError, match="other data"):
        copied(bucket, tmp_path / "data", digest)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({**FILES, "train/labels": b"1123456789"}, "contains other data: must be sha256:"),
        ({**FILES, "more": b""}, "contains other data"),
        ({}, "has no files"),
    ],
    ids=["another byte", "another file", "nothing"],
)
def test_other_data_than_the_digest_names_starts_no_program(
    files: dict[str, bytes], says: str, bucket: Bucket, tmp_path: Path, digest: str
) -> None:
    given(bucket, files)

    with pytest.raises(StorageError, match=says):
        copied(bucket, tmp_path / "data", digest)


def test_a_pod_with_other_data_says_so_and_starts_no_program(plain_pod: MakePod) -> None:
    made = plain_pod(command=shell("touch ran"), variables={"SWEEP_STORE_PATIENCE": "0"})
    with_data(made, "sha256:" + "0" * 64)
    given(made.bucket())

    made.start(waits=False)
    assert made.sidecar is not None
    assert made.sidecar.wait(PATIENCE) == 3

    assert "contains other data: must be sha256:000" in made.said
    assert not (made.state / "ready").exists()
    assert json.loads(made.log.read_text() or "{}") == {}
