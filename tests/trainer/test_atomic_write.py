import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainer.contract import STORAGE_FAILED, TrialError
from trainer.files import write


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit files to 100 bytes, which fails in the middle of a write as a full disk does.

    Pytest itself may write to a file when the test has ended.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_is_replaced_as_a_whole_and_folders_are_created(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"

    write(path, b"longer than the next")
    write(path, b"new")

    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    with full_disk(), pytest.raises(TrialError) as caught:
        write(path, bytes(1000))

    assert str(caught.value) == f"{path}: cannot be written: File too large"
    assert caught.value.exit_code == STORAGE_FAILED
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
