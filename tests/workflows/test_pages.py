"""The tutorial and the guide, followed word by word in new folders; remarks say when the host acts."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sweepledger import __version__
from tests.command_line import captured
from tests.pages import Person, page_steps
from tests.workflows.runner import ROOT, Host

VIRTUAL = "python3 -I -m venv .venv && . .venv/bin/activate\n"
IDENTITY = "-c user.name=Ada -c user.email=ada@example.org"


def git(folder: Path, *arguments: str) -> str:
    argv = ["git", *IDENTITY.split(), *arguments]
    return captured(argv, cwd=folder, check=True).stdout.strip()


def person(home: Path, machine: Path, words: Mapping[str, str]) -> Person:
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    environment = {"PATH": f"{machine}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
    return Person(home, environment, words)


def a_lock(folder: Path) -> None:
    lock = (ROOT / "locks/sweep.lock").read_text()
    named = f"{lock}sweepledger=={__version__} --hash=sha256:{'0' * 64}\n"
    (folder / ".github/sweep.lock").write_text(named)


def code_of_a_team(folder: Path) -> None:
    program = folder / "ml/vision/train.py"
    program.parent.mkdir(parents=True)
    program.write_text("print('score=1')\n")
    git(folder, "add", "ml")
    git(folder, "commit", "-q", "-m", "Train")


@pytest.fixture
def team(tmp_path: Path, machine: Path) -> Path:
    """What the guide leads to: the remote of a team's repository."""
    remote = tmp_path / "team.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    founder = person(tmp_path / "founder", machine, {"URL": str(remote)})
    for text, happens in page_steps("how-to/run-for-a-team.md"):
        if text:
            founder.type(text)
        elif happens == "the lock is made":
            a_lock(founder.at)
        elif happens == "a monorepo has code":
            code_of_a_team(founder.at)
    return remote


@pytest.mark.full_suite("whole tutorials")
def test_the_tutorial_works(tmp_path: Path, machine: Path, team: Path, needs_kustomize: None) -> None:
    fork = tmp_path / "fork.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(team), str(fork)], check=True)
    author = person(tmp_path / "author", machine, {"TEAM": str(team), "FORK": str(fork)})
    runner = person(tmp_path / "runner", machine, {})
    runner.type(f"git clone -q '{team}' clone && cd clone")
    who = author
    acts: dict[str, Callable[[], None]] = {
        "the host checks the pull request": lambda: checked(tmp_path, machine, team, fork),
        "the reviewer merges": lambda: merged(team),
    }

    for text, happens in page_steps("first-sweep.md"):
        if happens in acts:
            acts[happens]()
        elif happens:
            who = runner if happens == "on a machine of the team" else author
            runner.type("git pull -q")
        else:
            # A virtual environment of one's own would fetch what this machine has already.
            who.type(text.replace(VIRTUAL, ""))

    assert "width-b1-" in author.output
    assert git(team, "log", "-1", "--format=%s", "main").startswith(
        "results(width): 6/6 trials, best score 0.9"
    )
    assert "verified" in author.output or "unsigned" in author.output
    assert "width: 8 trials, 6 known, 2 new" in author.output
    assert "removed overlays/" not in author.output
    recorded = git(author.at, "ls-tree", "--name-only", "HEAD", "overlays/archive/")
    assert all((author.at / folder).exists() for folder in recorded.splitlines())


def checked(folder: Path, machine: Path, team: Path, fork: Path) -> None:
    """Merge the branch of the fork as a host does for its checks, and run the workflow that the team has."""
    base = git(team, "rev-parse", "main")
    git(team, "fetch", "-q", str(fork), "width:refs/pull/1/head")
    tree = git(team, "rev-parse", "refs/pull/1/head^{tree}")
    parents = ("-p", base, "-p", git(team, "rev-parse", "refs/pull/1/head"))
    merge = git(team, "commit-tree", tree, *parents, "-m", "Merge pull request #1 from ada/width")
    git(team, "update-ref", "refs/pull/1/merge", merge)
    host = Host(team, folder / "host", (machine,))
    workflow = folder / "check.yaml"
    workflow.write_text(git(team, "show", "main:.github/workflows/check.yaml") + "\n")

    event = {"pull_request": {"base": {"sha": base}}}
    ran = host.run(workflow, {"sha": merge, "ref": "refs/pull/1/merge", "event": event})

    assert ran.is_green, ran.output
    assert "## width: 6 trials" in ran.summary
    shutil.copy(ran.artifact("check") / "check.json", folder / "check.json")


def merged(team: Path) -> None:
    git(team, "update-ref", "refs/heads/main", "refs/pull/1/merge")


def test_the_hooks_stop_authors_where_the_page_says(tmp_path: Path, machine: Path, team: Path) -> None:
    ada = person(tmp_path / "ada", machine, {})
    ada.type(f"git clone -q '{team}' clone && cd clone && sweep new peak")
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entries = re.findall(r"^  entry: (.*)$", hooks, re.MULTILINE)

    codes = []
    for entry in (*entries, entries[1]):
        done = subprocess.run(
            ["bash", "-c", entry],
            cwd=ada.at,
            env={"PATH": f"{machine}:/usr/bin:/bin", "HOME": str(tmp_path / "ada")},
            capture_output=True,
            check=False,
        )
        codes.append(done.returncode)

    assert entries == ["sweep validate", "sweep generate --exit-code", "sweep check"]
    assert codes == [0, 5, 0, 0], "it stops once, for the overlay to be added"
