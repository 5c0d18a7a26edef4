"""The branch is somebody else's first, or the server says no: rows F2, F3 and F8 of what can go wrong."""

import importlib
import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import ContentionError, RepositoryError
from sweepledger.repo.git import Change, Repository, publish
from tests.cluster.conftest import clone, forge
from tests.cluster.forge import Forge
from tests.cluster.forge_clones import DEV, READER, REPOSITORY, Clone
from tests.cluster.forge_faults import Failing, Fault
from tests.faults.worlds import fsck, git
from tests.repository import Sandbox

__all__ = ["clone", "forge"]

RIVAL = """#!/bin/sh
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
lost=$(cat lost 2>/dev/null || echo 0)
[ "$lost" -lt {times} ] || exit 0
echo $((lost + 1)) > lost
made=$(git commit-tree -p main -m "rival $lost" 'main^{{tree}}')
git update-ref refs/heads/main "$made"
"""
WHO = {
    f"GIT_{role}_{key}": "rival@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
}
OURS = Change("ours", {"ours": b"1"})


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between two tries."""
    module = importlib.import_module("sweepledger.repo.git.remote")
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0.01)
    for name, value in WHO.items():
        monkeypatch.setenv(name, value)


def rival(sandbox: Sandbox, times: int) -> None:
    """Let a hook of the server put another's commit on main before each push, so many times."""
    hook = sandbox.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(RIVAL.format(times=times))
    hook.chmod(0o755)


@pytest.mark.parametrize(
    "times",
    [1, 5, pytest.param(50, marks=pytest.mark.full_suite("more lost races"))],
    ids=lambda times: f"F2 {times}",
)
def test_after_so_many_lost_races_it_lands_once(sandbox: Sandbox, hurried: None, times: int) -> None:
    rival(sandbox, times)

    made = publish(Repository.find(sandbox.root), "origin", "main", lambda _: OURS)

    assert git(sandbox.remote, "rev-parse", "main") == made
    subjects = git(sandbox.remote, "log", "--format=%s", "main").splitlines()
    assert subjects == ["ours", *(f"rival {one}" for one in reversed(range(times))), "Start"]
    fsck(sandbox.remote)


def test_f2_always_losing_ends_with_exit_4_and_no_loss(
    sandbox: Sandbox, hurried: None
) -> None:
    rival(sandbox, 10_000)
    tries: list[str] = []

    def make(base: str) -> Change:
        tries.append(base)
        return OURS

    with pytest.raises(ContentionError, match="nothing was lost") as caught:
        publish(Repository.find(sandbox.root), "origin", "main", make, budget=0.5)

    assert caught.value.exit_code == 4
    assert len(tries) == int((sandbox.remote / "lost").read_text())
    rival(sandbox, 0)
    assert publish(Repository.find(sandbox.root), "origin", "main", lambda _: OURS)


@pytest.mark.parametrize(
    "status",
    [
        401,
        503,
        *(
            pytest.param(status, marks=pytest.mark.full_suite("more answers of a server"))
            for status in (403, 429, 500)
        ),
    ],
    ids=lambda status: f"F8 {status}",
)
def test_a_server_that_says_no_is_believed_within_five_tries(forge: Forge, clone: Clone, status: int) -> None:
    forge.faults(Fault(Failing(status, on="pushes")))
    before = len(forge.requests())

    with pytest.raises(RepositoryError) as caught:
        publish(Repository(clone.root), "origin", "main", lambda _: OURS)

    assert caught.value.exit_code == 3
    assert sum(request.step != "reading" for request in forge.requests()[before:]) <= 5
    forge.faults()
    assert publish(Repository(clone.root), "origin", "main", lambda _: OURS)
    assert forge.git(REPOSITORY, "rev-list", "--count", "main") == "2"


def test_f8_who_may_only_read_is_told_so_and_loses_nothing(forge: Forge, clone: Clone) -> None:
    clone.speak_as(READER)

    with pytest.raises(RepositoryError) as caught:
        publish(Repository(clone.root), "origin", "main", lambda _: OURS)

    assert caught.value.exit_code == 3
    clone.speak_as(DEV)
    assert publish(Repository(clone.root), "origin", "main", lambda _: OURS)


def test_f8_a_server_that_answers_garbage_is_no_server(tmp_path: Path, sandbox: Sandbox) -> None:
    (tmp_path / "garbage").mkdir()
    sandbox.git("remote", "set-url", "origin", str(tmp_path / "garbage"))

    with pytest.raises(RepositoryError, match="does not appear to be a git repository"):
        publish(Repository.find(sandbox.root), "origin", "main", lambda _: OURS)


def test_f10_of_two_collectors_at_once_one_commits(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(sandbox.remote), str(other)], check=True)
    git(other, "config", "user.name", "Another")  # or both may make one commit, within one second

    def again(base: str) -> Change | None:
        return None if "ours" in Repository(other).files(base) else OURS

    def first(base: str) -> Change | None:
        if "ours" not in Repository(sandbox.root).files(base):
            publish(Repository(other), "origin", "main", again)
            return OURS
        return None

    assert publish(Repository(sandbox.root), "origin", "main", first) is None
    assert git(sandbox.remote, "rev-list", "--count", "main") == "2"
