"""The README is short, its script and spec are the files that it says, and its commands run."""

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
    assert len(README.split()) <= 1300


def test_the_ten_line_script_is_the_example() -> None:
    script = (ROOT / "examples/ten_lines.py").read_text()

    assert script in section("A ten-line script and its sweep on a laptop")


def test_the_sweep_on_a_laptop_runs_as_shown(tmp_path: Path, programs: Path) -> None:
    environment = {**os.environ, **PERSON, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    lab = tmp_path / "lab"
    subprocess.run(["git", "init", "-q", "-b", "main", str(lab)], check=True)
    output = ""
    for block in BLOCK.finditer(section("A ten-line script and its sweep on a laptop")):
        if block["type"] != "console":
            path = lab / block["path"]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block["text"])
            continue
        done = captured(["bash", "-eo", "pipefail", "-c", block["text"]], cwd=lab, env=environment)
        assert done.returncode == 0, f"{block['text']}\n{done.stdout}{done.stderr}"
        output += done.stdout

    assert "committed score-b1-" in output
    assert "[8/8]" in output
    best = output[output.index("score, the first 5 of 8") :].splitlines()[2].split()
    assert (best[0], best[2:5]) == ("1", ["1", "2", "0"]), "the best score, and its values"
