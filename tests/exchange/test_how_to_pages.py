"""The how-to pages for Katib and the NVIDIA example do what they show."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from sweepledger.exchange.registry import EXPORTS, IMPORTS
from tests.command_line import run_sweep
from tests.exchange.katib_rules import broken

PAGES = Path(__file__).parents[2] / "docs/how-to"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: str, folder: Path) -> int:
    """Do what a page says: a named block is a file to write, or what a command has written; count those."""
    (folder / "sweepledger.yaml").write_text("")
    (folder / "sweeps").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    compared = 0
    for block in BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")):
        if block["kind"] == "console":
            for line in block["text"].splitlines():
                run(line.removeprefix("$ sweep "), folder)
        elif (folder / block["file"]).exists():
            assert (folder / block["file"]).read_text(encoding="utf-8") == block["text"]
            compared += 1
        else:
            (folder / block["file"]).write_text(block["text"], encoding="utf-8")
    return compared


def run(arguments: str, folder: Path) -> None:
    done = run_sweep(*shlex.split(arguments), cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_nvidia_page_is_true(tmp_path: Path) -> None:
    assert follow("from-nvidia.md", tmp_path) == 2


def test_the_katib_page_is_true(tmp_path: Path) -> None:
    assert follow("from-katib.md", tmp_path) == 1
    assert broken(yaml.safe_load((tmp_path / "back.yaml").read_text())) == []


def test_the_page_of_formats_is_true(tmp_path: Path) -> None:
    assert follow("formats.md", tmp_path) == 1


def test_the_page_of_formats_lists_every_format_and_whether_it_is_written() -> None:
    rows = [
        line.split(" | ")
        for line in (PAGES / "formats.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    listed = {name: row[3] for row in rows for name in re.findall(r"`([a-z-]+)`", row[0])}

    assert set(listed) == set(IMPORTS)
    assert {name for name, export in listed.items() if export == "yes"} == set(EXPORTS)


@pytest.mark.parametrize("page", ["from-nvidia.md", "from-katib.md", "formats.md"])
def test_every_block_of_a_page_is_a_command_or_a_named_file(page: str) -> None:
    blocks = list(BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")))

    assert blocks
    assert all(block["kind"] == "console" or block["file"] for block in blocks)
