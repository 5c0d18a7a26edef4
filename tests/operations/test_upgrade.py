"""`sweep cluster upgrade`: a repository of an earlier version goes on with this one."""

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.platform import DEFAULT_HOST
from sweepledger.structs.settings import Controller
from sweepledger.verbs.cluster.upgrade import BRANCH, propose_upgrade, upgrade_files
from tests.repository import Sandbox


@pytest.mark.parametrize(
    ("controller", "folder", "commands"),
    [
        (Controller.FLUX, "flux", ["-k clusters/flux"]),
        (Controller.ARGOCD, "platform", []),
        (Controller.ARGOCD, "argocd", ["-k clusters/argocd --force-conflicts"]),
    ],
)
def test_the_last_step(sandbox: Sandbox, controller: Controller, folder: str, commands: list[str]) -> None:
    bootstrap(sandbox.workspace, BootstrapRequest(controller, url="https://git.example.org/x.git"))
    file = next(path for path in (sandbox.root / "clusters" / folder).glob("*.yaml"))
    file.unlink()  # as if this version had added it

    *_, last = upgrade_files(sandbox.workspace, check=True).steps

    named = [f"kubectl{command}" for command in last.split("kubectl")[1:]]
    assert [command.strip("; ").partition("sweepledger-")[2][9:] for command in named] == commands


def test_the_change_is_pushed_as_a_branch_and_the_work_tree_stays(sandbox: Sandbox) -> None:
    sandbox.publish("An earlier version", {DEFAULT_HOST.pin_file: "sweepledger==0.0.1\n"})
    sandbox.write("notes.txt", "mine")
    head = sandbox.head()

    result = propose_upgrade(sandbox.workspace)

    commit = result.commit
    assert commit is not None
    assert sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}").split()[0] == commit
    assert sandbox.git("rev-parse", f"{commit}^").strip() == head
    assert sandbox.git("diff", "--name-only", head, commit).split() == [DEFAULT_HOST.pin_file]
    assert result.steps[0] in sandbox.git("show", "--no-patch", "--format=%B", commit)
    assert sandbox.git("status", "--porcelain").strip() == "?? notes.txt"
    assert (sandbox.root / DEFAULT_HOST.pin_file).read_text() == "sweepledger==0.0.1\n"


def test_a_branch_that_exists_is_not_written_over(sandbox: Sandbox) -> None:
    sandbox.publish("An earlier version", {DEFAULT_HOST.pin_file: "sweepledger==0.0.1\n"})
    sandbox.git("push", "-q", "origin", f"HEAD:refs/heads/{BRANCH}")
    sandbox.git("commit", "-q", "--allow-empty", "-m", "Another")
    sandbox.push()
    before = sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}")

    with pytest.raises(UsageError, match="already"):
        propose_upgrade(sandbox.workspace)

    assert sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}") == before


def test_without_anything_due_no_branch_is_pushed(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.publish("A spec")

    assert propose_upgrade(sandbox.workspace).commit is None
    assert sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}") == ""
