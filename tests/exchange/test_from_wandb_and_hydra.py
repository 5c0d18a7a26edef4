"""The how-to pages for W&B and Hydra do what they show."""

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repository import Sandbox

Run = Callable[..., subprocess.CompletedProcess[str]]

PAGES = Path(__file__).parents[2] / "docs/how-to"
BLOCK = re.compile(r"^```(?P<kind>\w+) ?(?P<file>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: str, sandbox: Sandbox, run_sweep: Run) -> str:
    """Do what a page says; a block whose file exists shows what a command has written. Give all output."""
    message = ""
    blocks = list(BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")))
    # Scripts first: a page explains them after the command that does not need them.
    for block in sorted(blocks, key=lambda block: block["kind"] != "python"):
        if block["kind"] == "console":
            for line in block["text"].splitlines():
                done = run_sweep(*shlex.split(line.removeprefix("$ sweep ")), cwd=sandbox.root)
                assert done.returncode == 0, done.stdout + done.stderr
                message += done.stdout
        elif block["file"].startswith("sweeps/"):
            assert (sandbox.root / block["file"]).read_text(encoding="utf-8") == block["text"]
        else:
            sandbox.write(block["file"], block["text"])
    return message


def test_the_page_for_wandb_is_true(sandbox: Sandbox, run_sweep: Run) -> None:
    message = follow("from-wandb.md", sandbox, run_sweep)

    assert "val_loss=" in message
    assert "method: " in (sandbox.root / "again.yaml").read_text()


@pytest.mark.full_suite("whole tutorials")
def test_the_page_for_hydra_is_true(sandbox: Sandbox, run_sweep: Run) -> None:
    pytest.importorskip("hydra")

    message = follow("from-hydra.md", sandbox, run_sweep)

    assert "objective=1.0" in message
    assert "sweeper" in (sandbox.root / "again.yaml").read_text()


@pytest.mark.parametrize("page", ["from-wandb.md", "from-hydra.md"])
def test_every_block_is_a_command_or_a_named_file(page: str) -> None:
    blocks = list(BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")))

    assert len(blocks) == (PAGES / page).read_text(encoding="utf-8").count("\n```\n")
    assert all((block["kind"] == "console") != bool(block["file"]) for block in blocks)
