import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger import storage
from sweepledger.errors import StorageError
from sweepledger.repo import files
from sweepledger.structs.file_tree import FileTree

PATHS = st.sampled_from(["a", "b", "c/d", "c/e"])
TREES = st.dictionaries(PATHS, st.binary(max_size=4)).map(FileTree)


def test_a_folder_is_written_atomically_and_reads_back(tmp_path: Path) -> None:
    tree = FileTree({"a": b"1", "b/c": b"2"})

    files.write_folder(tmp_path / "made", tree)

    assert files.read_folder(tmp_path / "made") == tree
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert (tmp_path / "made/a").stat().st_mode & 0o777 == 0o644
    assert files.read_folder(tmp_path / "nowhere") == FileTree({})


def test_the_second_write_of_equal_content_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x/file"
    assert storage.write_file(path, b"1")
    before = path.stat()

    assert not storage.write_file(path, b"1")

    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert storage.write_file(path, b"2")
    assert path.read_bytes() == b"2"


def test_a_full_or_missing_disk_names_the_file_and_keeps_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    blocked = tmp_path / "file" / "below"

    with pytest.raises(StorageError, match="file"):
        storage.write_file(blocked, b"new")

    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_folder_that_cannot_be_written_completely_does_not_appear(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        files.write_folder(tmp_path / "made", FileTree({"a": b"1", "a/b": b"2"}))

    assert list(tmp_path.iterdir()) == []


def test_a_removed_folder_does_not_exist(tmp_path: Path) -> None:
    files.write_folder(tmp_path / "made", FileTree({"a": b"1"}))

    files.remove_folder(tmp_path / "made", staging=tmp_path / "staging")

    assert [path.name for path in tmp_path.iterdir()] == ["staging"]
    assert list((tmp_path / "staging").iterdir()) == []


@given(TREES, TREES)
def test_a_difference_lists_added_changed_and_stale_files(wanted: FileTree, tree: FileTree) -> None:
    drift = files.difference(wanted, tree)

    patched = {path: content for path, content in tree if path not in drift.stale}
    patched |= {path: wanted[path] for path in (*drift.added, *drift.changed)}
    assert FileTree(patched) == wanted
    assert not set(drift.added) & set(tree.files)
    assert bool(drift) == (wanted != tree)


@pytest.mark.parametrize("place", ["link", "link/below", "folder/../link/x"])
def test_links_below_the_root_are_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")

    with pytest.raises(StorageError, match="link: must be a folder or file of the repository"):
        files.refuse_links(tmp_path, "folder", place)


@pytest.mark.parametrize("place", [".git/hooks/post-checkout", "a/../.GIT/config", "door/hooks/x"])
def test_nothing_is_written_into_gits_own_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    (tmp_path / "door").symlink_to(tmp_path / ".git")

    with pytest.raises(StorageError, match="git's own folder"):
        storage.output_path(tmp_path / place)


def test_the_next_write_removes_what_a_crash_left(tmp_path: Path) -> None:
    for left in (".file.abc.tmp", ".made.abc.tmp/below"):
        path = tmp_path / left
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")

    storage.write_file(tmp_path / "file", b"whole")
    files.write_folder(tmp_path / "made", FileTree({"a": b"1"}))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "made"]


def test_files_that_another_process_is_writing_are_not_removed(tmp_path: Path) -> None:
    descriptor, name = storage.temporary_file(tmp_path, "file")

    storage.write_file(tmp_path / "file", b"ours")

    assert name.is_file()
    os.close(descriptor)
    storage.write_file(tmp_path / "file", b"ours")
    assert not name.exists()


def test_an_error_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / ".file.abc.tmp"))

    monkeypatch.setattr(storage, "write_synced", full)

    with pytest.raises(StorageError, match=r"/file: no space left"):
        storage.write_file(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []
