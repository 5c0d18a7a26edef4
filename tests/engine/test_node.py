"""One pod as real processes, and what is left of it: nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from sweepledger.engine.local import environment
from sweepledger.engine.local import node as local_node
from sweepledger.engine.local.node import Launch, Node, PodExit
from tests.engine.batches import ended

SLEEP = "import time; time.sleep(300)"
SESSION = (
    f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], start_new_session=True)"
)
ORPHAN = (
    f"import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  {SLEEP}\n os._exit(0)\nos.wait()"
)


def launch_of(folder: Path, code: str, **changes: object) -> Launch:
    uid = str(uuid4())
    defaults: dict[str, object] = {
        "uid": uid,
        "argv": (sys.executable, "-c", code),
        "cwd": folder,
        "environment": {environment.POD_UID_VARIABLE: uid},
        "stderr": folder / "stderr",
        "cpus": (),
        "memory": None,
        "scratch": (),
        "grace": 5.0,
    }
    return Launch(**{**defaults, **changes})  # type: ignore[arg-type]


def wait_until_some_run(uid: str, count: int) -> None:
    give_up = time.monotonic() + 120
    while len(local_node.find_pod_processes([uid])) < count:
        assert time.monotonic() < give_up
        time.sleep(0.01)


def started_launcher(folder: Path, node: Node) -> int:
    pid = folder / "pid"
    code = f"import os, pathlib; pathlib.Path({str(pid)!r}).write_text(str(os.getpid()) + ' ')\n{SLEEP}"
    node.start(launch_of(folder, code))
    give_up = time.monotonic() + 120
    while not (pid.exists() and pid.read_text().endswith(" ")):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    return int(pid.read_text())


def status(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def parent(pid: int) -> int:
    return int(status(pid)[1])


def is_running(pid: int) -> bool:
    try:
        return status(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


INHERITED = (
    "import os, signal; raise SystemExit(40 + len(os.sched_getaffinity(0)) + 2 * (signal.getsignal(2) == 1))"
)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("", 0), (INHERITED, 41), ("import os; os.kill(os.getpid(), 15)", 143)],
    ids=["0", "one CPU, and no signal is ignored", "killed"],
)
def test_the_exit_code_is_that_of_the_launcher(tmp_path: Path, node: Node, code: str, exit_code: int) -> None:
    launch = launch_of(tmp_path, code, cpus=(min(os.sched_getaffinity(0)),))

    node.start(launch)

    assert ended(node) == PodExit(launch.uid, exit_code, None, "")


def test_every_descendant_ends_with_the_launcher(tmp_path: Path, node: Node) -> None:
    launch = launch_of(tmp_path, f"{ORPHAN}\n{SESSION}")

    node.start(launch)

    assert ended(node).code == 0
    assert local_node.find_pod_processes([launch.uid]) == ()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_every_descendant_ends_when_the_supervisor_does(tmp_path: Path, node: Node, number: int) -> None:
    stop = f"import os, time; os.kill(os.getppid(), {int(number)}); time.sleep(300)"
    launch = launch_of(tmp_path, f"{ORPHAN}\n{SESSION}\n{stop}")

    node.start(launch)

    pod_exit = ended(node)
    assert (pod_exit.code, pod_exit.reason) == (137, "killed")
    assert local_node.find_pod_processes([launch.uid]) == ()


def test_the_launcher_ends_with_its_supervisor(tmp_path: Path, node: Node) -> None:
    launcher = started_launcher(tmp_path, node)
    groups = {os.getpgid(launcher), os.getpgid(parent(launcher))}
    assert os.getpgid(0) not in groups, "a Ctrl-C in the terminal reaches no pod"

    os.kill(parent(launcher), signal.SIGKILL)

    give_up = time.monotonic() + 120
    while is_running(launcher):
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_a_stopped_pod_may_handle_sigterm(tmp_path: Path, node: Node) -> None:
    ready = tmp_path / "ready"
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(15, lambda *_: sys.exit(7))\n"
        f"pathlib.Path({str(ready)!r}).touch()\n"
        "time.sleep(300)"
    )
    launch = launch_of(tmp_path, code)
    node.start(launch)
    while not ready.exists():
        time.sleep(0.01)

    node.stop(launch.uid)
    node.stop(launch.uid)

    assert ended(node) == PodExit(launch.uid, 7, "stopped", "")


def test_a_stopped_pod_that_will_not_end_is_killed_after_its_grace(tmp_path: Path, node: Node) -> None:
    ready = tmp_path / "ready"
    touch = f"pathlib.Path({str(ready)!r}).touch()"
    code = f"import pathlib, signal; signal.signal(15, signal.SIG_IGN); {touch}\n{SLEEP}"
    launch = launch_of(tmp_path, code, grace=0.3)
    node.start(launch)
    while not ready.exists():
        time.sleep(0.01)

    node.stop(launch.uid)

    assert ended(node) == PodExit(launch.uid, 137, "stopped", "")


def test_closing_the_node_leaves_no_process(tmp_path: Path) -> None:
    node = Node()
    launches = [launch_of(tmp_path, f"{ORPHAN}\n{SESSION}\n{SLEEP}") for _ in range(3)]
    for launch in launches:
        node.start(launch)
        wait_until_some_run(launch.uid, 4)  # supervisor, launcher and the two that it left

    node.close()

    assert local_node.find_pod_processes([launch.uid for launch in launches]) == ()


def test_memory_counts_for_all_processes_of_a_pod_together(tmp_path: Path, node: Node) -> None:
    half = f"held = bytearray(40 << 20)\n{SLEEP}"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {half!r}])\n{half}"

    node.start(launch_of(tmp_path, code, memory=64 << 20))

    assert ended(node).reason == "oom"


def test_memory_that_processes_share_counts_once(tmp_path: Path, node: Node) -> None:
    share = "for _ in range(3):\n if os.fork() == 0: break"
    code = f"import os, time\nheld = os.urandom(40 << 20)\n{share}\ntime.sleep(0.8)"

    node.start(launch_of(tmp_path, code, memory=96 << 20))

    assert ended(node).reason is None


def test_a_pod_over_its_scratch_limit_is_killed(tmp_path: Path, node: Node) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = f"import pathlib; pathlib.Path({str(scratch)!r}, 'big').write_bytes(bytes(1 << 22))\n{SLEEP}"

    node.start(launch_of(tmp_path, code, scratch=((scratch, 1 << 20),)))

    assert ended(node).reason == "scratch-full"


@pytest.mark.parametrize("change", [{"argv": ("nowhere-on-path",)}, {"cwd": Path("/no/such")}], ids=str)
def test_a_pod_that_cannot_start_has_a_message(tmp_path: Path, node: Node, change: dict[str, object]) -> None:
    node.start(launch_of(tmp_path, "", **change))

    pod_exit = ended(node)
    assert (pod_exit.code, pod_exit.reason) == (127, "start-failed")
    assert "No such file" in pod_exit.message


def test_stderr_is_kept_up_to_a_limit(tmp_path: Path, node: Node) -> None:
    much = "for _ in range(40): sys.stderr.write('x' * 100_000); time.sleep(0.02)"
    code = f"import sys, time\n{much}\nprint('end', file=sys.stderr)"

    node.start(launch_of(tmp_path, code))

    assert ended(node).code == 0
    content = (tmp_path / "stderr").read_text()
    assert content.endswith("end\n")
    assert len(content) < 3_000_000


def test_a_supervisor_without_instructions_starts_nothing() -> None:
    command = local_node.command(local_node.SUPERVISOR_SCRIPT, "-S")

    ended = subprocess.run(command, input=b'{"argv": ["tou', capture_output=True, check=False)

    assert (ended.returncode, ended.stdout) == (0, b"")
