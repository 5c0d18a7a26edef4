"""Attributes, line ends, sparse and shallow clones, hashes and keys: each command is right, or refused at once."""

import re
import subprocess
from itertools import combinations, product
from pathlib import Path

import pytest

from tests.command_line import git, run_sweep
from tests.repository import Sandbox

SPEC = """name: score
method: grid
metric: {name: score, goal: maximize}
parameters: {x: {values: [1.0, 1.5]}}
command: [python, code/train.py, "${args}"]
run: {code: {path: code}}
"""
READING = (
    "validate", "plan", "check", "status", "results score", "verify", "log score", "compare score score",
    "show TRIAL", "why score", "compare score score --explain", "show TRIAL --reproduce",
    "show TRIAL --reproduce --run",
)  # fmt: skip
WRITING = ("generate score", "retry score", "run score")

ATTRIBUTES = {
    "none": "",
    "lfs": "*.csv filter=upper\n",
    "crlf": "* text=auto eol=crlf\n",
    "encoding": "*.yaml working-tree-encoding=UTF-16\n",
    "ident": "* ident\n/code/** !ident\n",
}
LINE_ENDS = {"lf": "false", "crlf": "true", "input": "input"}
CHECKOUTS = {"whole": None, "code": ("sweeps", "overlays", "code"), "results": ("sweeps", "results", "base")}
DEPTHS = {"deep": (), "shallow": ("--depth=1",)}
PLACES = {"clone": False, "worktree": True}
CHOICES = (ATTRIBUTES, LINE_ENDS, CHECKOUTS, DEPTHS, PLACES)


def pairs() -> list[tuple[str, ...]]:
    """Return few combinations with every pair of two choices, greedily and in one order."""
    every = list(product(*CHOICES))
    missing = {pair for case in every for pair in combinations(enumerate(case), 2)}
    chosen: list[tuple[str, ...]] = []
    while missing:
        best = max(every, key=lambda case: len(missing.intersection(combinations(enumerate(case), 2))))
        chosen.append(best)
        missing -= set(combinations(enumerate(best), 2))
    return chosen


def committed(sandbox: Sandbox, attributes: str) -> Sandbox:
    """Return a repository with a recorded sweep, whose attributes are older than it."""
    for setting, value in (("user.name", "T"), ("user.email", "t@example.org")):
        sandbox.git("config", setting, value)
    sandbox.git("config", "filter.upper.clean", "tr a-z A-Z")
    if attributes:
        sandbox.write(".gitattributes", attributes)
        sandbox.git("add", ".gitattributes")
        sandbox.git("commit", "-qm", "attributes")
    sandbox.write("sweeps/score.yaml", SPEC)
    ran = run_sweep("run", "score", cwd=sandbox.root)
    assert ran.returncode == 0, ran.stderr
    again = run_sweep("verify", cwd=sandbox.root)
    assert again.returncode == 0, again.stdout + again.stderr
    sandbox.git("push", "-q", "origin", "main")
    return sandbox


def cloned(sandbox: Sandbox, folder: Path, case: tuple[str, ...]) -> Path:
    """Return a clone of the remote repository as a case wants it."""
    _, ends, checkout, depth, place = case
    ended = ("git", "-c", f"core.autocrlf={LINE_ENDS[ends]}")
    url = f"file://{sandbox.remote}"
    subprocess.run([*ended, "clone", "-q", "--no-checkout", *DEPTHS[depth], url, str(folder)], check=True)
    for setting in (
        ("core.autocrlf", LINE_ENDS[ends]),
        ("filter.upper.clean", "tr a-z A-Z"),
        ("user.name", "T"),
        ("user.email", "t@example.org"),
    ):
        subprocess.run(["git", "config", *setting], cwd=folder, check=True)
    if PLACES[place]:
        linked = folder.with_name("linked")
        git(folder, "worktree", "add", "-q", "--no-checkout", "-b", "w", str(linked))
        folder = linked
    cone = CHECKOUTS[checkout]
    if cone is not None:
        subprocess.run(["git", "sparse-checkout", "set", *cone], cwd=folder, check=True)
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=folder, check=True)
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", pairs(), ids="-".join)
def test_each_command_is_right_or_refused(sandbox: Sandbox, tmp_path: Path, case: tuple[str, ...]) -> None:
    committed(sandbox, ATTRIBUTES[case[0]])
    folder = cloned(sandbox, tmp_path / "clone", case)
    assert git(folder, "status", "--porcelain") == ""
    _, row, *_ = sandbox.git("show", "main:results/score/summary.csv").splitlines()

    for words in (*READING, *WRITING):
        command = words.replace("TRIAL", f"score/{row.split(',')[0]}")
        answer = run_sweep(*command.split(), cwd=folder)
        text = answer.stdout + answer.stderr
        if case[3] == "shallow" and answer.returncode == 3:
            assert "git fetch --unshallow" in text, f"{command}: {text}"
            subprocess.run(["git", "fetch", "-q", "--unshallow"], cwd=folder, check=True)
            answer = run_sweep(*command.split(), cwd=folder)
            text = answer.stdout + answer.stderr
        assert answer.returncode == 0, f"{command}: {text}"
        assert "cancelled" not in text or command == "retry score", command
        assert "edited by hand" not in text, command
        assert git(folder, "status", "--porcelain") == "", command


