"""Hostile changes, by the rows of the catalogue: S and N are specs, G states of git, W workflows.

Each is brought as a pull request would bring it: committed, upon a branch that is in order. States are what
no commit holds: the clone in which somebody looks at the change is left in them.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.test_specs import ACCEPTED, REFUSED
from tests.repository import Sandbox, append_to, replace_in

Change = Callable[[Sandbox], None]

MARK = "EXECUTED"
"""A file of this name beside the clone says that something of the change ran."""

ODD = "sweeps/odd.yaml"

SPY = "import pathlib, os; pathlib.Path(os.environ.get('MARK', '/tmp/mark')).touch()\n"
SHELL_SPY = 'touch "${MARK:-/tmp/mark}"\n'

PLANTED = {
    "conftest.py": SPY,
    "sitecustomize.py": SPY,
    "usercustomize.py": SPY,
    "generator/sweepledger/__init__.py": SPY,
    "generator/sweepledger/cli/__init__.py": SPY,
    "yaml/__init__.py": SPY,
    "git.py": SPY,
    "typer.py": SPY,
    "rich/__init__.py": SPY,
    "code/train.py": SPY,
    "setup.py": SPY,
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p conftest'\n",
    "pytest.ini": "[pytest]\naddopts = -p conftest\n",
    "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/\n",
    "evil.pth": f"import os; {SPY}",
    "Makefile": f"sweep test all:\n\t{SHELL_SPY}",
    ".envrc": SHELL_SPY,
    ".bashrc": SHELL_SPY,
    ".pre-commit-config.yaml": "repos: [{repo: local, hooks: [{id: x, entry: ./x, language: script}]}]\n",
    ".githooks/post-checkout": f"#!/bin/sh\n{SHELL_SPY}",
    "bin/git": f"#!/bin/sh\n{SHELL_SPY}",
    "kustomize": f"#!/bin/sh\n{SHELL_SPY}",
    "kubectl": f"#!/bin/sh\n{SHELL_SPY}",
}
"""W3: what a tool might run or read that stands in the folder it looks at."""


def plant(sandbox: Sandbox) -> None:
    for path, text in PLANTED.items():
        sandbox.write(path, text)
        if text.startswith("#!"):
            (sandbox.root / path).chmod(0o755)


def _kustomization(text: str) -> Change:
    def change(sandbox: Sandbox) -> None:
        sandbox.propose("mine")
        (folder,) = (sandbox.root / "overlays/active").glob("mine-*")
        append_to(folder / "kustomization.yaml", text)

    return change


def _written(path: str, text: str) -> Change:
    def change(sandbox: Sandbox) -> None:
        sandbox.write(path, text)

    return change


def _linked(sandbox: Sandbox) -> None:
    (sandbox.root / ODD).symlink_to("/proc/self/environ")


def _named(sandbox: Sandbox) -> None:
    for name in (b"a\n::error::x", b'a"; id', b"-rf", b"\xff\xfe", b"$(id)", b"a b"):
        with open(os.fsencode(sandbox.root / "sweeps") + b"/" + name + b".yaml", "wb") as file:  # noqa: PTH123
            file.write(b"name: a\n")


def _folded(sandbox: Sandbox) -> None:
    for name in ("Lr", "LR", "lr"):
        sandbox.spec(name)


def _bombed(sandbox: Sandbox) -> None:
    lines = ["a: &a [x, x]", *(f"b{n}: &b{n} [*a, *a]" for n in range(9))]
    _kustomization("\n".join(lines) + "\n")(sandbox)


def speak_at_length(sandbox: Sandbox) -> None:
    spec = sandbox.spec("vast")
    words = "<img src=x onerror=1> | @everyone [x](http://x) `" * 80
    replace_in(spec, "Where does the parabola peak?", f"'{words[:400]}'")
    sandbox.generate()


def _zeros(path: str) -> Change:
    """Write what compresses to nearly nothing: a pull request of a few kilobytes."""

    def change(sandbox: Sandbox) -> None:
        sandbox.write(path, "")
        os.truncate(sandbox.root / path, 64 << 20)

    return change


@dataclass(frozen=True)
class State:
    """What is done to a clone once the change is committed there."""

    leave: Change


def _strange(make: Change) -> State:
    def leave(sandbox: Sandbox) -> None:
        (sandbox.root / ".git/info/exclude").write_text(ODD)
        make(sandbox)

    return State(leave)


def _pipe(sandbox: Sandbox) -> None:
    os.mkfifo(sandbox.root / ODD)


def _socket(sandbox: Sandbox) -> None:
    # A socket's address is short; a folder's descriptor makes it so.
    folder = os.open(sandbox.root / "sweeps", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{folder}/odd.yaml")
    finally:
        os.close(folder)


def _sparse(sandbox: Sandbox) -> None:
    (sandbox.root / ODD).touch()
    os.truncate(sandbox.root / ODD, 1 << 40)


def _hard_link(sandbox: Sandbox) -> None:
    outside = sandbox.root.parent / "outside"
    outside.write_text("password: canary\n")
    (sandbox.root / ODD).hardlink_to(outside)


def _edited(sandbox: Sandbox) -> None:
    sandbox.write("code/train.py", "other\n")


def _staged(sandbox: Sandbox) -> None:
    _edited(sandbox)
    sandbox.git("add", "--all")


def _detached(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "--detach")


def _shallow(sandbox: Sandbox) -> None:
    (sandbox.root / ".git/shallow").write_text(sandbox.git("rev-parse", "HEAD"))


def _rebasing(sandbox: Sandbox) -> None:
    with suppress(subprocess.CalledProcessError):
        sandbox.git("rebase", "-q", "--exec", "false", "main~1")
    assert (sandbox.root / ".git/rebase-merge").is_dir()


def _locked(sandbox: Sandbox) -> None:
    (sandbox.root / ".git/index.lock").touch()


def _rewritten(sandbox: Sandbox) -> None:
    """Force another history of the same files upon main."""
    orphan = sandbox.git("commit-tree", "main^{tree}", "-m", "Start anew").strip()
    sandbox.git("update-ref", "refs/heads/main", orphan)


def _set_back(sandbox: Sandbox) -> None:
    sandbox.git("update-ref", "refs/heads/main", "main~1")


STATES: Mapping[str, State] = {
    "G2 pipe": _strange(_pipe),
    "G2 socket": _strange(_socket),
    "G2 sparse": _strange(_sparse),
    "G2 hard link": _strange(_hard_link),
    "G7 dirty": State(_edited),
    "G7 staged": State(_staged),
    "G7 detached": State(_detached),
    "G7 shallow": State(_shallow),
    "G7 rebasing": State(_rebasing),
    "G7 locked": State(_locked),
    "G15 rewritten": State(_rewritten),
    "G15 set back": State(_set_back),
}
CHANGES: Mapping[str, Change | State] = {
    **STATES,
    "G1": _linked,
    "G2 zeros as a spec": _zeros(ODD),
    "G2 zeros as a base": _zeros("base/trial/v1/odd"),
    "G3": _written(".gitattributes", "* filter=evil\n"),
    "G4": _kustomization("# mine\n"),
    "G10": _folded,
    "G11": _named,
    "G14 url": _kustomization("resources: [https://127.0.0.1:9/x]\n"),
    "G14 helm": _kustomization("helmCharts: [{name: x, repo: http://127.0.0.1:9}]\n"),
    "G14 plugins": _kustomization("generators: [x.yaml]\ntransformers: [y.yaml]\n"),
    "G14 bomb": _bombed,
    "W2 workflow": _written(".github/workflows/check.yaml", "on: pull_request_target\n"),
    "W2 base": _written("base/trial/v1/job.yaml", "a: 1\n"),
    "W2 settings": _written("sweepledger.yaml", "version: 1\nlimits: {max_trials: 100000}\n"),
    "W2 results": _written("results/first/summary.csv", "trial\n"),
    "W3": plant,
    "W7": speak_at_length,
}


def specs() -> Iterator[tuple[str, bytes]]:
    """Give every hostile spec of the tables, by row and number."""
    for row, groups in REFUSED.items():
        for number, content in enumerate(content for contents, _ in groups for content in contents):
            yield f"{row}-{number}", content
    for row, inputs in ACCEPTED.items():
        for number, (content, _) in enumerate(inputs):
            yield f"{row}-ok{number}", content


def first_of_each_row() -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    for name, content in specs():
        row = name.partition("-")[0]
        if row not in seen:
            seen.add(row)
            yield name, content


def brought(sandbox: Sandbox, change: Change | State | bytes) -> None:
    """Make the work tree what a check of the pull request finds: the change, committed upon main."""
    _made_orderly(sandbox.root / ".git")
    sandbox.git("update-ref", "refs/heads/main", "refs/remotes/origin/main")
    sandbox.git("checkout", "-q", "--force", "-B", "proposal", "main")
    (sandbox.root / ODD).unlink(missing_ok=True)  # git sees no pipe and leaves it
    sandbox.git("clean", "-q", "-f", "-d", "-x")
    if isinstance(change, bytes):
        path: Path = sandbox.root / "sweeps/lr.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(change)
    elif isinstance(change, State):
        sandbox.propose("mine")
    else:
        change(sandbox)
    sandbox.commit("Propose")
    if isinstance(change, State):
        change.leave(sandbox)


def _made_orderly(git: Path) -> None:
    """Take back what a state left where no checkout looks."""
    for name in ("index.lock", "shallow", "info/exclude"):
        (git / name).unlink(missing_ok=True)
    shutil.rmtree(git / "rebase-merge", ignore_errors=True)
