import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import StorageError, UsageError
from sweepledger.verbs.cluster.data import data
from tests.command_line import run_sweep
from tests.repository import answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    (made / "deep").mkdir(parents=True)
    (made / "b.txt").write_bytes(b"two\n")
    (made / "deep/a.bin").write_bytes(b"\0" * 5000)
    return made


def test_the_digest_is_that_of_sha256sums_own_sorted_list(folder: Path) -> None:
    command = ["sha256sum", "b.txt", "deep/a.bin"]
    listed = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout
    expected = f"sha256:{hashlib.sha256(listed).hexdigest()}"

    made = answer(data, folder)
    printed = run_sweep("cluster", "data", str(folder), cwd=folder).stdout

    assert (made["digest"], made["files"], made["bytes"]) == (expected, 2, 5004)
    assert printed == f"{expected}\n"


@pytest.mark.parametrize("kind", ["link", "folder link", "device", "line end"])
def test_what_is_no_file_of_the_folder_is_refused(folder: Path, kind: str) -> None:
    match kind:
        case "link":
            (folder / "c").symlink_to(folder / "b.txt")
        case "folder link":
            (folder / "c").symlink_to(folder / "deep")
        case "device":
            os.mkfifo(folder / "c")
        case _:
            (folder / "c\nd").write_text("x")

    with pytest.raises(StorageError, match="must"):
        answer(data, folder)


def test_nothing_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        answer(data, tmp_path / "none")
    with pytest.raises(StorageError, match="contains no file"):
        answer(data, tmp_path)
