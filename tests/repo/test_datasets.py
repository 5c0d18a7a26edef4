"""The `prepare` command of a dataset, as a real process."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweepledger.errors import StorageError, ToolError
from sweepledger.repo import datasets
from sweepledger.storage import WatchedFolder, data_state
from sweepledger.structs.settings import Dataset, SeveralDatasets

PROGRAM = """
import sys
from pathlib import Path
from sweepledger.repo.datasets import verified_data
from sweepledger.structs.settings import Dataset
folder, *prepare = sys.argv[1:]
digits = Dataset("digits", "claim", "version:1", prepare=tuple(prepare))
verified_data(digits, Path(folder).parent, code=Path.cwd())
"""


def dataset(script: str) -> Dataset:
    return Dataset("digits", "claim", "version:1", prepare=("sh", "-c", script))


def is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_missing_folder_is_filled_by_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "data/digits"

    result = datasets.verified_data(
        dataset("echo 1 > $SWEEP_DATA/a; pwd > $SWEEP_DATA/b"), folder.parent, code=tmp_path
    )

    assert result.folder == folder
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
    assert (folder / "b").read_text().strip() == str(tmp_path)
    assert sorted(path.name for path in folder.parent.iterdir()) == [".digits.version", "digits"]


def test_several_datasets_are_linked_in_a_folder_and_verified(tmp_path: Path) -> None:
    parts = tuple(
        Dataset(name, "claim", "version:1", prepare=("sh", "-c", f"echo {name} > $SWEEP_DATA/content"))
        for name in ("images", "labels", "others")
    )
    both, all_ = SeveralDatasets(parts[:2]), SeveralDatasets(parts)

    folder = datasets.verified_data(both, tmp_path, code=tmp_path).folder
    other = datasets.verified_data(all_, tmp_path, code=tmp_path).folder

    assert datasets.verified_data(both, tmp_path, code=tmp_path).folder == folder != other
    assert sorted(path.name for path in folder.iterdir()) == ["images", "labels"]
    assert sorted(path.name for path in other.iterdir()) == ["images", "labels", "others"]
    assert (folder / "labels/content").read_text() == "labels\n"
    assert (folder / "labels").readlink() == Path("../labels")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("", id="unchanged"),
        pytest.param("echo 2 > digits/content", id="other content"),
        pytest.param("rm -r digits", id="removed"),
        pytest.param("touch digits/more", id="one more file"),
    ],
)
def test_data_that_another_version_has_used_is_refused_until_it_changes(tmp_path: Path, change: str) -> None:
    first = dataset("echo 1 > $SWEEP_DATA/content")
    second = replace(first, identity="version:2")
    for _ in range(2):
        datasets.verified_data(first, tmp_path, code=tmp_path)
    if change:
        subprocess.run(["sh", "-c", change], cwd=tmp_path, check=True)
        datasets.verified_data(second, tmp_path, code=tmp_path)
        first, second = second, first

    with pytest.raises(
        StorageError, match=rf"must have the data of {second.identity}, and .* as {first.identity}"
    ):
        datasets.verified_data(second, tmp_path, code=tmp_path)
    with pytest.raises(StorageError) as refused:
        datasets.verified_data(replace(second, prepare=()), tmp_path, code=tmp_path)
    assert refused.value.hint == "put the data of this version there"
    datasets.verified_data(first, tmp_path, code=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "echo 2 > digits/content",
        "touch digits/more",
        "rm digits/content",
        "echo 2 >> digits/linked/deep/content",
    ],
)
def test_data_that_changed_since_they_were_used_need_another_version(tmp_path: Path, change: str) -> None:
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "elsewhere/deep/content").write_text("1")
    (tmp_path / "elsewhere/deep/around").symlink_to("..")
    first = dataset(f"echo 1 > $SWEEP_DATA/content; ln -s {tmp_path}/elsewhere $SWEEP_DATA/linked")
    for _ in range(2):
        datasets.verified_data(first, tmp_path, code=tmp_path)
        # As with another mount, no file has its number any more.
        (tmp_path / "digits").rename(tmp_path / "moved")
        subprocess.run(["cp", "-a", "moved", "digits"], cwd=tmp_path, check=True)
        shutil.rmtree(tmp_path / "moved")

    subprocess.run(["sh", "-c", change], cwd=tmp_path, check=True)

    with pytest.raises(StorageError, match=r"were changed since a trial used them as version:1") as refused:
        datasets.verified_data(first, tmp_path, code=tmp_path)
    assert refused.value.hint == (
        "remove the folder to have it prepared again, or give the data another datasets.digits.version"
    )
    datasets.verified_data(replace(first, identity="version:2"), tmp_path, code=tmp_path)
    shutil.rmtree(tmp_path / "digits")
    datasets.verified_data(first, tmp_path, code=tmp_path)


def test_of_several_datasets_the_one_with_other_content_is_named(tmp_path: Path) -> None:
    wrong = Dataset("labels", "claim", "sha256:" + "0" * 64, prepare=("true",))
    data = SeveralDatasets((dataset("true"), wrong))

    with pytest.raises(StorageError, match=r"dataset labels: .* contains other data"):
        datasets.verified_data(data, tmp_path, code=tmp_path)


@pytest.mark.parametrize("is_written", [True, False])
def test_changed_data_is_caught(*, is_written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "digits"
    folder.mkdir()
    (folder / "a").write_text("1")
    read = datasets.digest_folder
    data = Dataset("digits", "claim", read(folder)[0])

    def read_and_write(path: Path) -> tuple[str, datasets.ReadFiles]:
        digest = read(path)
        if is_written:
            (path / "a").write_text("later")
        return digest

    monkeypatch.setattr(datasets, "digest_folder", read_and_write)
    if is_written:
        with pytest.raises(StorageError, match=r"digits changed while it was verified"):
            datasets.verified_data(data, tmp_path, code=tmp_path)
    else:
        verified = datasets.verified_data(data, tmp_path, code=tmp_path)
        assert verified == WatchedFolder(folder, data_state(folder))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no space >&2; exit 3", "ended with exit code 3:\n    no space"),
        ("sleep 60", "was stopped after 0.2 s"),
        ("yes", "was stopped because it printed more than 1 MiB"),
    ],
    ids=["fails", "hangs", "prints without end"],
)
def test_failing_commands(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "PREPARE_SECONDS", 0.2 if "sleep" in script else 120)
    monkeypatch.setattr(datasets, "PREPARE_OUTPUT_BYTES", 1 << 20)

    with pytest.raises(ToolError) as caught:
        datasets.verified_data(dataset(script), tmp_path / "data", code=tmp_path)

    assert message in str(caught.value)
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look at processes")
def test_an_interrupt_ends_the_command_and_all_that_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {note}.new; mv {note}.new {note}; wait"
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path / "data/digits"), "sh", "-c", script]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, cwd=tmp_path) as program:
        give_up = time.monotonic() + 120
        while not note.exists():
            assert time.monotonic() < give_up
            time.sleep(0.02)
        child = int(note.read_text())

        os.kill(program.pid, signal.SIGINT)
        program.wait(120)

    give_up = time.monotonic() + 120
    while is_running(child) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not is_running(child)
    assert list((tmp_path / "data").iterdir()) == []
