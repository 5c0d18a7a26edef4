"""The server's life: made where Go is, missed by name where it is not, never left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster import apiserver, building

ROOT = Path(__file__).parents[2]
SECONDS = 180

STARTING = """
import sys, time
from pathlib import Path
from tests.cluster import apiserver
apiserver.STATE = Path(sys.argv[1])
with apiserver.running():
    time.sleep(600)
"""


def starting(state: Path) -> subprocess.Popen[bytes]:
    """Start a server in a process of its own; give it once etcd runs, long before the server is ready."""
    argv = [sys.executable, "-c", STARTING, str(state)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while not list(state.glob("for-*/kube-apiserver.pid")):
        assert started.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return started


def alive(folder: Path) -> str:
    """List the processes whose command lines name a folder."""
    shown = subprocess.run(["ps", "-ww", "-eo", "pid=,command="], capture_output=True, text=True, check=True)
    return "\n".join(line for line in shown.stdout.splitlines() if f"{folder}/" in line)


@pytest.fixture
def needs_tools() -> None:
    if building.built(building.CONTROL_PLANE) is None or building.built(building.CRDS) is None:
        pytest.skip("skipped: no cluster tools (run `make cluster-tools`)")


@pytest.mark.usefixtures("needs_tools")
def test_what_a_killed_owner_left_is_ended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = starting(tmp_path)
    owner.kill()
    owner.wait()
    assert "kube-apiserver" in alive(tmp_path)

    monkeypatch.setattr(apiserver, "STATE", tmp_path)
    apiserver.sweep_out()

    assert alive(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("needs_tools")
def test_an_interrupt_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    owner = starting(tmp_path)

    owner.send_signal(signal.SIGINT)

    assert owner.wait(SECONDS) != 0
    assert alive(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
