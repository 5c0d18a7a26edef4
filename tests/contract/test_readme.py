"""The README is short, its script is the example, and its commands and those of the first tutorial run."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.command_line import captured, install_sweep

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"(?:as `(?P<path>[^`]+)`[^`]*?)?^```(?P<type>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
PERSON = {
    f"GIT_{role}_{key}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
}


def section(title: str) -> str:
    _, _, text = README.partition(f"\n## {title}\n")
    assert text, title
    return text.partition("\n## ")[0]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with `sweep` of this checkout."""
    folder = tmp_path / "programs"
    folder.mkdir()
    install_sweep(folder)
    return folder


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 900


LAPTOP = section("A ten-line script and its sweep on a laptop")
TUTORIAL = (ROOT / "docs/laptop.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [LAPTOP, TUTORIAL], ids=["README", "tutorial"])
def test_the_sweep_on_a_laptop_runs_as_shown(text: str, tmp_path: Path, programs: Path) -> None:
    assert (ROOT / "examples/ten_lines.py").read_text() in text
    environment = {**os.environ, **PERSON, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    lab = tmp_path / "lab"
    subprocess.run(["git", "init", "-q", "-b", "main", str(lab)], check=True)
    output = ""
    for block in BLOCK.finditer(text):
        if block["path"]:
            path = lab / block["path"]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block["text"])
        if block["type"] != "console":
            continue
        done = captured(["bash", "-eo", "pipefail", "-c", block["text"]], cwd=lab, env=environment)
        assert done.returncode == 0, f"{block['text']}\n{done.stdout}{done.stderr}"
        output += done.stdout

    assert "committed score-b1-" in output
    assert "[8/8]" in output
    best = output[output.index("score, the first 5 of 8") :].splitlines()[2].split()
    assert (best[0], best[2:5]) == ("1", ["1", "2", "0"]), "the best score, and its values"
