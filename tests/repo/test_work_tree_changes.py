"""What git sees differ in the work tree, and what it was told not to look at."""

import pytest

from sweepledger.repo.git import Repository, WorkTreeChanges
from tests.repository import Sandbox


def test_each_change_has_its_kind(sandbox: Sandbox) -> None:
    sandbox.write("sweeps/edited.yaml", "a")
    sandbox.write("sweeps/staged.yaml", "a")
    sandbox.commit("Files", {"sweeps/believed.yaml": "a", "sweeps/left.yaml": "a"})
    sandbox.write(".gitignore", "*.tmp\n")
    sandbox.git("update-index", "--assume-unchanged", "sweeps/believed.yaml")
    sandbox.git("update-index", "--skip-worktree", "sweeps/left.yaml")
    sandbox.write("sweeps/edited.yaml", "b")
    sandbox.write("sweeps/staged.yaml", "b")
    sandbox.git("add", "sweeps/staged.yaml")
    sandbox.write("sweeps/new folder/ü.yaml", "a")
    sandbox.write("sweeps/x.tmp", "a")
    sandbox.write("elsewhere.yaml", "a")

    changes = WorkTreeChanges.read(Repository.find(sandbox.root), "sweeps")

    assert changes.uncommitted == {"sweeps/edited.yaml", "sweeps/staged.yaml", "sweeps/new folder/ü.yaml"}
    assert changes.untracked == {"sweeps/new folder/ü.yaml"}
    assert changes.ignored == {"sweeps/x.tmp"}
    assert changes.unwatched == {"sweeps/believed.yaml", "sweeps/left.yaml"}


@pytest.mark.parametrize(
    ("tracked", "named"),
    [
        ([], ("a/",)),
        (["a/x"], ("a/b/",)),
        (["a/b/x", "a/b.c"], ("a/b/c/",)),
        (["a/b/c/x"], ("a/b/c/new",)),
        (["a.b", "b/x"], ("a/",)),
    ],
)
def test_an_untracked_folder_stands_for_its_files(tracked: list[str], named: tuple[str, ...]) -> None:
    changes = WorkTreeChanges(frozenset(), frozenset({"a/b/c/new"}), frozenset(), frozenset())

    assert changes.whole_folders(tracked) == named


def test_the_index_is_the_commit_with_the_staged_changes(sandbox: Sandbox) -> None:
    sandbox.commit("Files", {"kept": "a", "removed": "a", "edited": "a"})
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    sandbox.git("commit", "-q", "-m", "A submodule")
    sandbox.git("rm", "-q", "removed")
    sandbox.write("edited", "b")
    sandbox.write("new ü", "b")
    sandbox.git("add", "edited", "new ü")
    repository = Repository.find(sandbox.root)

    entries = repository.index(repository.commit("HEAD"))

    assert entries == repository.index()
    assert {"kept", "edited", "new ü", "module"} <= entries.keys()
    assert "removed" not in entries


def test_the_index_of_an_unfinished_merge_is_read_whole(sandbox: Sandbox) -> None:
    sandbox.commit("Ours", {"both": "a"})
    base = sandbox.head()
    sandbox.git("checkout", "-q", "-b", "theirs", "HEAD~1")
    sandbox.commit("Theirs", {"both": "b"})
    sandbox.git("checkout", "-q", "main")
    with pytest.raises(Exception, match="merge"):
        sandbox.git("merge", "-q", "theirs")
    repository = Repository.find(sandbox.root)

    assert repository.index(base) == repository.index()


def test_a_check_sees_in_a_merged_batch_what_git_was_told_to_ignore(sandbox: Sandbox) -> None:
    folder = f"overlays/active/{sandbox.merged()}"
    believed, skipped, excluded = (f"{folder}/{name}" for name in ("job.yaml", "launch.json", "x.tmp"))
    for mark, path in (("--assume-unchanged", believed), ("--skip-worktree", skipped)):
        sandbox.git("update-index", mark, path)
        sandbox.write(path, (sandbox.root / path).read_text() + "\n")
    sandbox.write(".git/info/exclude", "*.tmp\n")
    sandbox.write(excluded, "")

    report = sandbox.check()

    edited = {problem.file for problem in report.problems if problem.code == "batch-edited"}
    assert edited == {believed, skipped, excluded}
