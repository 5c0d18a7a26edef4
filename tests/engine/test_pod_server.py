"""The server that forks supervisors and launchers: forks that look and behave like new processes."""

import ast
import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import ANY
from uuid import uuid4

import pytest
from msgspec.structs import replace

from sweepledger.engine.local import node as local_node
from sweepledger.engine.local import pod_server, pod_supervisor
from sweepledger.engine.local.environment import POD_UID_VARIABLE
from sweepledger.engine.local.node import Launch, Node, PodExit
from sweepledger.repo.base_files import packaged_launcher
from sweepledger.structs.run_config import Shape
from tests.engine.batches import Machine, ended, pod_exits
from tests.engine.test_rendered_batches import TRAIN, played, rendered
from tests.launcher.folders import LAUNCHER_PARTS

pytestmark = pytest.mark.skipif(not pod_server.can_fork(), reason="only Linux has the server")
LAUNCHER = """import json, os, signal, subprocess, sys, threading, time
SEEN = []
COUNT = 0
with open({log!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")

def warm_up():
    pass

def main():
    global COUNT
    COUNT += 1
    facts = {{
        "process": os.getpid(),
        "count": COUNT,
        "left": globals().get("LEFT"),
        "argv": sys.argv,
        "path": sys.path[:2],
        "is main": [__name__, __file__, sys.modules["__main__"].SEEN is SEEN],
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
        "files": [os.readlink(f"/proc/self/fd/{{number}}") for number in range(3)],
        "leader": os.getsid(0) == os.getpid(),
        "umask": os.umask(0),
        "signals": {{int(number): str(signal.getsignal(number)) for number in signal.valid_signals()}},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "cpus": sorted(os.sched_getaffinity(0)),
    }}
    os.umask(facts["umask"])
    globals()["LEFT"] = 1
    os.environ["LEAK"] = sys.argv[0] = "changed"
    signal.signal(signal.SIGTERM, lambda *_: None)
    os.open("/dev/null", os.O_RDONLY)
    sys.path.append("/leak")
    with open("facts.json", "w") as file:
        json.dump(facts, file)
    print("to stderr", file=sys.stderr)
    leaves = os.environ.get("LEAVES")
    if leaves == "thread":
        threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
    if leaves == "process":
        subprocess.Popen(["sleep", "300"], start_new_session=True)
    if leaves == "nothing":
        os.kill(os.getpid(), signal.SIGKILL)
    while leaves == "time":
        time.sleep(0.05)
    return int(os.environ["CODE"])


if __name__ == "__main__":
    sys.exit(main())
"""
"""Writes who executes its definitions, and what `main` finds; one process can run it for several pods, since it has
`warm_up`; and it leaves behind what it can."""
TIMES_AND_IDS = {"uid", "started", "finished", "seconds"}


def launch_of(folder: Path, launcher: Path, **environment: str) -> Launch:
    uid = str(uuid4())
    interpreter = Path(sys.executable)
    variables = {POD_UID_VARIABLE: uid, "PATH": f"{interpreter.parent}:/usr/bin", **environment}
    argv = (interpreter.name, str(launcher))
    return Launch(uid, argv, folder, variables, folder / "stderr", (), None, (), 5.0)


def a_launcher(folder: Path) -> Path:
    path = folder / "launch.py"
    path.write_text(LAUNCHER.format(log=str(folder / "executed")))
    return path


def executed(folder: Path) -> list[int]:
    """Return the processes that have executed the definitions of the launcher."""
    return [int(line) for line in (folder / "executed").read_text().split()]


def server_pid(node: Node) -> int:
    assert node._server is not None  # noqa: SLF001 - only the node knows it
    return node._server._process.pid  # noqa: SLF001


