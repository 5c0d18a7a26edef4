"""The collector's credential brings a branch to a commit that the server has already, under another ref."""

import subprocess

import pytest

from sweepledger.structs.settings import ResultsMode
from tests.operations.test_bootstrap import bootstrapped, guarded, install, push, run_bootstrap
from tests.repository import Sandbox

__all__ = ["bootstrapped", "guarded"]  # the fixtures

HELD = [
    *("refs/heads/innocent", "refs/heads/results/peak/0123456789ab", "refs/heads/progress/peak"),
    *("refs/pull/7/head", "refs/merge-requests/7/head", "refs/tags/v9", "refs/keep-around/1"),
    *("refs/heads/main-backup", "refs/notes/x", "refs/changes/01/1/1"),
]


def evil(sandbox: Sandbox) -> str:
    sandbox.write("code/train.py", "print('score=99')\n")
    return sandbox.commit("Evil")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ref", HELD)
def test_what_another_ref_holds_is_looked_at_all_the_same(guarded: Sandbox, ref: str) -> None:
    before = guarded.git("rev-parse", "origin/main").strip()
    commit = evil(guarded)
    # The commit comes to the server first, as a branch or a pull request, for which few rights are needed.
    subprocess.run(["git", "fetch", "-q", str(guarded.root), f"main:{ref}"], cwd=guarded.remote, check=True)

    assert "code/train.py [push-not-allowed]" in push(guarded)

    held = subprocess.run(
        ["git", "rev-parse", "main", ref], cwd=guarded.remote, check=True, capture_output=True, text=True
    )
    assert held.stdout.split() == [before, commit]


def test_so_it_is_behind_a_commit_that_is_allowed(guarded: Sandbox) -> None:
    evil(guarded)
    assert push(guarded, "main:innocent", pusher="ada") == ""
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})

    assert "code/train.py" in push(guarded)


def test_so_it_is_where_the_branch_is_new(guarded: Sandbox) -> None:
    run_bootstrap(guarded, mode=ResultsMode.BRANCH)
    guarded.commit("Results by branches")
    assert push(guarded, pusher="ada") == ""
    install(guarded)
    evil(guarded)
    assert push(guarded, "main:innocent", pusher="ada") == ""
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})

    assert "code/train.py" in push(guarded, "main:refs/heads/results/peak/0123456789ab")


def test_results_that_another_ref_holds_are_taken(guarded: Sandbox) -> None:
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})
    assert push(guarded, "main:innocent", pusher="ada") == ""

    assert push(guarded) == ""
