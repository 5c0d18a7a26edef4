"""The page on searches does what it shows: five rounds on real digits from one spec, no hand between."""

import csv
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.command_line import captured

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/search.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<word>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PERSON = {
    f"GIT_{role}_{key}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with this checkout's trainer, and its remote."""
    work = tmp_path / "a place with spaces"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    git(tmp_path, "clone", "-q", "remote.git", work.name)
    git(work, "checkout", "-q", "-b", "main")
    shutil.copytree(ROOT / "trainer", work / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    (work / ".gitignore").write_text(".sweepledger/\n__pycache__/\n")
    (work / "sweeps").mkdir()
    git(work, "add", "--all")
    git(work, "commit", "-q", "-m", "Start")
    git(work, "push", "-q", "origin", "main")
    return work


def git(folder: Path, *arguments: str) -> str:
    done = captured(["git", *arguments], cwd=folder, env={**os.environ, **PERSON}, check=True)
    return done.stdout


def follow(place: Path) -> str:
    """Do what the page says, and give what it printed; a word behind `console` is the exit code to come."""
    message = ""
    for block in BLOCK.finditer(PAGE):
        if block["kind"] == "yaml":
            (place / block["word"]).write_text(block["text"])
            continue
        for line in block["text"].splitlines():
            argv = shlex.split(line.removeprefix("$ "))
            if argv[0] == "sweep":
                argv[:1] = [sys.executable, "-m", "sweepledger.cli"]
            done = captured(
                argv,
                cwd=place,
                env={**os.environ, **PERSON, "PYTHONPATH": str(ROOT / "generator"), "COLUMNS": "160"},
            )
            assert done.returncode == int(block["word"] or 0), line + done.stdout + done.stderr
            message += f"{line}\n{done.stdout}"
    return message


@pytest.mark.full_suite("whole tutorials")
def test_five_rounds_on_real_digits_go_from_one_spec_to_the_last_results_commit(place: Path) -> None:
    message = follow(place)

    subjects = git(place, "log", "--reverse", "--format=%s").splitlines()
    assert subjects[:2] == ["Start", "Add the sweep digits"]
    assert [line.partition(":")[0] for line in subjects[2:]] == ["results(digits)"] * 5
    assert "Next: none (rounds: all 5 rounds are recorded)" in git(place, "log", "-1", "--format=%B")
    with (place / "results/digits/summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok"] * 10
    assert len({row["trial"] for row in rows}) == 10
    assert max(float(row["metrics.test_accuracy"]) for row in rows) > 0.8
    assert "round 5, tpe" in message
    assert "digits: ended: rounds: all 5 rounds are recorded" in message
    assert "10 trials of rounds 1 to 5 are used" in message
