"""Folders on a volume that strangers write to: looked at and removed by descriptors."""

import os
import tracemalloc
from pathlib import Path

import pytest

from sweepledger.errors import StorageError
from sweepledger.formats.record_json import MOST_COUNTED, MOST_RECORDS, UNREAD
from sweepledger.repo.results_volume import MAX_DEPTH, VolumeRoot, attempt_records
from sweepledger.structs.record import LARGEST_TRIAL_FILE


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    made = tmp_path / "volume"
    (made / "a/0").mkdir(parents=True)
    (made / "a/0/uid.json").write_text("record")
    return made


def test_records_are_read_and_links_devices_and_large_files_ignored(volume: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("secret")
    (volume / "a/0/link.json").symlink_to(tmp_path / "secret.json")
    (volume / "a/1").symlink_to(tmp_path)
    os.mkfifo(volume / "a/0/pipe.json")
    os.truncate(os.open(volume / "a/0/giant.json", os.O_CREAT | os.O_RDWR), 2**30)

    with VolumeRoot.opened(volume) as shelf:
        giant, link, pipe, record = shelf.records("a", 0, "0")
        assert giant is not None
        assert len(giant) == LARGEST_TRIAL_FILE + 1
        assert (link, pipe, record) == (None, None, b"record")
        assert list(shelf.records("a", 1, "1")) == []


def test_of_a_million_names_few_are_kept(volume: Path) -> None:
    (volume / "b/0").mkdir(parents=True)
    for number in range(5_000):
        (volume / f"b/0/{number:05}{'x' * 200}").touch()
    for number in range(3_000):
        (volume / f"b/0/{number:04}.json").write_text("record")
    tracemalloc.start()

    contents = list(attempt_records(volume, "b", "0"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert contents == [b"record"] * MOST_RECORDS + [UNREAD] * MOST_COUNTED
    assert peak < 500_000


def test_the_newest_time_includes_folders_and_links_themselves(volume: Path, tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (volume / "a/0/link").symlink_to(tmp_path / "target")
    for path in (volume / "a/0/uid.json", volume / "a/0/link", volume / "a/0", volume / "a"):
        os.utime(path, (1000, 1000), follow_symlinks=False)

    with VolumeRoot.opened(volume) as shelf:
        assert shelf.newest("a") == 1000
        os.utime(volume / "a/0/link", (2000, 2000), follow_symlinks=False)
        assert shelf.newest("a") == 2000
        os.utime(volume / "a/0", (3000, 3000))
        assert shelf.newest("a") == 3000


def test_a_link_that_replaces_a_folder_meanwhile_is_not_followed(volume: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()

    with VolumeRoot.opened(volume) as shelf:
        assert shelf.has_folder("a")
        (volume / "a").rename(tmp_path / "elsewhere")
        (volume / "a").symlink_to(tmp_path / "precious")
        with pytest.raises(StorageError, match="volume/a"):
            shelf.remove("a")

    assert (tmp_path / "precious/file").exists()


def test_a_volume_mounted_elsewhere_is_the_opened_one(volume: Path, tmp_path: Path) -> None:
    with VolumeRoot.opened(volume) as shelf:
        volume.rename(tmp_path / "moved")
        (volume / "a").mkdir(parents=True)
        shelf.remove("a")

    assert (volume / "a").is_dir()
    assert not (tmp_path / "moved/a").exists()


def test_a_folder_is_never_renamed_onto_one_with_content(volume: Path) -> None:
    (volume / ".gone-a/1").mkdir(parents=True)

    with VolumeRoot.opened(volume) as shelf, pytest.raises(StorageError, match="not empty"):
        shelf.move("a", ".gone-a")

    assert (volume / "a/0/uid.json").exists()


@pytest.mark.parametrize(("deeper", "is_read"), [(0, True), (1, False)])
def test_nested_folders_are_read_down_to_a_limit(deeper: int, is_read: bool, volume: Path) -> None:  # noqa: FBT001
    (volume / "/".join("a" * (MAX_DEPTH + 1 + deeper))).mkdir(parents=True)

    with VolumeRoot.opened(volume) as shelf:
        if is_read:
            assert shelf.newest("a") > 0
        else:
            with pytest.raises(StorageError, match="nested deeper"):
                shelf.newest("a")