@pytest.mark.sampled(1)
def test_a_forked_launcher_lacks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = a_launcher(tmp_path)
    launch = launch_of(tmp_path, launcher, CODE="7", LC_ALL="C.UTF-8")
    found = []
    for can_fork in (True, True, False):
        with monkeypatch.context() as patch, closing(Node()) as node:
            patch.setattr(pod_server, "can_fork", lambda answer=can_fork: answer)
            for _ in range(2):
                node.start(launch)
                assert ended(node).code == 7
                found.append(json.loads((tmp_path / "facts.json").read_text()))
                del found[-1]["process"]

    assert all(facts == found[-1] for facts in found)
    assert found[-1]["environment"] == launch.environment
    assert found[-1]["descriptors"] == [0, 1, 2]
    assert found[-1]["count"] == 1
    assert found[-1]["leader"]
    assert (tmp_path / "stderr").read_text() == "to stderr\n" * len(found)


def test_a_launcher_that_is_a_process_of_its_own_is_offered_no_overlay(tmp_path: Path) -> None:
    launch = launch_of(tmp_path, a_launcher(tmp_path), CODE="0", SWEEP_OVERLAY="1")
    with closing(Node()) as node:
        node.start(replace(launch, argv=(sys.executable, launch.argv[1])))
        assert ended(node).code == 0

    assert "SWEEP_OVERLAY" not in json.loads((tmp_path / "facts.json").read_text())["environment"]


def test_the_server_executes_the_definitions_of_a_launcher_of_the_package_once(tmp_path: Path) -> None:
    launcher = a_launcher(tmp_path)
    with closing(Node(launcher)) as node:
        for _ in range(3):
            node.start(launch_of(tmp_path, launcher, CODE="0"))
            assert ended(node).code == 0

        assert executed(tmp_path) == [server_pid(node)]


@pytest.mark.parametrize("edited_while", ["before the engine", "during the run"])
def test_an_edited_launcher_is_not_executed_in_the_server(tmp_path: Path, edited_while: str) -> None:
    packaged = a_launcher(tmp_path)
    locked = tmp_path / "locked/launch.py"
    locked.parent.mkdir()
    locked.write_bytes(packaged.read_bytes().replace(b"SEEN = []", b"SEEN = [ ]"))
    with closing(Node(packaged)) as node:
        if edited_while == "during the run":  # a trial edits the file of the package, too
            node.start(launch_of(tmp_path, packaged, CODE="0"))
            assert ended(node).code == 0
            (tmp_path / "executed").unlink()
            packaged.write_bytes(locked.read_bytes())
        for _ in range(2):
            node.start(launch_of(tmp_path, locked, CODE="0"))
            assert ended(node).code == 0

        assert len(set(executed(tmp_path))) == 2
        assert server_pid(node) not in executed(tmp_path)


def test_records_do_not_depend_on_who_executes_the_definitions(tmp_path: Path) -> None:
    texts = []
    for name, launcher in (("forked", None), ("called", packaged_launcher())):
        machine = Machine(tmp_path / name)
        machine.root.mkdir()
        batch = rendered(Shape.INDEXED)
        played(machine, batch, TRAIN, launcher=launcher)
        paths = sorted((machine.state / "results" / batch.name).glob("*/*.json"))
        texts.append([without_times(path.read_text(), str(machine.root)) for path in paths])

    assert len(texts[0]) == 2
    assert texts[0] == texts[1]


def without_times(record: str, folder: str) -> str:
    """Return the text of a record without what differs between any two attempts."""
    text = re.sub("trial-[0-9a-f]{16}", "", record).replace(folder, "")
    members = json.loads(text.replace(json.loads(record)["uid"], ""))
    assert members["details"].pop("peak_memory") > 0
    assert members["details"].pop("wall") == "directory"
    return json.dumps({name: value for name, value in members.items() if name not in TIMES_AND_IDS})


