"""The server that forks supervisors and launchers: forks that look and behave like new processes."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from sweepledger.engine.local import node as local_node
from sweepledger.engine.local import pod_server
from sweepledger.engine.local.environment import POD_UID_VARIABLE
from sweepledger.engine.local.node import Launch, Node, PodExit

pytestmark = pytest.mark.skipif(not pod_server.can_fork(), reason="only Linux has the server")
LAUNCHER = """import json, os, signal, sys
if __name__ != "__main__":
    sys.exit(9)
facts = {
    "argv": sys.argv,
    "cwd": os.getcwd(),
    "environment": dict(os.environ),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "leader": os.getsid(0) == os.getpid(),
    "term": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
}
with open("facts.json", "w") as file:
    json.dump(facts, file)
print("to stderr", file=sys.stderr)
sys.exit(int(os.environ["CODE"]))
"""


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


def launch_of(folder: Path, launcher: Path, **environment: str) -> Launch:
    uid = str(uuid4())
    interpreter = Path(sys.executable)
    variables = {POD_UID_VARIABLE: uid, "PATH": f"{interpreter.parent}:/usr/bin", **environment}
    argv = (interpreter.name, str(launcher))
    return Launch(uid, argv, folder, variables, folder / "stderr", (), None, (), 5.0)


def ended(node: Node) -> PodExit:
    give_up = time.monotonic() + 15
    while time.monotonic() < give_up:
        node.wait(0.5)
        if exits := node.ended():
            return exits[0]
    raise AssertionError("the pod did not end")


def test_a_forked_launcher_has_what_a_new_process_has(node: Node, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.py"
    launcher.write_text(LAUNCHER)
    launch = launch_of(tmp_path, launcher, CODE="7")

    node.start(launch)

    assert ended(node).code == 7
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts == {
        "argv": [str(launcher)],
        "cwd": str(tmp_path),
        "environment": {**launch.environment, "LC_CTYPE": facts["environment"].get("LC_CTYPE")}
        if "LC_CTYPE" in facts["environment"]
        else dict(launch.environment),
        "descriptors": [0, 1, 2],
        "leader": True,
        "term": True,
    }
    assert (tmp_path / "stderr").read_text() == "to stderr\n"


def test_its_processes_are_found_by_the_uid_of_their_pod(node: Node, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.py"
    launcher.write_text("import time\ntime.sleep(300)\n")
    first, second = launch_of(tmp_path, launcher), launch_of(tmp_path, launcher)
    node.start(first)
    node.start(second)

    give_up = time.monotonic() + 10
    while len(local_node.find_pod_processes([first.uid])) < 2:
        assert time.monotonic() < give_up
        time.sleep(0.01)

    assert local_node.kill_pod_processes([first.uid]) >= 2
    assert ended(node).reason == "killed"
    assert local_node.find_pod_processes([second.uid])


def test_a_server_that_was_killed_is_replaced(node: Node, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.py"
    launcher.write_text("raise SystemExit(3)\n")
    node.start(launch_of(tmp_path, launcher))
    ended(node)
    assert node._server is not None  # noqa: SLF001 - the test kills it
    os.kill(node._server._process.pid, signal.SIGKILL)  # noqa: SLF001

    for _ in range(2):
        node.start(launch_of(tmp_path, launcher))
        assert ended(node).code == 3


def test_a_traceback_of_the_launcher_is_kept(node: Node, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.py"
    launcher.write_text("raise ValueError('broken')\n")

    node.start(launch_of(tmp_path, launcher))

    assert ended(node).code == 1
    assert (tmp_path / "stderr").read_text().endswith("ValueError: broken\n")


@pytest.mark.parametrize(
    "argv",
    [("/usr/bin/python3", "launch.py"), ("python3", "-X", "launch.py"), ("no-such-python", "launch.py")],
    ids=["a path", "an option", "another interpreter"],
)
def test_other_commands_are_not_forked(argv: tuple[str, ...]) -> None:
    assert pod_server.forked_launcher(argv, f"{Path(sys.executable).parent}:/usr/bin") is None
