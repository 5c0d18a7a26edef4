"""The commands of the pages on bootstrapping, as far as they need no cluster, in their order."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from sweepledger.formats import yaml
from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.command_line import captured
from tests.repository import Sandbox

ROOT = Path(__file__).parents[2]
PAGES = ("bootstrap-argocd", "bootstrap-flux", "kueue")
PLAIN = {"template", "containers", "volumes", "name", "env", "volumeMounts", "securityContext"}
"""Fields that hold others, or that there is no choice about."""

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def three_pools(sandbox: Sandbox) -> Sandbox:
    shutil.copy(ROOT / "examples/pools/sweepledger.yaml", sandbox.root)
    return sandbox


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, three_pools: Sandbox) -> None:
    blocks = BLOCK.findall((ROOT / f"docs/how-to/{page}.md").read_text())
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
    assert (three_pools.root / "clusters/README.md").is_file()


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_written(page: str, three_pools: Sandbox) -> None:
    text = (ROOT / f"docs/how-to/{page}.md").read_text()
    controller = Controller.FLUX if "flux" in page else Controller.ARGOCD
    bootstrap(
        three_pools.workspace, BootstrapRequest(controller, "https://git.example/team/sweeps.git", "main")
    )

    for name in set(re.findall(r"\bclusters/[a-z./-]+\b", text)):
        assert (three_pools.root / name).exists(), name


@pytest.mark.parametrize("base", ["trial", "jobs"])
def test_the_page_on_manifests_says_of_each_field_of_a_base_how_it_is_chosen(base: str) -> None:
    page = (ROOT / "docs/manifests.md").read_text()
    job = yaml.load((ROOT / f"base/{base}/v1/job.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    levels = (job["spec"], pod, pod["securityContext"], container, container["securityContext"])

    fields = {field for level in levels for field in level} - PLAIN
    volumes = {volume["name"] for volume in pod["volumes"]}

    assert {name for name in fields | volumes if f"`{name}`" not in page} == set()
