import os
import socket
import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import StorageError
from sweepledger.repo import batches, files
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.structs.file_tree import Drift, FileTree
from sweepledger.structs.values import blob_id
from tests.repository import Sandbox


@pytest.mark.parametrize("content", [b"", b"text\n", b"\x00\xff\r\n" * 1000])
def test_blob_ids_equal_those_of_git(content: bytes, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--object-format=sha1", str(tmp_path)], check=True)
    names = ["git", "hash-object", "--stdin"]
    output = subprocess.run(names, cwd=tmp_path, input=content, capture_output=True, check=True).stdout

    assert blob_id(content) == output.decode().strip()


def test_differences_depend_on_content_and_not_on_the_index(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    (committed,) = batches.in_commit(Repository.find(sandbox.root), "HEAD")
    (lies,) = batches.in_work_tree(sandbox.root)
    assert batches.difference(committed, lies) == Drift()
    assert (committed.tree, committed.lock) == (lies.tree, lies.lock)
    folder = sandbox.root / "overlays/active" / name
    for file in ("job.yaml", "launch.json"):
        sandbox.git("update-index", "--assume-unchanged", f"overlays/active/{name}/{file}")
    before = (folder / "job.yaml").stat()
    (folder / "job.yaml").write_bytes((folder / "job.yaml").read_bytes().replace(b"256", b"512"))
    os.utime(folder / "job.yaml", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "launch.json").unlink()
    (folder / "more").write_text("x")

    (committed,) = batches.in_commit(Repository.find(sandbox.root), "HEAD")
    (lies,) = batches.in_work_tree(sandbox.root)

    assert batches.difference(committed, lies) == Drift(("launch.json",), ("job.yaml",), ("more",))


def test_a_batch_in_memory_is_compared_like_any_other() -> None:
    left = StoredBatch("overlays/active/a-b1-00000000", FileTree({"x": b"1", "y": b"1"}))
    right = StoredBatch("overlays/active/a-b1-00000000", FileTree({"x": b"2", "z": b"1"}))

    assert batches.difference(left, right) == Drift(("y",), ("x",), ("z",))
    assert left.contents.paths == ("x", "y")


def test_a_sparse_file_of_a_terabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(2**40)

    with pytest.raises(StorageError, match="at most 64 MiB"):
        files.read_folder(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe", "socket"])
def test_links_and_devices_are_refused_unopened(kind: str, tmp_path: Path) -> None:
    match kind:
        case "link":
            (tmp_path / "odd").symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(tmp_path / "odd")
        case _:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(os.path.relpath(tmp_path / "odd"))

    with pytest.raises(StorageError, match="must be a regular file"):
        files.read_folder(tmp_path)


def test_files_that_the_archive_leaves_out_are_read_from_history(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    (active,) = batches.in_commit(Repository.find(sandbox.root), "HEAD")
    whole = active.tree
    moves, _, removes = batches.archiving([active])
    (sandbox.root / "overlays/archive" / name).mkdir(parents=True)
    for old, new in moves.items():
        sandbox.git("mv", old, new)
    sandbox.git("rm", "-q", *removes)
    sandbox.commit("Move it")
    (committed,) = batches.in_commit(Repository.find(sandbox.root), "HEAD")
    (here,) = batches.in_work_tree(sandbox.root)

    assert here.contents.paths == committed.contents.paths == ("batch.json", "hyperparams.csv")
    assert here.rows == committed.rows == active.rows
    assert here.tree == committed.tree == whole
    assert batches.difference(active, here) == batches.difference(committed, here) == Drift()
    assert not here.hand_edits()


def test_a_partial_clone_fetches_what_it_lacks_with_one_request(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    subprocess.run(["git", "-C", str(sandbox.remote), "config", "uploadpack.allowFilter", "true"], check=True)
    clone = [*("git", "clone", "-q", "--depth=1", "--filter=blob:none", "--sparse"), sandbox.remote.as_uri()]
    subprocess.run([*clone, str(tmp_path / "clone")], check=True)
    repository = Repository(tmp_path / "clone")
    (batch,) = batches.in_commit(repository, "HEAD")

    assert not (tmp_path / "clone/overlays").exists()
    assert batch.tree == batches.in_work_tree(sandbox.root)[0].tree
    packs = list((tmp_path / "clone/.git/objects/pack").glob("*.promisor"))
    assert len(packs) == 3, "the clone, the files of its root, the batch"
