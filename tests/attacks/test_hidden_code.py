"""Code runs that a pull request does not show: a commit locks it, and the next one puts the old file back."""

from collections.abc import Callable

import pytest

from tests.repository import Sandbox

EVIL = "print('score=99')\n"
NOT_SHOWN = [("program-not-shown", "program.code.tree")]


def problems(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in sandbox.check(base="origin/main").problems]


def locked_in_between(sandbox: Sandbox, *, xs: str) -> None:
    """Lock code that the next commit takes back."""
    honest = (sandbox.root / "code/train.py").read_text()
    sandbox.commit("Tidy up", {"code/train.py": EVIL})
    sandbox.spec(xs=xs)
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask for a sweep")
    sandbox.commit("Tidy up again", {"code/train.py": honest})


@pytest.mark.parametrize("history", ["a first batch", "a later batch", "a merge commit"])
def test_a_batch_locks_the_code_that_the_change_shows(history: str, sandbox: Sandbox) -> None:
    if history == "a later batch":
        sandbox.merged()
    sandbox.git("checkout", "-q", "-b", "proposal")
    locked_in_between(sandbox, xs="1, 2, 3, 4")
    if history == "a merge commit":
        sandbox.git("checkout", "-q", "main")
        sandbox.git("merge", "-q", "--no-ff", "proposal", "-m", "Merge")

    assert sandbox.git("diff", "--stat", "origin/main", "HEAD", "--", "code") == ""
    assert problems(sandbox) == NOT_SHOWN


def executable(sandbox: Sandbox) -> None:
    (sandbox.root / "code/train.py").chmod(0o755)


def removed(sandbox: Sandbox) -> None:
    (sandbox.root / "code/help.py").unlink()


def renamed(sandbox: Sandbox) -> None:
    (sandbox.root / "code/help.py").rename(sandbox.root / "code/Help.py")


def exchanged(sandbox: Sandbox) -> None:
    """Give each of two files the content of the other."""
    one, other = sandbox.root / "code/train.py", sandbox.root / "code/help.py"
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])


def linked(sandbox: Sandbox) -> None:
    (sandbox.root / "code/data").symlink_to("/etc")


CHANGES: dict[str, Callable[[Sandbox], object]] = {
    "a file more": lambda sandbox: sandbox.write("code/sitecustomize.py", EVIL),
    "a file more in a folder": lambda sandbox: sandbox.write("code/json/__init__.py", EVIL),
    "an executable file": executable,
    "a file less": removed,
    "another case of a name": renamed,
    "files exchanged": exchanged,
    "a link": linked,
    "a blank at an end": lambda sandbox: sandbox.write("code/help.py", "HELP = 1 \n"),
    "an emptied file": lambda sandbox: sandbox.write("code/train.py", ""),
    "a list of packages": lambda sandbox: sandbox.write("code/requirements.txt", "evil\n"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_squashed", [False, True], ids=["taken back", "in no commit"])
def test_no_reverted_change_is_locked(sandbox: Sandbox, change: str, *, is_squashed: bool) -> None:
    sandbox.publish("Help", {"code/help.py": "HELP = 1\n"})
    start = sandbox.git("rev-parse", "HEAD").strip()
    CHANGES[change](sandbox)
    sandbox.git("add", "--all")
    sandbox.git("commit", "-q", "-m", "Tidy up")
    sandbox.spec()
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask for a sweep")
    sandbox.git("rm", "-rqf", "code")
    sandbox.git("checkout", "-q", start, "--", "code")
    sandbox.commit("Tidy up again")
    if is_squashed:
        sandbox.git("reset", "-q", "--soft", start)
        sandbox.commit("Ask for a sweep")

    assert sandbox.git("diff", "--stat", start, "HEAD", "--", "code") == ""
    ((code, path),) = [problem for problem in problems(sandbox) if problem[0] != "path-outside"]
    # Without one of its files, the code is as it was in a commit long ago.
    is_known = not is_squashed or change == "a file less"
    assert (code, path) == ("program-not-shown" if is_known else "code-unreachable", "program.code.tree")


def test_a_first_batch_does_not_run_the_code_of_another_sweep(sandbox: Sandbox) -> None:
    honest = (sandbox.root / "code/train.py").read_text()
    sandbox.commit("Another program", {"code/train.py": EVIL})
    sandbox.merged("other")
    sandbox.spec()
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask for a sweep", {"code/train.py": honest})

    assert problems(sandbox) == NOT_SHOWN


def test_a_later_batch_does_not_run_the_code_of_any_but_the_newest(sandbox: Sandbox) -> None:
    honest = (sandbox.root / "code/train.py").read_text()
    sandbox.commit("Another program", {"code/train.py": EVIL})
    sandbox.merged()
    sandbox.commit("The program", {"code/train.py": honest})
    sandbox.spec(xs="1, 2, 3")
    sandbox.generate("peak", update=True)
    sandbox.publish("Ask again")
    first = sandbox.git("rev-list", "--max-count=1", "HEAD", "--", "code/train.py").strip()
    sandbox.git("checkout", "-q", f"{first}~1", "--", "code")
    sandbox.commit("For a moment")
    sandbox.spec(xs="1, 2, 3, 4")
    sandbox.generate("peak", update=True)
    sandbox.commit("Ask once more", {"code/train.py": honest})

    assert problems(sandbox) == NOT_SHOWN


def test_code_of_a_branch_that_was_merged_without_its_files_is_not_shown(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.commit("Side", {"code/train.py": EVIL})
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "-s", "ours", "side", "-m", "Merge")
    sandbox.push()
    sandbox.spec()
    sandbox.git("checkout", "-q", "side")
    sandbox.propose()
    sandbox.git("stash", "-q", "--include-untracked")
    sandbox.git("checkout", "-q", "main")
    sandbox.git("stash", "pop", "-q")
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == NOT_SHOWN


def test_code_that_main_once_had_is_not_shown(sandbox: Sandbox) -> None:
    honest = (sandbox.root / "code/train.py").read_text()
    sandbox.commit("A mistake", {"code/train.py": EVIL})
    sandbox.propose()
    sandbox.git("stash", "-q", "--include-untracked")
    sandbox.publish("Take it back", {"code/train.py": honest})
    sandbox.git("stash", "pop", "-q")
    sandbox.commit("Ask for a sweep")

    assert problems(sandbox) == NOT_SHOWN


def test_what_is_locked_from_the_last_commit_is_shown(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", (sandbox.root / "code/train.py").read_text() + "# better\n")
    sandbox.commit("Improve")
    sandbox.spec()
    sandbox.commit_batches("Ask for a sweep")

    assert problems(sandbox) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("merged_first", [True, False], ids=["code merged before", "code in this change"])
def test_further_trials_run_the_code_of_the_merged_batch(sandbox: Sandbox, *, merged_first: bool) -> None:
    sandbox.merged()
    sandbox.commit("Other code", {"code/train.py": EVIL})
    if merged_first:
        sandbox.push()
    sandbox.spec(xs="1, 2, 3, 4")
    sandbox.commit_batches("Ask for more")

    assert problems(sandbox) == []
