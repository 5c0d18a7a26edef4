from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.errors import ContentionError, RepositoryError
from sweepledger.repo.git import Change, Repository, fetch, publish, tracking_ref
from tests.command_line import git
from tests.repository import Sandbox


def subjects(sandbox: Sandbox) -> list[str]:
    return git(sandbox.remote, "log", "--format=%s", "main").splitlines()


def hook(sandbox: Sandbox, name: str, script: str) -> None:
    path = sandbox.remote / "hooks" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def another_clone(sandbox: Sandbox, tmp_path: Path) -> Repository:
    git(tmp_path, "clone", "-q", str(sandbox.remote), "other")
    return Repository.find(tmp_path / "other")


def pushed(sandbox: Sandbox, make: Callable[[str], Change | None]) -> str | None:
    return publish(Repository.find(sandbox.root), "origin", "main", make)


def test_a_change_lands_as_one_commit_and_nothing_of_the_clone_with_it(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", "dirty")
    sandbox.git("config", "push.followTags", "true")
    sandbox.git("tag", "-a", "v1", "-m", "Mine")
    spy = sandbox.root.parent / "spy"
    for name in ("pre-push", "reference-transaction", "post-index-change"):
        path = sandbox.root / ".git/hooks" / name
        path.write_text(f'#!/bin/sh\ntouch "{spy}"\n')
        path.chmod(0o755)
    before = sandbox.git("status", "--porcelain")
    spy.unlink(missing_ok=True)

    made = pushed(sandbox, lambda _: Change("results: one\n", {"results/a/b.csv": b"x\n"}))

    assert not spy.exists(), "no hook ran"
    assert made
    assert subjects(sandbox) == ["results: one", "Start"]
    assert sandbox.git("status", "--porcelain") == before
    assert "refs/tags" not in sandbox.git("ls-remote", "origin")


def test_files_move_with_content_and_mode(sandbox: Sandbox) -> None:
    made = pushed(sandbox, lambda _: Change("move", moves={"code/train.py": "old/train.py"}))

    repository = Repository.find(sandbox.root)
    files = repository.files(made)
    assert "code/train.py" not in files
    assert files["old/train.py"].mode == "100644"
    assert repository.read(made, "old")["old/train.py"] == (sandbox.root / "code/train.py").read_bytes()


def test_nothing_changed_is_no_commit(sandbox: Sandbox) -> None:
    same = (sandbox.root / "sweepledger.yaml").read_bytes()

    made = pushed(sandbox, lambda _: Change("x", {"sweepledger.yaml": same}))

    assert made is None
    assert pushed(sandbox, lambda _: None) is None
    assert subjects(sandbox) == ["Start"]


def test_a_lost_race_repeats_the_change_on_the_new_commit(sandbox: Sandbox, tmp_path: Path) -> None:
    rival = another_clone(sandbox, tmp_path)
    seen: list[str] = []

    def make(base: str) -> Change:
        seen.append(base)
        if len(seen) <= 2:
            publish(rival, "origin", "main", lambda _: Change(f"rival {len(seen)}", {f"r{len(seen)}": b"1"}))
        return Change("ours", {"ours": b"1"})

    pushed(sandbox, make)

    assert len(set(seen)) == 3
    assert subjects(sandbox) == ["ours", "rival 2", "rival 1", "Start"]


def test_one_of_two_publishes(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
    rival = another_clone(sandbox, tmp_path)
    repository = Repository.find(sandbox.root)
    start = fetch(repository, "origin", "main")
    rivals: list[str | None] = []

    def make(base: str) -> Change | None:
        if base != start:
            return None
        if not rivals:
            rivals.append(None)
            rivals.append(publish(rival, "origin", "main", make))
        return Change("the same", {"same": b"1"})

    assert publish(repository, "origin", "main", make) is None
    assert rivals[-1] == sandbox.git("ls-remote", "origin", "main").split()[0]
    assert subjects(sandbox) == ["the same", "Start"]


@pytest.mark.parametrize("is_broken", [False, True], ids=["nothing to change", "what cannot be changed"])
def test_a_change_that_an_old_state_does_not_allow_is_made_on_the_fetched_one(
    sandbox: Sandbox, tmp_path: Path, *, is_broken: bool
) -> None:
    rival = another_clone(sandbox, tmp_path)
    start = fetch(Repository.find(sandbox.root), "origin", "main")

    def make(base: str) -> Change | None:
        if base == start and is_broken:
            raise RepositoryError("a file is broken")
        return None if base == start else Change("ours", {"ours": b"1"})

    if is_broken:
        with pytest.raises(RepositoryError, match="a file is broken"):
            pushed(sandbox, make)
    publish(rival, "origin", "main", lambda _: Change("rival", {"r": b"1"}))

    assert pushed(sandbox, make)
    assert subjects(sandbox) == ["ours", "rival", "Start"]


def test_what_was_taken_from_a_branch_does_not_come_back(sandbox: Sandbox) -> None:
    repository = Repository.find(sandbox.root)
    publish(repository, "origin", "main", lambda _: Change("taken back", {"secret": b"1"}))
    git(sandbox.remote, "update-ref", "refs/heads/main", "main~1")

    publish(repository, "origin", "main", lambda _: Change("ours", {"ours": b"1"}))

    assert subjects(sandbox) == ["ours", "Start"]


def test_endless_lost_races_end_with_the_time_budget(sandbox: Sandbox, tmp_path: Path) -> None:
    rival = another_clone(sandbox, tmp_path)
    count = iter(range(1000))

    def make(_base: str) -> Change:
        number = next(count)
        publish(rival, "origin", "main", lambda _: Change("rival", {f"r{number}": b"1"}))
        return Change("ours", {"ours": b"1"})

    with pytest.raises(ContentionError, match="other writers pushed to main first") as caught:
        publish(Repository.find(sandbox.root), "origin", "main", make, budget=0.0)

    assert caught.value.exit_code == 4


def test_a_refusal_shows_the_servers_message_once(sandbox: Sandbox) -> None:
    hook(sandbox, "pre-receive", 'echo "only robots may push here" >&2; exit 1')
    tries: list[str] = []

    def make(base: str) -> Change:
        tries.append(base)
        return Change("ours", {"ours": b"1"})

    with pytest.raises(RepositoryError, match="only robots may push here"):
        pushed(sandbox, make)

    assert len(tries) == 1


def test_a_push_whose_response_is_lost_counts(sandbox: Sandbox) -> None:
    hook(sandbox, "post-receive", "kill -9 $PPID")
    seen: list[str] = []

    def make(base: str) -> Change:
        seen.append(base)
        return Change("ours", {"ours": b"1"})

    made = pushed(sandbox, make)

    assert made == Repository(sandbox.remote).commit("main")
    assert len(seen) == 1
    assert subjects(sandbox) == ["ours", "Start"]


def test_without_an_identity_in_git_sweepledger_is_the_author(sandbox: Sandbox) -> None:
    pushed(sandbox, lambda _: Change("x", {"a": b"1"}))
    sandbox.name_person()
    pushed(sandbox, lambda _: Change("y", {"a": b"2"}))

    assert git(sandbox.remote, "log", "--format=%an <%ae> %cn", "main").splitlines()[:2] == [
        "Ada <ada@example.org> Ada",
        "sweepledger <sweepledger@localhost> sweepledger",
    ]


def test_branches_of_two_remotes_do_not_overwrite_each_other(sandbox: Sandbox, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "-q", "--bare", str(sandbox.remote), "fork")
    sandbox.git("remote", "add", "fork", str(fork))
    repository = Repository.find(sandbox.root)
    of_fork = publish(repository, "fork", "main", lambda _: Change("Of the fork", {"a": b"1"}))

    of_origin = fetch(repository, "origin", "main")
    assert fetch(repository, "fork", "main") == of_fork != of_origin

    assert repository.commit(tracking_ref("origin", "main")) == of_origin
    assert repository.commit(tracking_ref("fork", "main")) == of_fork
