"""Code runs that a pull request does not show: a commit locks it, and the next one puts the old file back."""

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.generate import generate, update
from tests.repository import Sandbox

EVIL = "print('score=99')\n"


def problems(sandbox: Sandbox, base: str = "origin/main") -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in check(sandbox.workspace, base=base).problems]


def locked_in_between(sandbox: Sandbox, *, xs: str = "1, 2") -> str:
    """Lock code that the next commit takes back; give the batch."""
    honest = (sandbox.root / "code/train.py").read_text()
    sandbox.write("code/train.py", EVIL)
    sandbox.commit("Tidy up")
    sandbox.spec(xs=xs)
    generated = update(sandbox.workspace, "peak")
    sandbox.commit("Ask for a sweep")
    sandbox.write("code/train.py", honest)
    sandbox.commit("Tidy up again")
    assert generated.batch is not None
    return generated.batch.name


def test_a_first_batch_locks_the_code_that_the_change_shows(sandbox: Sandbox) -> None:
    locked_in_between(sandbox)

    assert sandbox.git("diff", "--stat", "origin/main", "HEAD", "--", "code") == ""
    assert problems(sandbox) == [("code-not-shown", "program.code.tree")]


def test_so_does_a_later_one(sandbox: Sandbox) -> None:
    sandbox.merged()
    locked_in_between(sandbox, xs="1, 2, 3, 4")

    assert problems(sandbox) == [("code-not-shown", "program.code.tree")]


def test_a_merge_commit_hides_nothing_either(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "proposal")
    locked_in_between(sandbox)
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "--no-ff", "proposal", "-m", "Merge")

    assert problems(sandbox) == [("code-not-shown", "program.code.tree")]


def test_code_of_a_branch_that_was_merged_without_its_files_is_not_shown(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.write("code/train.py", EVIL)
    sandbox.commit("Side")
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "-s", "ours", "side", "-m", "Merge")
    sandbox.push()
    sandbox.spec()
    sandbox.git("checkout", "-q", "side")
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.git("stash", "-q", "--include-untracked")
    sandbox.git("checkout", "-q", "main")
    sandbox.git("stash", "pop", "-q")
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == [("code-not-shown", "program.code.tree")]


def test_code_that_main_once_had_is_not_shown(sandbox: Sandbox) -> None:
    honest = (sandbox.root / "code/train.py").read_text()
    sandbox.write("code/train.py", EVIL)
    sandbox.commit("A mistake")
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.git("stash", "-q", "--include-untracked")
    sandbox.write("code/train.py", honest)
    sandbox.commit("Take it back")
    sandbox.push()
    sandbox.git("stash", "pop", "-q")
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == [("code-not-shown", "program.code.tree")]


def test_what_is_locked_from_the_last_commit_is_shown(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", (sandbox.root / "code/train.py").read_text() + "# better\n")
    sandbox.commit("Improve")
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("merged_first", [True, False], ids=["code merged before", "code in this change"])
def test_further_trials_run_the_code_of_the_merged_batch(sandbox: Sandbox, *, merged_first: bool) -> None:
    sandbox.merged()
    sandbox.write("code/train.py", EVIL)
    sandbox.commit("Other code")
    if merged_first:
        sandbox.push()
    sandbox.spec(xs="1, 2, 3, 4")
    generate(sandbox.workspace)
    sandbox.commit("Ask for more")

    assert problems(sandbox) == []
