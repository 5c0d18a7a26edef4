"""What strangers can put into a repository, and what git can put into the environment."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweepledger.errors import StorageError
from sweepledger.operations.cluster_local import RemoteFailed
from sweepledger.operations.collection.results_commit import ResultsCommit
from tests.repository import Sandbox, replace_in


def test_git_in_a_hook_never_redirects_us_to_the_repository_of_the_hook(sandbox: Sandbox) -> None:
    sandbox.merged()
    config = (sandbox.root / ".git/config").read_text()

    done = sandbox.sweep("cluster", "local", "--once", GIT_DIR=str(sandbox.root / ".git"), GIT_WORK_TREE="/")

    assert done.returncode == 0, done.stderr
    assert (sandbox.root / ".git/config").read_text() == config


@pytest.mark.parametrize(
    "line", ["- http://127.0.0.1:9/x.yaml", "- ../../../../etc", "- ../../../base/trial/v1?ref=main"]
)
def test_kustomizations_reach_nothing(sandbox: Sandbox, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = sandbox.merged()
    replace_in(
        sandbox.root / "overlays/active" / name / "kustomization.yaml",
        "resources:\n",
        f"resources:\n{line}\n",
    )
    spy = sandbox.root.parent / "kustomize"
    spy.write_text(f"#!/bin/sh\ntouch '{spy}.started'\n")
    spy.chmod(0o755)
    monkeypatch.setenv("KUSTOMIZE", str(spy))

    assert {"batch-edited", "kustomization-unsafe"} <= sandbox.codes()
    assert not Path(f"{spy}.started").exists()


def test_what_is_recorded_never_becomes_active_again(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    sandbox.publish("Record", {f"results/peak/records/{name}.jsonl": ""})
    sandbox.git("mv", f"overlays/archive/{name}", f"overlays/active/{name}")
    assert sandbox.codes() == {"batch-moved"}

    sandbox.git("checkout", "-q", "HEAD", "--", "overlays")

    assert "batch-active-twice" in sandbox.codes()


def test_a_failing_remote_stops_no_trial(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepledger.operations.cluster_local.POLL_SECONDS", 0.3)
    path = sandbox.root / "code/train.py"
    path.write_text("import time; time.sleep(1)\n" + path.read_text())
    sandbox.publish("Take a while")
    sandbox.merged()
    away = sandbox.remote.with_name("away.git")
    seen: list[str] = []

    for event in sandbox.local():
        seen.append(type(event).__name__)
        if seen.count("PodStarted") == 1 and sandbox.remote.exists() and "RemoteFailed" not in seen:
            sandbox.remote.rename(away)
        if isinstance(event, RemoteFailed) and away.exists():
            away.rename(sandbox.remote)

    assert "RemoteFailed" in seen
    assert seen.count("PodStarted") == 3
    assert seen.count(ResultsCommit.__name__) == 1


STUBBORN = """
import os, pathlib, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
pathlib.Path({pid!r}).write_text(str(os.getpid()))
time.sleep(600)
"""


def test_an_interrupted_try_leaves_neither_a_process_nor_a_file(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.spec()
    pid, temporary = tmp_path / "pid", tmp_path / "tmp"
    temporary.mkdir()
    sandbox.write("code/train.py", STUBBORN.format(pid=str(pid)))
    child = subprocess.Popen(
        [sys.executable, "-m", "sweepledger.cli", "try", "peak"],
        cwd=sandbox.root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    trial = Path("/proc") / pid.read_text()
    assert trial.exists()

    child.send_signal(signal.SIGINT)
    child.communicate(timeout=120)

    assert child.returncode == 130
    assert not trial.exists()
    assert [*temporary.iterdir()] == []


@pytest.mark.parametrize("place", ["overlays", "sweeps"])
def test_nothing_passes_a_link_of_the_repository(sandbox: Sandbox, tmp_path: Path, place: str) -> None:
    sandbox.merged()
    outside = tmp_path / "outside"
    shutil.move(sandbox.root / place, outside)
    (sandbox.root / place).symlink_to(outside)
    before = sorted(outside.rglob("*"))
    if place != "sweeps":
        sandbox.spec(xs="1, 2, 3, 4")

    with pytest.raises(StorageError, match="not a symbolic link"):
        sandbox.generate()

    assert sorted(outside.rglob("*")) == before
