"""Commits on a local branch, while a person works in the same clone."""

import subprocess
import threading
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError
from sweepledger.repo.git import Change, Repository, commit_on_branch, finish_update
from tests.repository import Sandbox

OURS = Change("Ours\n", {"results/a.csv": b"ours\n", "results/b.csv": b"ours\n"})


def changes(sandbox: Sandbox) -> str:
    return sandbox.git("status", "--porcelain", "--untracked-files=all")


def commit(sandbox: Sandbox, change: Change = OURS) -> str:
    made = commit_on_branch(sandbox.workspace.repository, "main", lambda _: change)
    assert made is not None
    return made


def test_files_and_index_follow_the_branch_that_is_checked_out(sandbox: Sandbox) -> None:
    made = commit(sandbox)

    assert sandbox.head() == made
    assert changes(sandbox) == ""
    assert (sandbox.root / "results/a.csv").read_bytes() == b"ours\n"


def test_what_the_user_edited_or_staged_stays(sandbox: Sandbox) -> None:
    commit(sandbox)
    sandbox.write("results/a.csv", "edited\n")
    sandbox.write("results/b.csv", "staged\n")
    sandbox.git("add", "results/b.csv")

    commit(sandbox, Change("Again\n", {"results/a.csv": b"newer\n", "results/b.csv": b"newer\n"}))

    assert (sandbox.root / "results/a.csv").read_text() == "edited\n"
    assert (sandbox.root / "results/b.csv").read_text() == "staged\n"
    assert sandbox.git("show", ":results/a.csv") == "newer\n", "the edit is one to the new version"
    assert sandbox.git("show", ":results/b.csv") == "staged\n"
    assert changes(sandbox) == " M results/a.csv\nM  results/b.csv\n"


def test_another_branch_that_is_checked_out_does_not_change(sandbox: Sandbox) -> None:
    sandbox.git("switch", "-q", "-c", "other")

    made = commit(sandbox)

    assert sandbox.git("rev-parse", "main").strip() == made
    assert changes(sandbox) == ""
    assert not (sandbox.root / "results").exists()


def test_a_commit_that_was_faster_is_kept_and_the_change_is_made_again(sandbox: Sandbox) -> None:
    bases: list[str] = []

    def make(base: str) -> Change:
        bases.append(base)
        if len(bases) == 1:
            sandbox.commit("Mine", {"mine.txt": "mine"})
        return OURS

    commit_on_branch(sandbox.workspace.repository, "main", make)

    assert len(bases) == 2
    assert sandbox.git("log", "-2", "--format=%s").split() == ["Ours", "Mine"]
    assert changes(sandbox) == ""


def test_it_waits_while_another_git_holds_the_index(sandbox: Sandbox) -> None:
    lock = sandbox.root / ".git/index.lock"
    lock.touch()
    threading.Timer(0.2, lock.unlink).start()

    commit(sandbox)

    assert changes(sandbox) == ""


def test_a_lock_that_stays_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepledger.repo.git.branch.LOCK_SECONDS", 0.0)
    (sandbox.root / ".git/index.lock").touch()
    before = sandbox.git("rev-parse", "HEAD")

    with pytest.raises(RepositoryError, match=r"index\.lock exists") as refused:
        commit(sandbox)

    assert "s old: remove it" in str(refused.value.hint)
    assert sandbox.git("rev-parse", "HEAD") == before


def killed_after_the_branch_moved(sandbox: Sandbox) -> None:
    """Leave what a kill between branch and work tree leaves, with git's lock and that of the copy."""
    before = sandbox.head()
    made = commit(sandbox)
    sandbox.git("reset", "-q", "--hard", before)
    sandbox.git("update-ref", "refs/heads/main", made)
    own = sandbox.root / ".git/sweepledger"
    (own / "update").write_text(f"{before} {made}\n")
    (own / "index.lock").touch()
    (sandbox.root / ".git/index.lock").hardlink_to(own / "lock")


def test_a_killed_update_is_completed_and_its_lock_removed(sandbox: Sandbox) -> None:
    killed_after_the_branch_moved(sandbox)

    finish_update(sandbox.workspace.repository, "main")

    assert changes(sandbox) == ""
    assert (sandbox.root / "results/a.csv").read_bytes() == b"ours\n"
    assert not (sandbox.root / ".git/index.lock").exists()


def test_a_lock_of_git_is_never_removed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepledger.repo.git.branch.LOCK_SECONDS", 0.0)
    killed_after_the_branch_moved(sandbox)
    (sandbox.root / ".git/index.lock").unlink()
    (sandbox.root / ".git/index.lock").touch()

    with pytest.raises(RepositoryError, match=r"index\.lock exists"):
        finish_update(sandbox.workspace.repository, "main")

    assert (sandbox.root / ".git/index.lock").exists()


def test_a_linked_work_tree_follows_its_own_branch(sandbox: Sandbox, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    sandbox.git("worktree", "add", "-q", "-b", "side", str(linked))

    commit_on_branch(Repository(linked), "side", lambda _: OURS)

    assert (linked / "results/a.csv").read_bytes() == b"ours\n"
    status = ["git", "status", "--porcelain"]
    assert subprocess.run(status, cwd=linked, capture_output=True, check=True).stdout == b""
    assert changes(sandbox) == ""
