"""What the trial started ends with it: its group, its sessions, its orphans."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.launcher.folders import (
    PATIENCE,
    REPORT,
    TrialFolder,
    ended,
    launch,
    make_late,
    python,
    shell,
    wait_for,
)

needs_proc = pytest.mark.skipif(
    sys.platform != "linux", reason="skipped: only Linux tells who descends from whom"
)

GROUP = "import time; time.sleep(600)"
SESSION = "import os, time; os.setsid(); open('session', 'w').close(); time.sleep(600)"
LEAVES = """
import os, signal, subprocess, sys, time
if {orphan} and os.fork():
    os.wait()
else:
    left = subprocess.Popen([sys.executable, "-I", "-S", "-c", {code!r}])
    while {session} and not os.path.exists("session"): time.sleep(0.005)
    open(os.environ["HERE"] + "/left", "w").write(str(left.pid))
    if {orphan}: os._exit(0)
open(os.environ["SWEEP_RESULT"], "w").write('{{"test_accuracy": 1}}')
"""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; whoever adopted it may be slow to notice."""
    try:
        return state(pid).split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.sampled(1)
@needs_proc
@pytest.mark.parametrize("orphan", [False, True], ids=["child", "orphan"])
@pytest.mark.parametrize("session", [False, True], ids=["group", "session"])
def test_what_is_left_behind_is_killed(trial_folder: TrialFolder, *, orphan: bool, session: bool) -> None:
    code = SESSION if session else GROUP
    trial_folder.command = python(LEAVES.format(orphan=orphan, session=session, code=code))

    run = trial_folder.run()

    assert run.code == 0
    assert is_gone(int((trial_folder.root / "left").read_text()))
    assert run.said == ["t00000000000: ok: test_accuracy=1.0"]


@needs_proc
def test_what_a_killed_trial_leaves_behind_is_killed(trial_folder: TrialFolder) -> None:
    script = (
        LEAVES.format(orphan=True, session=True, code=SESSION)
        + "open(os.environ['HERE'] + '/up', 'w'); time.sleep(600)"
    )
    trial_folder.command = python(script)
    launcher = trial_folder.start()
    wait_for(trial_folder.root / "up")

    make_late(trial_folder.root, launcher.pid)

    assert ended(launcher).code == 124

    assert is_gone(int((trial_folder.root / "left").read_text()))


@needs_proc
def test_without_ctypes_what_stayed_in_the_trials_group_is_killed(trial_folder: TrialFolder) -> None:
    (trial_folder.root / "path").mkdir()
    (trial_folder.root / "path" / "ctypes.py").write_text("raise ImportError")
    trial_folder.command = python(LEAVES.format(orphan=True, session=False, code=GROUP))

    run = trial_folder.run(PYTHONPATH=str(trial_folder.root / "path"), PYTHONDONTWRITEBYTECODE="1")

    left = int((trial_folder.root / "left").read_text())
    until = time.monotonic() + PATIENCE
    while not is_gone(left) and time.monotonic() < until:
        time.sleep(0.01)
    assert run.code == 0
    assert is_gone(left)


@needs_proc
def test_orphans_that_end_by_themselves_do_not_pile_up(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(
        "for n in 1 2 3 4 5; do (sleep 0.01 &) ; done; touch $HERE/up;"
        f"while [ ! -e $HERE/go ]; do sleep 0.05; done; {REPORT}"
    )
    launcher = trial_folder.start()
    wait_for(trial_folder.root / "up")
    until = time.monotonic() + PATIENCE
    while len(remaining := children(launcher.pid)) > 1 and time.monotonic() < until:
        time.sleep(0.01)

    (trial_folder.root / "go").touch()
    assert ended(launcher).code == 0
    assert len(remaining) == 1, "the command, and no orphan, not even as a zombie"


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@needs_proc
def test_descendants_are_found_whatever_their_names(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to("/bin/sleep")
    nested = "import subprocess; subprocess.run(['sleep', '60'])"
    started = [subprocess.Popen([odd, "60"]), subprocess.Popen(python(nested))]
    pids = [process.pid for process in started]
    try:
        until = time.monotonic() + PATIENCE
        while not children(pids[1]) and time.monotonic() < until:
            time.sleep(0.01)
        pids += children(pids[1])

        descendants = launch.descendants()
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for process in started:
            process.wait()

    assert set(pids) <= set(descendants)
    assert os.getpid() not in descendants
    assert len(descendants) == len(set(descendants))


def test_a_stopped_trial_is_killed_at_its_timeout(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"timeout_seconds": 0.2, "grace_seconds": 0.1}
    trial_folder.command = shell("kill -STOP $$")

    record = trial_folder.try_once()

    assert (record["reason"], record["exit"]) == ("timeout", 124)
