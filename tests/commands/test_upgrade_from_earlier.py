"""A repository of an earlier release goes on with this one: no trial is stopped, and every batch is recorded once.

The earlier release is a commit of this repository, installed into an environment of its own. In place of a cluster,
`sweep local` of either release runs the trials and records them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from sweepledger.commands.scaffold.upgrade import BRANCH
from sweepledger.formats import records_jsonl
from sweepledger.repo import kustomize
from sweepledger.structs.record import Record
from tests import earlier_release
from tests.repository import Sandbox, followed_by

pytestmark = [pytest.mark.full_suite("an earlier release"), pytest.mark.usefixtures("needs_kustomize")]

HOOK = "clusters/pre-receive.sh"
PERSON, COLLECTOR = {"REMOTE_USER": "ana"}, {"REMOTE_USER": "sweep-collector"}
SECONDS = 300

PROGRAM = '''"""Say that it runs, wait for the gate to open, and report."""
import argparse, json, os, pathlib, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--gate")
args = parser.parse_args()
gate = pathlib.Path(args.gate)
(gate / f"new-{args.x:g}").write_text(str(os.getpid()))
(gate / f"new-{args.x:g}").rename(gate / f"pid-{args.x:g}")
while not (gate / "open").exists():
    time.sleep(0.1)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.x}, file)
'''
SPEC = """name: {name}
description: What becomes of {name}?
method: grid
metric: {{name: score, goal: maximize}}
parameters:
  x: {{values: [1, 2]}}
  gate: {{value: {gate}}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  resources: {{cpu: 1, memory: 256Mi}}
  parallelism: 2
  timeout: 10m
"""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which the earlier release is installed; skip by name without its commit."""
    python = earlier_release.installed(tmp_path_factory.mktemp("earlier"))
    if python is None:
        pytest.skip(f"skipped: this clone has no commit {earlier_release.COMMIT}, so it is shallow")
    return python


@dataclass(frozen=True)
class Release:
    """The command `sweep` of a release."""

    python: Path
    sandbox: Sandbox

    def __call__(self, *arguments: str) -> str:
        """Run it as a person, and return what it prints."""
        done = subprocess.run(
            self.argv(*arguments),
            cwd=self.sandbox.root,
            env=environment(PERSON),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"sweep {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def argv(self, *arguments: str) -> list[str]:
        """Return the command line."""
        return [str(self.python), "-P", "-m", "sweepledger.cli", *arguments]

    def ask(self, name: str, gate: Path) -> str:
        """Write a spec, generate its batch, and merge both; return the name of the batch."""
        self.sandbox.write(f"sweeps/{name}.yaml", SPEC.format(name=name, gate=gate))
        self("generate", name)
        commit(self.sandbox, f"Ask for {name}")
        (folder,) = (self.sandbox.root / "overlays/active").glob(f"{name}-b1-*")
        return folder.name


def environment(more: Mapping[str, str]) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **more}


def commit(sandbox: Sandbox, message: str) -> None:
    """Commit everything, and push it as a person, on top of what the collector has pushed."""
    sandbox.commit(message)
    sandbox.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    push(sandbox)


def push(sandbox: Sandbox) -> None:
    """Push as a person: the hook of the server knows who pushes."""
    argv = ["git", "push", "-q", "origin", "main"]
    subprocess.run(argv, cwd=sandbox.root, env=environment(PERSON), check=True, capture_output=True)


def install_hook(sandbox: Sandbox, revision: str) -> None:
    """Put the hook of a revision in force on the git server."""
    hook = sandbox.remote / "hooks/pre-receive"
    hook.write_text(sandbox.git("show", f"{revision}:{HOOK}"))
    hook.chmod(0o755)


def until(what: str, is_true: Callable[[], bool]) -> None:
    """Wait until something is true, for as long as a busy machine may take."""
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end, f"not after {SECONDS} s: {what}"
        time.sleep(0.3)


def is_recorded_once(sandbox: Sandbox, batch: str) -> bool:
    """Return whether both trials of a batch are recorded as ended well, by one commit."""
    path = f"results/{batch.rpartition('-b1-')[0]}/records/{batch}.jsonl"
    kept = records_jsonl.records((sandbox.root / path).read_bytes())
    ends = [str(record.status) for record in kept if isinstance(record, Record)]
    return ends == ["ok", "ok"] and sandbox.git("log", "--oneline", "--", path).count("\n") == 1


def is_recorded(sandbox: Sandbox, batch: str) -> bool:
    sandbox.git("fetch", "-q", "origin")
    sweep = batch.rpartition("-b1-")[0]
    listed = sandbox.git("ls-tree", "origin/main", f"results/{sweep}/records/{batch}.jsonl")
    return bool(listed)


def lives(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_trials_of_the_earlier_release_run_on_while_everything_is_upgraded(
    sandbox: Sandbox, earlier: Path, tmp_path: Path
) -> None:
    before, now = Release(earlier, sandbox), Release(Path(sys.executable), sandbox)
    gates = {name: tmp_path / name for name in ("waits", "between", "late", "fresh")}
    for gate in gates.values():
        gate.mkdir()
    sandbox.write("sweepledger.yaml", followed_by("flux"))
    sandbox.write("code/train.py", PROGRAM)
    before("bootstrap", "flux", "--repo", "https://git.example.org/team/sweeps.git", "--branch", "main")
    commit(sandbox, "As the earlier release writes it")
    install_hook(sandbox, "HEAD")
    waits = before.ask("waits", gates["waits"])
    rendered = kustomize.build(sandbox.root / "overlays/active" / waits)
    engine = subprocess.Popen(
        before.argv("local", "--state", str(tmp_path / "state")),
        cwd=sandbox.root,
        env=environment(COLLECTOR),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until("two trials run", lambda: len(list(gates["waits"].glob("pid-*"))) == 2)
        pids = {path.name: int(path.read_text() or 0) for path in gates["waits"].glob("pid-*")}

        # The hook first, then the repository; the collector and a laptop are still of the earlier release.
        now("upgrade", "--push")
        sandbox.git("fetch", "-q", "origin")
        install_hook(sandbox, f"origin/{BRANCH}")
        between = before.ask("between", gates["between"])
        merged = sandbox.head()
        sandbox.git("merge", "-q", "--no-edit", f"origin/{BRANCH}")
        now("check", "--base", merged)
        commit_is_needed = sandbox.git("status", "--porcelain")
        push(sandbox)
        touched = sandbox.git("diff", "--name-only", merged, "HEAD", "--", "overlays", "sweeps", "results")
        rendered_again = kustomize.build(sandbox.root / "overlays/active" / waits)
        late = before.ask("late", gates["late"])
        still = {path.name: int(path.read_text()) for path in gates["waits"].glob("pid-*")}
        alive = all(map(lives, pids.values()))
        for name in ("waits", "between"):
            (gates[name] / "open").touch()
        until(
            "the earlier collector records",
            lambda: all(is_recorded(sandbox, one) for one in (waits, between)),
        )
    finally:
        engine.send_signal(signal.SIGINT)
        engine.wait(timeout=SECONDS)

    sandbox.pull()
    fresh = now.ask("fresh", gates["fresh"])
    for gate in gates.values():
        (gate / "open").touch()
    subprocess.run(
        now.argv("local", "--once", "--state", str(tmp_path / "state")),
        cwd=sandbox.root,
        env=environment(COLLECTOR),
        check=True,
        capture_output=True,
    )
    sandbox.pull()

    assert (touched, commit_is_needed) == ("", "")
    assert rendered_again == rendered
    assert alive
    assert still == pids
    assert all(map(partial(is_recorded_once, sandbox), (waits, between, late, fresh)))
    copies = (sandbox.root / "overlays/archive").glob("*/launch.py")
    assert {copy.parent.name for copy in copies} == {waits, between, late}, "the earlier form"
    now("verify")
    now("upgrade", "--check")
