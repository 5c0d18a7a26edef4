"""The how-to pages of exports do what they show, one after the other in one repository."""

import os
import re
import shlex
import sys
from pathlib import Path

import optuna
import pytest

from tests.command_line import run_program
from tests.repository import Sandbox

PAGES = Path(__file__).parents[2] / "docs/how-to"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: str, folder: Path) -> None:
    """Write the named blocks of a page as files, and run the commands of its console blocks."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for block in BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")):
        if block["file"]:
            path = folder / block["file"]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "console":
            for line in block["text"].splitlines():
                command = shlex.split(line.removeprefix("$ "))
                done = run_program(*command, cwd=folder, PATH=search)
                assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.full_suite("follows long pages")
def test_the_pages_of_slurm_and_of_stores_are_true(sandbox: Sandbox) -> None:
    sandbox.name_person()

    follow("to-slurm.md", sandbox.root)
    follow("to-stores.md", sandbox.root)

    assert list((sandbox.root / "overlays/archive").glob("lr-b1-*")), "the results are recorded"
    assert "| `lr` | `0.01` |" in (sandbox.root / "model/README.md").read_text()
    assert (sandbox.root / "optuna.log").is_file()


@pytest.mark.full_suite("follows long pages")
def test_the_page_of_optuna_is_true(sandbox: Sandbox) -> None:
    (sandbox.root / "code/train.py").unlink()

    follow("to-optuna.md", sandbox.root)

    study = optuna.load_study(study_name="lr", storage=f"sqlite:///{sandbox.root}/optuna.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4
    assert all(trial.value == 1 - trial.params["lr"] for trial in study.trials)
