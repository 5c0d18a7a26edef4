"""What the state folder takes on the disk, as far as that is known quickly."""

from pathlib import Path
from unittest import mock

from sweepledger.repo import state


def test_the_files_of_a_folder_are_added_up_and_links_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    (folder / "code/deep").mkdir(parents=True)
    (folder / "code/deep/a").write_bytes(b"x" * 3_000_000)
    (tmp_path / "large").write_bytes(b"x" * 3_000_000)
    (folder / "link").symlink_to(tmp_path / "large")
    (folder / "loop").symlink_to(folder)

    used, is_whole = state.disk_used(folder)

    assert is_whole
    assert 3_000_000 <= used < 3_200_000
    assert state.disk_used(tmp_path / "none") == (0, True)
    with mock.patch.object(state, "MOST_COUNTED", 2):
        assert not state.disk_used(folder)[1]
