"""`sweep check --hook` on a real git server: what a push brings to the branch is checked before the branch has it."""

import shlex
import subprocess

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.checks.context import PushedRef, is_collector, read_refs
from tests.command_line import install_sweep
from tests.operations.test_bootstrap import push
from tests.operations.test_pushed_rounds import pristine, searching
from tests.repository import Sandbox, replace_in

__all__ = ["pristine", "searching"]  # fixtures

pytestmark = pytest.mark.usefixtures("needs_kustomize")
OLD, NEW = "1" * 40, "2" * 40


def install(sandbox: Sandbox) -> Sandbox:
    hook = sandbox.remote / "hooks/pre-receive"
    sweep = install_sweep(sandbox.remote / "hooks")
    hook.write_text(f"#!/bin/sh\nexec {shlex.quote(str(sweep))} check --hook --month 2026-11\n")
    hook.chmod(0o755)
    return sandbox


def tip(sandbox: Sandbox, branch: str = "main") -> str:
    argv = ["git", "-C", str(sandbox.remote), "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def test_a_good_change_is_accepted_and_a_bad_one_is_refused_with_its_problems(sandbox: Sandbox) -> None:
    install(sandbox).spec()
    name = sandbox.new_batch().name
    good = sandbox.commit("Ask")
    assert push(sandbox, pusher="ana") == ""
    assert tip(sandbox) == good
    replace_in(sandbox.root / f"overlays/active/{name}/job.yaml", 'cpu: "1"', 'cpu: "64"')
    sandbox.commit("Edit it")

    message = push(sandbox, pusher="ana")

    assert "batch-edited" in message
    assert f"overlays/active/{name}/job.yaml" in message
    assert tip(sandbox) == good


def test_what_another_branch_gets_is_checked_as_it_comes_to_the_branch(sandbox: Sandbox) -> None:
    install(sandbox).spec()  # without its batch
    sandbox.commit("Half of it, and another branch to check", {"sweepledger.yaml": "branch: other\n"})

    assert push(sandbox, "HEAD:refs/heads/mine", "HEAD:refs/tags/v1", pusher="ana") == ""
    assert "drift" in push(sandbox, pusher="ana")
    assert push(sandbox, ":refs/heads/mine", pusher="ana") == ""


def test_results_and_the_round_that_follows_them_are_accepted_of_the_collector(searching: Sandbox) -> None:
    assert "recorded history" in push(install(searching), pusher="ana")
    assert push(searching) == ""


@pytest.mark.parametrize(
    ("environment", "is_it"),
    [
        ({}, False),
        ({"REMOTE_USER": "ana"}, False),
        ({"REMOTE_USER": "sweep-collector"}, True),
        ({"GL_USERNAME": "ana", "REMOTE_USER": "sweep-collector"}, False),
        ({"GL_USERNAME": "", "GITEA_PUSHER_NAME": "sweep-collector"}, True),
    ],
)
def test_the_server_says_who_pushes(environment: dict[str, str], *, is_it: bool) -> None:
    assert is_collector(environment) is is_it


def test_refs_are_read_as_git_writes_them() -> None:
    zero = "0" * 40

    assert read_refs(
        f"{OLD} {NEW} refs/heads/main\n{zero} {NEW} refs/heads/é\n{OLD} {zero} refs/tags/v1\n"
    ) == (
        PushedRef("refs/heads/main", OLD, NEW),
        PushedRef("refs/heads/é", None, NEW),
        PushedRef("refs/tags/v1", OLD, None),
    )


@pytest.mark.parametrize(
    "text",
    ["x", f"{OLD} {NEW}", f"{OLD} {NEW} main", f"{OLD} {NEW} refs/heads/a b", f"HEAD {NEW} refs/heads/main"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="lines of old commit, new commit and ref"):
        read_refs(text)


def test_by_hand_it_says_what_it_is_for(sandbox: Sandbox) -> None:
    done = sandbox.sweep("check", "--hook", stdin=b"hello\n")

    assert done.returncode == 2
    assert "pre-receive hook" in done.stderr
