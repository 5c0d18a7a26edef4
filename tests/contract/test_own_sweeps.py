"""The history of this repository contains sweeps of its own, and the README quotes them."""

import re
import subprocess
from pathlib import Path

import pytest

from sweepledger.operations.repository.workspace import Workspace
from sweepledger.verbs.log import log
from sweepledger.verbs.verify import verify_results
from tests.command_line import captured, run_sweep
from tests.repository import answer

ROOT = Path(__file__).parents[2]
RECORDED = ("eidf-grid", "fashion-grid", "mnist-grid", "mnist-search")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Give a clone of this repository as it is committed, with all of its history."""
    if not (ROOT / ".git").exists():
        pytest.skip("skipped: no repository is here, only its files")
    names = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    if captured(names, check=True).stdout.strip() != "false":
        pytest.skip("skipped: this clone is shallow")
    folder = tmp_path_factory.mktemp("clone of ours") / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return Workspace.find(folder)


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_recorded_is_what_the_records_say(history: Workspace, name: str) -> None:
    (verification,) = verify_results(history, name, revision="HEAD").sweeps

    assert (verification.differences, verification.trials > 0) == ((), True)
    assert verification.batches == (4 if name == "mnist-search" else 1)
    assert {entry.kind for entry in answer(log, history, name)["entries"]} >= {"spec", "batch", "results"}


def test_the_ids_that_the_readme_shows_are_in_its_history(history: Workspace) -> None:
    _, _, section = (ROOT / "README.md").read_text().partition("\n## Results\n")
    section = section.partition("\n## ")[0]
    ids = sorted(set(re.findall(r"\bt[0-9a-f]{11}\b", section)))
    commits = sorted(set(re.findall(r"^[0-9a-f]{8}(?=  )", section, re.MULTILINE)))

    rows = "".join((history.root / f"results/{name}/summary.csv").read_text() for name in RECORDED)

    assert ids
    assert commits
    assert [item for item in ids if item not in rows] == []
    for commit in commits:
        subprocess.run(["git", "-C", str(history.root), "cat-file", "-e", commit], check=True)


def test_the_search_is_over_and_a_clone_says_why(history: Workspace) -> None:
    done = run_sweep("cluster", "next", "mnist-search", "--check", cwd=history.root)

    assert done.returncode == 6, done.stderr
    assert "all 4 rounds are recorded" in done.stdout
