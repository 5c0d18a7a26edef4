"""The commit that a command makes on a branch that others write to as well."""

from sweepledger.repo.git import Change
from tests.repository import Sandbox


def test_a_commit_that_lost_a_race_returns_what_was_computed_from_the_new_tip(sandbox: Sandbox) -> None:
    bases: list[str] = []

    def make(base: str) -> tuple[Change, str]:
        bases.append(base)
        if len(bases) == 1:
            sandbox.publish("Another writer", {"other": "faster"})
        return Change("Ours", {"ours": base.encode()}), base

    commit, value = sandbox.target().commit(make)

    assert commit is not None
    assert value == bases[1] == sandbox.head()
    assert sandbox.git("show", f"{commit}:ours") == value


def test_a_commit_on_head_is_computed_again_if_head_moves_meanwhile(sandbox: Sandbox) -> None:
    def make(base: str) -> tuple[Change, bytes]:
        before = sandbox.workspace.repository.read(base, "list").get("list", b"")
        if not before:
            sandbox.commit("Another writer", {"list": "theirs\n"})
        return Change("Ours", {"list": before + b"ours\n"}), before

    commit, value = sandbox.target(push=False).commit(make)

    assert (value, sandbox.git("show", f"{commit}:list")) == (b"theirs\n", "theirs\nours\n")


def test_a_proposal_that_exists_is_not_computed_again(sandbox: Sandbox) -> None:
    target = sandbox.target(is_reviewed=True)

    first = target.commit(lambda base: (Change("Ours", {"ours": b"1"}), base), proposals="next/peak")
    second = target.commit(lambda base: (Change("Ours", {"ours": b"2"}), base), proposals="next/peak")

    assert first[0] is not None
    assert second == (None, None)
