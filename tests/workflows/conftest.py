"""Machines of a code host, with `sweep` and its libraries installed once for all tests.

`installed_machine` has real programs. `machine` has a `sweep` that runs in forks of one process, and a pip that finds
everything installed: for tests of what a workflow's steps do, and not of how they install it.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger import __version__
from tests.command_line import install_sweep
from tests.repository import Sandbox
from tests.workflows.runner import ROOT, Host

PACKAGES = [path for path in sys.path if Path(path).name == "site-packages"]


@pytest.fixture(scope="session")
def installed_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder of programs: a Python with the pinned libraries, `sweep` as it is here, and a `gh`."""
    folder = tmp_path_factory.mktemp("machine")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "python")], check=True)
    (site,) = (folder / "python/lib").glob("python*/site-packages")
    # What `pip install` of the lock would have brought: pip itself finds it here, and fetches nothing.
    (site / "all.pth").write_text("".join(f"{path}\n" for path in (*PACKAGES, ROOT / "generator")))
    programs = folder / "python/bin"
    for name, text in {
        "sweep": f"#!{programs}/python\nfrom sweepledger.cli.app import main\nmain()\n",
        "gh": '#!/bin/sh\n[ "$1 $2" = "auth setup-git" ]\n',
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return programs


@pytest.fixture(scope="session")
def machine(installed_machine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder of programs that start quickly."""
    programs = tmp_path_factory.mktemp("quick")
    install_sweep(programs)
    for name, text in {
        "python3": f"#!/bin/sh\n[ \"$1 $2 $3\" = '-I -m pip' ] || exec '{installed_machine}/python3' \"$@\"\n",
        "gh": (installed_machine / "gh").read_text(),
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return programs


@pytest.fixture
def host(machine: Path, sandbox: Sandbox, tmp_path: Path) -> Host:
    """A team's machine: the repository has what `sweep cluster init` and the guide put there."""
    lock = (ROOT / "locks/sweep.lock").read_text()
    named = f"{lock}sweepledger=={__version__} --hash=sha256:{'0' * 64}\n"
    sandbox.publish("Name the version", {".github/sweep.lock": named})
    return Host(sandbox.remote, tmp_path / "machine", (machine,))


@pytest.fixture
def propose(sandbox: Sandbox) -> Callable[[], dict[str, object]]:
    """Open a pull request of what lies in the work tree: push a branch, and the merge that the host makes."""

    def proposed() -> dict[str, object]:
        base = sandbox.git("rev-parse", "origin/main").strip()
        sandbox.git("checkout", "-q", "-B", "proposal")
        sandbox.git("add", "--all")
        sandbox.git("commit", "-q", "--allow-empty", "-m", "Propose")
        sandbox.git("checkout", "-q", "--detach", base)
        sandbox.git("merge", "-q", "--no-ff", "-m", "Merge the proposal", "proposal")
        merge = sandbox.head()
        sandbox.git("push", "-q", "--force", "origin", f"{merge}:refs/pull/1/merge")
        sandbox.git("checkout", "-q", "proposal")
        return {
            "sha": merge,
            "ref": "refs/pull/1/merge",
            "event": {"pull_request": {"base": {"ref": "main", "sha": base}}},
        }

    return proposed
