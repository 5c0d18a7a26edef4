"""The commands of the pages on bootstrapping, as far as they need no cluster, in their order."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.command_line import captured
from tests.repository import Sandbox

ROOT = Path(__file__).parents[2]
PAGES = ("bootstrap-argocd", "bootstrap-flux", "kueue")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def three_pools(sandbox: Sandbox) -> Sandbox:
    shutil.copy(ROOT / "examples/pools/sweepledger.yaml", sandbox.root)
    return sandbox


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, three_pools: Sandbox) -> None:
    text = (ROOT / f"docs/how-to/{page}.md").read_text()
    blocks = BLOCK.findall(text)
    assert blocks
    identity = {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }

    for line in "".join(blocks).splitlines():
        program, *arguments = shlex.split(line)
        if program == "sweep":
            done = three_pools.sweep(*arguments)
        else:
            done = captured([program, *arguments], cwd=three_pools.root, env={**os.environ, **identity})
        assert done.returncode == 0, f"{line}\n{done.stderr}"

    assert three_pools.git("status", "--porcelain") == ""
    for name in ("clusters/README.md", *re.findall(r"\bclusters/[a-z./-]+\b", text)):
        assert (three_pools.root / name).exists(), name