def test_the_definitions_of_the_launcher_depend_on_nothing_that_forks_change() -> None:
    text = packaged_launcher().read_bytes()
    assert text.endswith(pod_server.ENTRY)
    parts = {path.stem: ast.parse(path.read_bytes()) for path in LAUNCHER_PARTS}

    executed_at_once = [
        node for tree in parts.values() for statement in tree.body for node in outside_functions(statement)
    ]

    calls = {ast.unparse(node.func) for node in executed_at_once if isinstance(node, ast.Call)}
    assert calls <= {
        *("int", "re.compile", "frozenset", "range", "type"),
        *("word.title", "word.upper", "Report", "Earlier", "dict"),
    }
    read = {ast.unparse(node) for node in executed_at_once if isinstance(node, ast.Attribute)}
    assert not {name for name in read if name.startswith(("os.", "sys.", "time."))}


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement that run when the module is executed."""
    yield node
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        if name in {"annotation", "returns"}:  # texts, as `from __future__ import annotations` makes them
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from outside_functions(child)


def test_its_processes_are_found_by_the_uid_of_their_pod(node: Node, tmp_path: Path) -> None:
    launcher = tmp_path / "launch.py"
    launcher.write_text("import time\ntime.sleep(300)\n")
    first, second = launch_of(tmp_path, launcher), launch_of(tmp_path, launcher)
    node.start(first)
    node.start(second)

    give_up = time.monotonic() + 120
    while len(local_node.find_pod_processes([first.uid])) < 2:
        assert time.monotonic() < give_up
        time.sleep(0.01)

    assert local_node.kill_pod_processes([first.uid]) >= 2
    assert ended(node).reason == "killed"
    assert local_node.find_pod_processes([second.uid])


def facts_of(node: Node, folder: Path, launcher: Path, **environment: str) -> tuple[int, dict[str, object]]:
    """Run a pod; return the process of its launcher, and what else it found."""
    launch = launch_of(folder, launcher, **{"CODE": "5", **environment})
    node.start(launch)
    assert ended(node) == PodExit(launch.uid, int(environment.get("CODE", 5)), None, "")
    assert not local_node.find_pod_processes([launch.uid])
    found = json.loads((folder / "facts.json").read_text())
    assert found["environment"] == launch.environment
    del found["environment"]
    return found.pop("process"), found


def test_one_process_runs_the_launchers_of_all_pods_and_nothing_is_left_between_them(tmp_path: Path) -> None:
    launcher = a_launcher(tmp_path)
    with closing(Node(launcher)) as node:
        runs = [facts_of(node, tmp_path, launcher) for _ in range(3)]

    assert len({process for process, _ in runs}) == 1
    assert runs[0][1] == runs[1][1] == runs[2][1]
    assert (runs[0][1]["count"], runs[0][1]["left"]) == (1, None)


@pytest.mark.parametrize("leaves", ["thread", "process"])
def test_a_process_in_which_a_launcher_leaves_something_has_no_other_pod(tmp_path: Path, leaves: str) -> None:
    launcher = a_launcher(tmp_path)
    with closing(Node(launcher)) as node:
        runs = [facts_of(node, tmp_path, launcher, LEAVES=left) for left in ("", leaves, "")]

    processes = [process for process, _ in runs]
    assert processes[0] == processes[1] != processes[2]
    assert runs[0][1] == runs[2][1]


def test_a_launcher_that_is_killed_fails_its_own_pod_alone(tmp_path: Path) -> None:
    launcher = a_launcher(tmp_path)
    with closing(Node(launcher)) as node:
        facts_of(node, tmp_path, launcher)
        node.start(launch_of(tmp_path, launcher, CODE="0", LEAVES="nothing"))
        assert ended(node) == PodExit(ANY, pod_supervisor.KILLED_CODE, None, "")

        facts_of(node, tmp_path, launcher)


def test_a_stopped_pod_takes_its_process_with_it(tmp_path: Path) -> None:
    launcher = a_launcher(tmp_path)
    with closing(Node(launcher)) as node:
        first, _ = facts_of(node, tmp_path, launcher)
        (tmp_path / "facts.json").unlink()
        launch = launch_of(tmp_path, launcher, CODE="0", LEAVES="time")
        node.start(replace(launch, grace=0.2))
        give_up = time.monotonic() + 120
        while not (tmp_path / "facts.json").exists() and time.monotonic() < give_up:
            time.sleep(0.01)
        node.stop(launch.uid)
        assert ended(node).reason == "stopped"

        assert facts_of(node, tmp_path, launcher)[0] != first


def a_quick_launcher(folder: Path, code: int = 0) -> Path:
    path = folder / "quick.py"
    path.write_text(
        f"import os\nopen({str(folder / 'parents')!r}, 'a').write(f'{{os.getppid()}}\\n')\nraise SystemExit({code})\n"
    )
    return path


def supervisors(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "parents").read_text().split()]


def test_one_supervisor_has_all_pods_that_run_one_after_the_other_and_reads_each_launcher(
    node: Node, tmp_path: Path
) -> None:
    for code in (0, 3, 4):
        node.start(launch_of(tmp_path, a_quick_launcher(tmp_path, code)))
        assert ended(node) == PodExit(ANY, code, None, "")

    assert len(set(supervisors(tmp_path))) == 1


def test_pods_at_the_same_time_have_supervisors_of_their_own(node: Node, tmp_path: Path) -> None:
    sleeping = tmp_path / "launch.py"
    sleeping.write_text("import time\ntime.sleep(300)\n")
    node.start(launch_of(tmp_path, sleeping))
    node.start(launch_of(tmp_path, a_quick_launcher(tmp_path)))
    ended(node)
    node.start(launch_of(tmp_path, a_quick_launcher(tmp_path)))
    ended(node)

    (supervisor,) = set(supervisors(tmp_path))
    assert [process.pid for process in node._waiting] == [supervisor]  # noqa: SLF001 - only the node knows them


def test_a_waiting_supervisor_that_was_killed_is_replaced(node: Node, tmp_path: Path) -> None:
    launcher = a_quick_launcher(tmp_path)
    node.start(launch_of(tmp_path, launcher))
    ended(node)
    (waiting,) = node._waiting  # noqa: SLF001 - only the node knows it
    os.kill(waiting.pid, signal.SIGKILL)
    select.select([waiting.stdout], [], [], 5)

    node.start(launch_of(tmp_path, launcher))

    assert ended(node).code == 0
    assert len(set(supervisors(tmp_path))) == 2


def test_a_request_to_stop_that_comes_too_late_stops_no_other_pod(node: Node, tmp_path: Path) -> None:
    launcher = a_quick_launcher(tmp_path)
    node.start(launch_of(tmp_path, launcher))
    ended(node)
    (waiting,) = node._waiting  # noqa: SLF001 - as if the pod had ended while the node wrote this
    waiting.stdin.write(b"stop\n")
    os.kill(waiting.pid, signal.SIGTERM)

    node.start(launch_of(tmp_path, launcher))

    assert ended(node) == PodExit(ANY, 0, None, "")
    assert len(set(supervisors(tmp_path))) == 1


def test_closing_the_node_ends_waiting_supervisors(tmp_path: Path) -> None:
    with closing(Node()) as node:
        node.start(launch_of(tmp_path, a_quick_launcher(tmp_path)))
        ended(node)
        assert local_node.find_pod_processes([pod_server.NO_UID])

    (supervisor,) = set(supervisors(tmp_path))
    assert not Path(f"/proc/{supervisor}").exists()


def test_a_server_that_was_killed_is_replaced(node: Node, tmp_path: Path) -> None:
    launcher = a_quick_launcher(tmp_path, code=3)
    node.start(launch_of(tmp_path, launcher))
    ended(node)
    os.kill(server_pid(node), signal.SIGKILL)

    node.start(launch_of(tmp_path, launcher))
    node.start(launch_of(tmp_path, launcher))

    assert [pod_exit.code for pod_exit in pod_exits(node, 2)] == [3, 3]
    assert len(set(supervisors(tmp_path))) == 2


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
    assert pod_server.forked_launcher(argv) is None
