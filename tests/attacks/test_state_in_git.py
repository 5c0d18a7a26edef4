"""A pull request commits `.sweepledger/`: code, results or git's configuration that a machine would believe."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.repo.git import Repository
from tests.command_line import run_sweep
from tests.repository import Sandbox

EVIL = "import pathlib, sys\npathlib.Path({proof!r}).write_text('ran')\nprint('score=99')\n"
HOOK = '#!/bin/sh\ntouch {proof}\nexec git-upload-pack "$@"\n'


def planted_code(root: Path, batch: str, proof: Path) -> None:
    """Plant the tree of the locked code, as the mirror checks it out, with another program."""
    tree = Repository(root).run("rev-parse", "HEAD:code").strip()
    listing = f"040000 tree {tree}\tcode\n".encode()
    rooted = Repository(root).run("mktree", content=listing).strip()
    write(root, f".sweepledger/code/{rooted}/code/train.py", EVIL.format(proof=str(proof)))
    write(root, f".sweepledger/code/{rooted}.done", "")


def planted_results(root: Path, batch: str, proof: Path) -> None:
    for index in range(3):
        record = {"version": 1, "status": "ok", "metrics": {"score": 12345.0}}
        write(root, f".sweepledger/results/{batch}/{index}/attempt-1.json", json.dumps(record))


def planted_mirror(root: Path, batch: str, proof: Path) -> None:
    write(root, "run.sh", HOOK.format(proof=proof)).chmod(0o755)
    write(root, ".sweepledger/mirror.git/HEAD", "ref: refs/heads/main\n")
    write(root, ".sweepledger/mirror.git/config", f'[remote "origin"]\n\tuploadpack = {root}/run.sh\n')


def planted_ignore_link(root: Path, batch: str, proof: Path) -> None:
    write(root, "victim.txt", "the user's own\n")
    link(root, ".sweepledger/.gitignore", "../victim.txt")


def planted_link(root: Path, batch: str, proof: Path) -> None:
    write(root, "elsewhere/.gitkeep", "")
    link(root, ".sweepledger", "elsewhere")


def write(root: Path, path: str, text: str) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


def link(root: Path, path: str, target: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).symlink_to(target)


PLANTED = [planted_code, planted_results, planted_mirror, planted_ignore_link, planted_link]


def attacked(sandbox: Sandbox, plant: Callable[[Path, str, Path], None], proof: Path) -> None:
    """Merge a batch, and after it what a pull request would plant."""
    batch = sandbox.merged()
    (sandbox.root / ".gitignore").unlink()
    if (sandbox.root / ".sweepledger").is_dir():
        subprocess.run(["rm", "-rf", str(sandbox.root / ".sweepledger")], check=True)
    plant(sandbox.root, batch, proof)
    sandbox.git("add", "--force", "--all")
    sandbox.git("commit", "-q", "-m", "A small improvement")


@pytest.mark.parametrize("plant", PLANTED)
def test_the_check_refuses_what_is_planted(
    sandbox: Sandbox, tmp_path: Path, plant: Callable[[Path, str, Path], None]
) -> None:
    attacked(sandbox, plant, tmp_path / "proof")

    problems = sandbox.check(base="origin/main").problems

    refused = {problem.file for problem in problems if problem.code == "state-in-git"}
    tracked = sandbox.git("ls-files", "--", ".sweepledger").split("\n")[:-1]
    assert refused == set(tracked)
    assert all(problem.hint for problem in problems)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("plant", PLANTED)
def test_once_merged_nothing_planted_is_run_read_or_overwritten(
    sandbox: Sandbox, tmp_path: Path, plant: Callable[[Path, str, Path], None]
) -> None:
    proof = tmp_path / "proof"
    attacked(sandbox, plant, proof)
    sandbox.push()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(sandbox.remote), str(clone)], check=True)
    before = {
        path: path.read_bytes() for path in clone.rglob("*") if path.is_file() and ".git/" not in str(path)
    }

    for command in ("cluster local --once", "status", "cluster collect", "generate", "logs t0"):
        done = run_sweep(*command.split(), cwd=clone)
        assert done.returncode == 3, (command, done.stderr)
        assert "sweepledger" in done.stderr
        assert "hint" in done.stderr

    assert not proof.exists()
    for path, content in before.items():
        assert path.read_bytes() == content
    assert not (clone / "results").exists()


def test_state_that_git_has_written_into_is_not_trusted_after_git_forgets_it(sandbox: Sandbox) -> None:
    sandbox.merged()
    assert sandbox.sweep("cluster", "local", "--once").returncode == 0
    write(sandbox.root, ".sweepledger/results/planted", "")
    sandbox.git("add", "--force", ".sweepledger/results/planted")
    assert sandbox.sweep("status").returncode == 3

    sandbox.git("rm", "-q", "--cached", ".sweepledger/results/planted")
    done = sandbox.sweep("status")

    assert done.returncode == 3
    assert "was not created by this clone" in done.stderr
    subprocess.run(["rm", "-rf", str(sandbox.root / ".sweepledger")], check=True)
    assert sandbox.sweep("status").returncode == 0


FORMS = (
    *(".sweepledger", ".sweepledger/x", ".SweepLedger/x", ".SWEEPLEDGER", "code/.sweepledger/x"),
    *(".sweepledger./x", ".sweepledger /x", ".sweepledger::$INDEX_ALLOCATION/x", "SWEEPL~1/x", "sweepl~2"),
    *(".sweep\u200cledger/x", ".\ufeffsweepledger/x", ".\u017fweepledger/x", "\uff0esweepledger/x"),
    ".sweepledger\\x",
)
TARGETS = (
    *(".sweepledger", ".sweepledger/results", "../.sweepledger/code", "code/../.SWEEPLEDGER/x"),
    *("./.sweepledger/", "/home/user/repository/.sweepledger", "sweepl~1/results"),
)
OTHER = (
    *("sweepledger", "sweepledger.yaml.md", "code/sweepledger/x.py", "docs/.sweepledger.md"),
    "my.sweepledger/x",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", FORMS)
def test_each_form_of_the_name_is_refused(sandbox: Sandbox, path: str) -> None:
    blob = sandbox.git("hash-object", "-w", "code/train.py").strip()
    sandbox.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")

    assert (path, "state-in-git") in sandbox.problems()


def test_links_into_the_state_are_refused_by_their_target(sandbox: Sandbox) -> None:
    for number, target in enumerate(TARGETS):
        link(sandbox.root, f"code/data-{number}", target)
    sandbox.git("add", "--all")

    refused = {item.file: item.message for item in sandbox.check().problems if item.code == "state-in-git"}

    for number, target in enumerate(TARGETS):
        assert target in refused[f"code/data-{number}"]


def test_a_submodule_in_the_place_of_the_state_is_refused(sandbox: Sandbox) -> None:
    commit = sandbox.head()
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{commit},.sweepledger")

    assert "state-in-git" in sandbox.codes()


def test_other_names_are_allowed(sandbox: Sandbox) -> None:
    for path in OTHER:
        write(sandbox.root, path, "x\n")
    link(sandbox.root, "code/link", "train.py")
    sandbox.git("add", "--all")

    assert "state-in-git" not in sandbox.codes()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_the_state_of_another_user_is_refused(sandbox: Sandbox) -> None:
    assert sandbox.sweep("generate").returncode == 0
    sandbox.merged()
    assert (sandbox.root / ".sweepledger").is_dir()
    os.chown(sandbox.root / ".sweepledger", 12345, 12345)

    done = sandbox.sweep("status")

    assert done.returncode == 3
    assert "belongs to another user (uid 12345)" in done.stderr


def test_state_chosen_inside_the_work_tree_is_checked_as_well(sandbox: Sandbox) -> None:
    sandbox.merged()
    write(sandbox.root, "mine/results/planted", "")
    sandbox.git("add", "mine")
    assert sandbox.sweep("cluster", "local", "--once", "--state", "mine").returncode == 3

    sandbox.git("rm", "-q", "-r", "--cached", "mine")
    assert sandbox.sweep("cluster", "local", "--once", "--state", "mine").returncode == 3
    assert sandbox.sweep("cluster", "local", "--once", "--state", "other").returncode == 0
    assert sandbox.sweep("cluster", "local", "--once", "--state", "other").returncode == 0
