"""`sweep upgrade`: a repository of an earlier version goes on with this one, and no batch changes."""

import shutil
from dataclasses import replace

import pytest

from sweepledger import __version__
from sweepledger.commands.repository.base_files import write_bases
from sweepledger.commands.scaffold.bootstrap import BootstrapRequest, bootstrap, read_bootstrap
from sweepledger.commands.scaffold.upgrade import BRANCH, PIN_FILE, propose_upgrade, upgrade
from sweepledger.errors import UsageError
from sweepledger.formats import bootstrap_yaml
from sweepledger.repo import batches
from sweepledger.structs.settings import Controller
from sweepledger.structs.values import bytes_digest
from tests.commands.test_first_version import BATCHES, CASES
from tests.golden.test_golden import SETTINGS
from tests.repository import Sandbox

HOOK = "clusters/pre-receive.sh"


def test_an_earlier_repository_is_upgraded_by_one_change_that_touches_no_batch_and_no_base(
    sandbox: Sandbox,
) -> None:
    sandbox.write("sweepledger.yaml", SETTINGS)
    sandbox.write(PIN_FILE, "sweepledger[sampling]==0.0.1\n")
    shutil.copytree(CASES / "indexed/sweeps", sandbox.root / "sweeps")
    shutil.copytree(BATCHES / "indexed", sandbox.root / "overlays/active")
    (stored,) = batches.in_work_tree(sandbox.root)
    write_bases(sandbox.root, stored.lock.bases)
    bootstrap(sandbox.workspace, BootstrapRequest(Controller.ARGOCD, url="https://git.example.org/x.git"))
    earlier = b"#!/bin/sh\n# an earlier hook\n"
    sandbox.write(HOOK, earlier.decode())
    recorded = read_bootstrap(sandbox.root)
    assert recorded is not None
    digests = {**recorded.files, HOOK: bytes_digest(earlier)}
    text = bootstrap_yaml.write(replace(recorded, files=digests), banner="")
    sandbox.write(bootstrap_yaml.BOOTSTRAP_FILE, text)
    sandbox.commit("As the version before left it")
    sandbox.push()

    due = upgrade(sandbox.workspace, check=True)
    is_clean = not sandbox.git("status", "--porcelain")
    done = upgrade(sandbox.workspace)
    changed = sandbox.git("status", "--porcelain", "--untracked-files=all").split()[1::2]

    assert is_clean
    assert set(due.written) == set(done.written) == {PIN_FILE, HOOK, bootstrap_yaml.BOOTSTRAP_FILE}
    assert set(changed) == set(done.written)
    assert (sandbox.root / PIN_FILE).read_text() == f"sweepledger[sampling]=={__version__}\n"
    assert HOOK in done.steps[0]
    assert upgrade(sandbox.workspace, check=True).written == ()


@pytest.mark.parametrize(
    ("controller", "folder", "commands"),
    [
        (Controller.FLUX, "platform", ["-k clusters/platform"]),
        (Controller.FLUX, "flux", ["-k clusters/flux"]),
        (Controller.ARGOCD, "platform", []),
        (Controller.ARGOCD, "argocd", ["-k clusters/argocd --force-conflicts"]),
    ],
)
def test_the_last_step_applies_what_no_controller_applies(
    sandbox: Sandbox, controller: Controller, folder: str, commands: list[str]
) -> None:
    bootstrap(sandbox.workspace, BootstrapRequest(controller, url="https://git.example.org/x.git"))
    file = next(path for path in (sandbox.root / "clusters" / folder).glob("*.yaml"))
    file.unlink()  # as if this version had added it

    *_, last = upgrade(sandbox.workspace, check=True).steps

    named = [f"kubectl{command}" for command in last.split("kubectl")[1:]]
    assert [command.strip("; ").partition("sweepledger-")[2][9:] for command in named] == commands


def test_the_change_is_pushed_as_a_branch_and_the_work_tree_stays(sandbox: Sandbox) -> None:
    sandbox.write(PIN_FILE, "sweepledger==0.0.1\n")
    sandbox.commit("An earlier version")
    sandbox.push()
    sandbox.write("notes.txt", "mine")
    head = sandbox.head()

    result, commit = propose_upgrade(sandbox.workspace)

    assert commit is not None
    assert sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}").split()[0] == commit
    assert sandbox.git("rev-parse", f"{commit}^").strip() == head
    assert sandbox.git("diff", "--name-only", head, commit).split() == [PIN_FILE]
    assert result.steps[0] in sandbox.git("show", "--no-patch", "--format=%B", commit)
    assert sandbox.git("status", "--porcelain").strip() == "?? notes.txt"
    assert (sandbox.root / PIN_FILE).read_text() == "sweepledger==0.0.1\n"


def test_a_branch_that_exists_is_not_written_over(sandbox: Sandbox) -> None:
    sandbox.write(PIN_FILE, "sweepledger==0.0.1\n")
    sandbox.commit("An earlier version")
    sandbox.push()
    sandbox.git("push", "-q", "origin", f"HEAD:refs/heads/{BRANCH}")
    sandbox.git("commit", "-q", "--allow-empty", "-m", "Another")
    sandbox.push()
    before = sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}")

    with pytest.raises(UsageError, match="already"):
        propose_upgrade(sandbox.workspace)

    assert sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}") == before


def test_without_anything_due_no_branch_is_pushed(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("A spec")
    sandbox.push()

    assert propose_upgrade(sandbox.workspace)[1] is None
    assert sandbox.git("ls-remote", "origin", f"refs/heads/{BRANCH}") == ""