def test_a_run_leaves_a_sparse_checkout_alone(sandbox: Sandbox, tmp_path: Path) -> None:
    committed(sandbox, "")
    folder = cloned(sandbox, tmp_path / "clone", ("none", "lf", "results", "deep", "clone"))
    spec = folder / "sweeps/score.yaml"
    spec.write_text(spec.read_text().replace("1.5]", "1.5, 2.5]"))

    ran = run_sweep("run", "score", cwd=folder)

    assert ran.returncode == 0, ran.stderr
    assert git(folder, "status", "--porcelain") == ""
    assert "3/3" in run_sweep("log", "score", cwd=folder).stdout
    subprocess.run(["git", "sparse-checkout", "disable"], cwd=folder, check=True)
    assert run_sweep("verify", cwd=folder).returncode == 0


def test_specs_outside_a_sparse_checkout_are_named(sandbox: Sandbox, tmp_path: Path) -> None:
    folder = cloned(committed(sandbox, ""), tmp_path / "clone", ("none", "lf", "whole", "deep", "clone"))
    subprocess.run(["git", "sparse-checkout", "set", "code", "overlays"], cwd=folder, check=True)

    for command in ("status", "check", "plan"):
        refused = run_sweep(command, cwd=folder)
        assert refused.returncode == 3, command
    subprocess.run(["git", "sparse-checkout", "add", "sweeps"], cwd=folder, check=True)
    assert "`git sparse-checkout add sweeps`" in refused.stderr
    assert run_sweep("check", cwd=folder).returncode == 0


def test_a_repository_of_another_hash_is_refused_and_the_hint_works(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(old)], check=True)
    (old / "train.py").write_text("print('score=1')\n")
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    subprocess.run(["git", "add", "--all"], cwd=old, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "start"], cwd=old, check=True)

    for command in (
        ("new", "score", "--command", "python train.py", "--param", "x=1"),
        ("status",),
        ("check",),
    ):
        refused = run_sweep(*command, cwd=old)
        assert refused.returncode == 3
        assert "SHA-1" in refused.stderr
    for command in re.findall(r"`([^`]+)`", refused.stderr):
        subprocess.run(["sh", "-c", command.replace("NEW", str(new))], cwd=old, check=True)

    made = run_sweep("new", "score", "--command", "python train.py", "--param", "x=1", cwd=new)
    assert made.returncode == 0, made.stderr


def test_a_new_repository_has_a_hash_that_locks_can_name(tmp_path: Path) -> None:
    made = run_sweep("cluster", "init", "lab", cwd=tmp_path, GIT_DEFAULT_HASH="sha256")

    assert made.returncode == 0, made.stderr
    assert run_sweep("check", cwd=tmp_path / "lab").returncode == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("form", "key"),
    [("ssh", "nowhere"), ("openpgp", "0123456789ABCDEF"), ("", ""), ("ssh", ""), ("x509", "a")],
)
def test_a_commit_without_signature_is_refused_first(sandbox: Sandbox, form: str, key: str) -> None:
    sandbox.write("sweeps/score.yaml", SPEC)
    sandbox.commit("Spec")
    sandbox.name_person()
    for setting, value in (("commit.gpgSign", "true"), ("gpg.format", form), ("user.signingKey", key)):
        if value:
            sandbox.git("config", setting, value)
    before = sandbox.head()

    for command in ("run score", "run score --dry-run"):
        refused = run_sweep(*command.split(), cwd=sandbox.root)
        assert refused.returncode == 3
        assert "commit.gpgSign" in refused.stderr
    assert sandbox.head() == before
    for command in re.findall(r"`(git config commit[^`]+)`", refused.stderr):
        subprocess.run(command.split(), cwd=sandbox.root, check=True)
    assert run_sweep("run", "score", cwd=sandbox.root).returncode == 0


def test_a_commit_is_signed_by_the_key_of_the_hint(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("sweeps/score.yaml", SPEC)
    sandbox.commit("Spec")
    key = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for setting in (
        *(("user.name", "T"), ("user.email", "t@example.org"), ("commit.gpgSign", "true")),
        *(("gpg.format", "ssh"), ("user.signingKey", str(key))),
    ):
        sandbox.git("config", *setting)

    assert run_sweep("run", "score", cwd=sandbox.root).returncode == 0
    assert "gpgsig" in sandbox.git("cat-file", "commit", "HEAD")
