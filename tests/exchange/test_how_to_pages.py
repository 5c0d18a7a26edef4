"""The how-to pages for other tools do what they show."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from sweepledger.stores.registry import stores
from tests.command_line import run_sweep
from tests.exchange.imported import READERS, WRITERS
from tests.exchange.katib_rules import broken
from tests.repository import Sandbox

PAGES = Path(__file__).parents[2] / "docs/how-to"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: str, folder: Path) -> tuple[str, int]:
    """Do what a page says: a named block is a file to write, or shows what a command has written.

    Give all output, and the number of files that are as shown.
    """
    output, compared = "", 0
    blocks = list(BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")))
    # Scripts first: a page explains them after the command that does not need them.
    for block in sorted(blocks, key=lambda block: block["kind"] != "python"):
        path = folder / (block["file"] or "")
        if block["kind"] == "console":
            for line in block["text"].splitlines():
                done = run_sweep(*shlex.split(line.removeprefix("$ sweep ")), cwd=folder)
                assert done.returncode == 0, done.stdout + done.stderr
                output += done.stdout
        elif block["kind"] != "python" and path.exists():
            assert path.read_text(encoding="utf-8") == block["text"]
            compared += 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
    return output, compared


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with nothing but settings."""
    (tmp_path / "sweepledger.yaml").write_text("")
    (tmp_path / "sweeps").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_the_katib_page_is_true(folder: Path) -> None:
    assert follow("from-katib.md", folder)[1] == 1
    assert broken(yaml.safe_load((folder / "back.yaml").read_text())) == []


def test_the_page_of_formats_is_true(folder: Path) -> None:
    assert follow("formats.md", folder)[1] == 2
    assert (folder / "again.yml").read_bytes() == (folder / "hyperparams.yml").read_bytes()


def test_the_page_for_wandb_is_true(sandbox: Sandbox) -> None:
    output, compared = follow("from-wandb.md", sandbox.root)

    assert "val_loss=" in output
    assert compared
    assert "method: " in (sandbox.root / "again.yaml").read_text()


@pytest.mark.full_suite("whole tutorials")
def test_the_page_for_hydra_is_true(sandbox: Sandbox) -> None:
    pytest.importorskip("hydra")

    output, compared = follow("from-hydra.md", sandbox.root)

    assert "objective=1.0" in output
    assert compared
    assert "sweeper" in (sandbox.root / "again.yaml").read_text()


def test_the_page_of_formats_lists_every_format_and_whether_it_is_written() -> None:
    rows = [
        line.split(" | ")
        for line in (PAGES / "formats.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    listed = {name: row[3] for row in rows for name in re.findall(r"`([a-z-]+)`", row[0])}

    assert set(listed) == set(READERS)
    assert {name for name, export in listed.items() if export == "yes"} == set(WRITERS)


def test_the_page_of_stores_lists_every_store_with_the_place_that_is_its_default() -> None:
    text = (PAGES / "to-stores.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| `([^`]+)` \|", text, re.MULTILINE)

    assert rows == [(name, kind.default) for name, kind in stores().items()]
