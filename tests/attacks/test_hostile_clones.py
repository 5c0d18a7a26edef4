"""A clone whose configuration, hooks and attributes somebody else prepared: no command executes them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, SpecError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.run import RunOptions, SweepRun
from sweepledger.repo.state import create_state
from tests.repository import Sandbox

HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit", "post-merge"),
    *("post-index-change", "post-rewrite", "pre-auto-gc", "pre-commit", "prepare-commit-msg"),
    "reference-transaction",
)
COMMANDS = (
    *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "diff.external"),
    *("core.alternateRefsCommand", "uploadpack.packObjectsHook", "gpg.program", "gpg.ssh.program"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
    *("merge.evil.driver", "credential.helper", "sequence.editor", "trailer.evil.command"),
    *("alias.status", "remote.origin.uploadpack"),
)


@pytest.fixture
def hostile(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """A clone without remote in which every command leaves a proof."""
    sandbox.spec()
    sandbox.name_person()
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{tmp_path}/ran'\ncat\n")
    spy.chmod(0o755)
    hooks = sandbox.root / ".git/hooks"
    for name in HOOKS:
        shutil.copy(spy, hooks / name)
    (tmp_path / "attributes").write_text("* filter=evil diff=evil merge=evil ident\n")
    (sandbox.root / ".git/info/attributes").write_text("* filter=evil diff=evil\n")
    sandbox.git("config", "core.hooksPath", str(hooks))
    sandbox.git("config", "core.attributesFile", str(tmp_path / "attributes"))
    sandbox.git("config", "filter.evil.required", "true")
    sandbox.git("config", "commit.gpgSign", "true")
    for name in COMMANDS:
        sandbox.git("config", name, str(spy))
    sandbox.git("config", "submodule.recurse", "true")
    (sandbox.root / ".gitmodules").write_text(
        '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c evil\n\tupdate = !evil\n'
    )
    return sandbox


def test_nothing_that_a_clone_configures_runs_with_a_sweep(hostile: Sandbox, tmp_path: Path) -> None:
    subprocess.run(["git", "status"], cwd=hostile.root, capture_output=True, check=False)
    assert (tmp_path / "ran").exists(), "git itself runs it"
    (tmp_path / "ran").unlink()
    hostile.write("code/train.py", (hostile.root / "code/train.py").read_text() + "# edited\n")
    # As new as the index, so that git compares the content: whatever writes the index does so.
    os.utime(hostile.root / ".git/index", (1, 1))
    options = RunOptions(create_state(hostile.workspace.repository), commits_code=True)

    with pytest.raises(RepositoryError, match="configured to sign"):
        SweepRun.prepare(hostile.workspace, ("peak",))
    hostile.git("config", "commit.gpgSign", "false")
    with pytest.raises(SpecError, match="filter=evil"):
        list(SweepRun.prepare(hostile.workspace, ("peak",)).run(options))
    (hostile.root / ".git/info/attributes").write_text(
        "* diff=evil\n"
    )  # the file of the configuration remains
    list(SweepRun.prepare(hostile.workspace, ("peak",)).run(options))

    hostile.spec(xs="1, 2, 3, 4")
    hostile.generate()
    hostile.check(everything=True)

    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert (hostile.root / "results/peak/summary.csv").is_file()
    committed = Sandbox(hostile.remote, hostile.root).workspace.repository.read("HEAD", "code/train.py")
    assert committed["code/train.py"].endswith(b"# edited\n")


def partial(sandbox: Sandbox, *settings: tuple[str, str]) -> None:
    for name, value in (("remote.origin.promisor", "true"), *settings):
        sandbox.git("config", name, value)


def without(sandbox: Sandbox, path: str) -> str:
    identity = sandbox.git("rev-parse", f"HEAD:{path}").strip()
    (sandbox.root / ".git/objects" / identity[:2] / identity[2:]).unlink()
    return identity


NAMING = (
    *("remote.origin.uploadpack", "core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"),
    *("credential.https://x.helper", "Remote.Other.UploadPack"),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("setting", NAMING)
def test_a_partial_clone_names_no_command_to_run(setting: str, sandbox: Sandbox, tmp_path: Path) -> None:
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
    spy.chmod(0o755)
    without(sandbox, "code/train.py")
    partial(sandbox, (setting, str(spy)))

    with pytest.raises(RepositoryError, match="names a command") as refused:
        Workspace.find(sandbox.root)

    assert "git config --global" in (refused.value.hint or "")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["an included file", "settings of the work tree"])
def test_no_other_file_of_settings_makes_a_clone_partial_unnoticed(place: str, sandbox: Sandbox) -> None:
    settings = sandbox.root / ".git/config.worktree"
    settings.write_text('[remote "origin"]\n\tpromisor = true\n\tuploadpack = touch ran\n')
    if place == "an included file":
        sandbox.git("config", "include.path", str(settings.rename(sandbox.root.parent / "included")))
    else:
        sandbox.git("config", "extensions.worktreeConfig", "true")

    with pytest.raises(RepositoryError, match="names a command"):
        Workspace.find(sandbox.root)


def test_an_ordinary_partial_clone_fetches_what_it_lacks(sandbox: Sandbox) -> None:
    without(sandbox, "code/train.py")
    partial(sandbox, ("credential.helper", "store"), ("remote.origin.partialclonefilter", "blob:none"))

    content = sandbox.workspace.repository.read("HEAD", "code/train.py")

    assert content["code/train.py"].startswith(b'"""Score a point')


def test_a_missing_object_is_named(sandbox: Sandbox) -> None:
    identity = without(sandbox, "code/train.py")

    with pytest.raises(RepositoryError, match=identity):
        sandbox.workspace.repository.read("HEAD", "code/train.py")


def test_who_made_the_clone_may_trust_its_commands(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    partial(sandbox, ("credential.https://x.helper", "!true"))
    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root / "other"))
    with pytest.raises(RepositoryError, match="names a command"):
        Workspace.find(sandbox.root)

    monkeypatch.setenv("SWEEP_TRUSTED_CLONE", str(sandbox.root))

    assert Workspace.find(sandbox.root).repository.folder == sandbox.root
