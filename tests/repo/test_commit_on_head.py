import tempfile
from pathlib import Path

import pytest

from sweepledger.errors import GeneratorError, RepositoryError, StorageError
from sweepledger.repo.git import Change, Repository, commit_on_head, fetch, publish, tracking_ref
from tests.repository import Sandbox


def change(_base: str) -> Change:
    return Change("change", {"new/a": b"a\n", "sweepledger.yaml": b"version: 1\n# changed\n"})


def moved(_base: str) -> Change:
    return Change("move", {"code": b"now a file\n"}, moves={"code/train.py": "old/train.py"})


def test_a_commit_on_head_updates_branch_index_and_work_tree(sandbox: Sandbox) -> None:
    (sandbox.root / "code/train.py").chmod(0o755)
    sandbox.commit("Make it executable")

    made = commit_on_head(Repository.find(sandbox.root), moved)

    assert sandbox.head() == made
    assert sandbox.git("status", "--porcelain") == ""
    assert (sandbox.root / "old/train.py").stat().st_mode & 0o100
    assert (sandbox.root / "code").read_bytes() == b"now a file\n"


@pytest.mark.parametrize("staged", [False, True])
def test_uncommitted_changes_of_the_file_are_reported(sandbox: Sandbox, *, staged: bool) -> None:
    path = sandbox.write("sweepledger.yaml", "version: 1\n# mine\n")
    if staged:
        sandbox.git("add", "sweepledger.yaml")
    head = sandbox.git("rev-parse", "HEAD")

    with pytest.raises(RepositoryError, match=r"local changes would be overwritten: sweepledger\.yaml"):
        commit_on_head(Repository.find(sandbox.root), change)

    assert path.read_text() == "version: 1\n# mine\n"
    assert not (sandbox.root / "new").exists()
    assert sandbox.git("rev-parse", "HEAD") == head


def test_uncommitted_changes_of_other_files_stay(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", "mine")
    sandbox.write("other", "mine")
    sandbox.git("add", "other")

    commit_on_head(Repository.find(sandbox.root), change)

    assert sandbox.git("status", "--porcelain").splitlines() == [" M code/train.py", "A  other"]


def test_a_commit_that_a_crash_interrupted_is_completed(sandbox: Sandbox) -> None:
    sandbox.write("new/a", "a\n")
    sandbox.git("add", "new/a")

    made = commit_on_head(Repository.find(sandbox.root), change)

    assert sandbox.head() == made
    assert sandbox.git("status", "--porcelain") == ""


def test_a_link_on_the_path_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (sandbox.root / "new").symlink_to(tmp_path / "outside")
    sandbox.git("config", "--local", "core.excludesFile", str(sandbox.write(".git/info/also", "/new\n")))

    with pytest.raises(GeneratorError, match="new"):
        commit_on_head(Repository.find(sandbox.root), change)

    assert list((tmp_path / "outside").iterdir()) == []


def test_a_lock_of_git_is_named_with_its_age_and_not_removed(sandbox: Sandbox) -> None:
    lock = sandbox.write(".git/index.lock", "")

    with pytest.raises(RepositoryError, match=r"index\.lock exists") as caught:
        commit_on_head(Repository.find(sandbox.root), change)

    assert f"{lock} is 0 s old: remove it" in (caught.value.hint or "")
    assert lock.exists()
    assert sandbox.git("status", "--porcelain") == ""


@pytest.mark.parametrize("ref", [tracking_ref("origin", "main"), "refs/remotes/origin/main"])
def test_a_lock_of_a_killed_git_does_not_prevent_publishing(sandbox: Sandbox, ref: str) -> None:
    repository = Repository.find(sandbox.root)
    fetch(repository, "origin", "main")
    Repository(sandbox.remote).run("update-ref", "refs/heads/main", repository.commit("main") or "")
    lock = sandbox.write(f".git/{ref}.lock", "")
    for number in range(2):
        publish(repository, "origin", "main", lambda _, n=number: Change("x", {"a": b"%d" % n}))  # type: ignore[misc]

    assert lock.exists()
    assert Repository(sandbox.remote).run("rev-list", "--count", "main").strip() == "3"
    assert "aside" not in sandbox.git("for-each-ref")


def test_a_full_temporary_folder_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", _full)

    with pytest.raises(StorageError, match=f"{tempfile.gettempdir()}: no space left") as caught:
        Repository.find(sandbox.root).run("hash-object", "--stdin", content=b"x")

    assert caught.value.exit_code == 3


def _full() -> None:
    raise OSError(28, "No space left on device")
