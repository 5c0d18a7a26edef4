"""A cluster for a person: a team's repository, its git server, Argo CD or Flux, a node, and a shell inside.

python -m tests.e2e.playground up [argocd|flux]
python -m tests.e2e.playground shell [COMMAND]...
python -m tests.e2e.playground down
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster import box, building
from tests.cluster.apiserver import NoClusterToolsError, kubectl
from tests.cluster.children import until
from tests.cluster.machine import start
from tests.cluster.processes import lives
from tests.e2e.founding import followed_team, prepared
from tests.e2e.team import Team

ROOT = Path(__file__).parents[2]
STATE = building.BUILT / "state/playground"
FACTS = STATE / "facts.json"
SECONDS = 600
INTRODUCTION = """
  make cluster-shell          a shell in the team's clone, where the cluster is; it has kubectl, git and sweep
  kubectl get nodes,pods -A   the node is real, and so are its containers
  {objects}
  docs/try-a-cluster.md has a sweep to type, and the tutorial; the trials' image holds no code:
  a spec says `code: {{path: code, mode: clone}}`, and python3
  the collector commits at the next full minute after a batch has ended: git pull; sweep results NAME
  logs: {logs}
  make cluster-down           stops it, and nothing is left
"""
OBJECTS = {
    "argocd": "kubectl get applications,applicationsets,appprojects -n argocd",
    "flux": "kubectl get gitrepositories,kustomizations -n sweeps-flux",
}


def up(controller: str) -> int:
    reason = box.why_not()
    if reason:
        return _refuse(f"no cluster tools ({reason})")
    if _outer() is not None:
        return _refuse("one runs already: make cluster-shell, or make cluster-down")
    STATE.mkdir(parents=True, exist_ok=True)
    FACTS.unlink(missing_ok=True)
    print("==> starting a cluster in namespaces of its own (about a minute)", flush=True)
    began = time.monotonic()
    with (STATE / "log").open("wb") as log:
        serving = [sys.executable, "-m", "tests.e2e.playground", "serve", controller]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.box", *serving],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (STATE / "pid").write_text(str(process.pid))
    try:
        while not FACTS.is_file():
            if process.poll() is not None or time.monotonic() - began > SECONDS:
                down()
                messages = (STATE / "log").read_text().splitlines()[-20:]
                return _refuse("it does not start:\n" + "\n".join(messages))
            time.sleep(0.2)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()  # else it would seem to live on, as a child that nobody has asked after
        down()
        return 130
    facts = json.loads(FACTS.read_text())
    print(f"ready after {time.monotonic() - began:.0f} s: {controller}, Kubernetes {building.KUBERNETES}")
    print(INTRODUCTION.format(objects=OBJECTS[controller], logs=facts["logs"]))
    return 0


def shell(command: list[str]) -> int:
    """Run a command, or a shell, in the cluster's namespaces and the team's clone."""
    outer = _outer()
    if outer is None or not FACTS.is_file():
        return _refuse("none runs; start one by: make cluster")
    facts = json.loads(FACTS.read_text())
    inner = box.first_process(_unshare(outer))
    path = f"{Path(sys.executable).parent}:{Path(kubectl()).parent}:{os.environ['PATH']}"
    environment = {**os.environ, **facts["environment"], "PATH": path, "PS1": "(cluster) \\w $ "}
    wanted = command or ["bash", "--norc"]
    entered = ["nsenter", f"--target={inner}", "--mount", "--net", "--pid", "--ipc", "--uts"]
    done = subprocess.run([*entered, f"--wdns={facts['clone']}", *wanted], env=environment, check=False)
    # A shell ends with the status of the last thing typed in it, which says nothing of the shell.
    return done.returncode if command else 0


def down() -> int:
    """Stop it; nothing of it is left."""
    outer = _outer()
    if outer is not None:
        os.kill(outer, signal.SIGTERM)
        until("it has ended", lambda: not lives(outer), seconds=300)
    FACTS.unlink(missing_ok=True)
    print("the cluster is stopped, and nothing of it is left")
    return 0


def serve(controller: str) -> int:
    try:
        machine = start()
        ground = prepared(machine, controller)
    except NoClusterToolsError as error:
        return _refuse(str(error))
    team = followed_team(ground)
    _tell(team, machine.children.folder)
    signal.pause()
    return 0


def _tell(team: Team, logs: Path) -> None:
    facts = {"clone": str(team.root), "logs": str(logs), "environment": team.environment()}
    partial = FACTS.with_suffix(".part")
    partial.write_text(json.dumps(facts))
    partial.rename(FACTS)


def _outer() -> int | None:
    """Give the number of the process that holds the box, if it lives."""
    path = STATE / "pid"
    pid = int(path.read_text()) if path.is_file() else 0
    shown = Path(f"/proc/{pid}/cmdline")
    return pid if pid and shown.is_file() and b"tests.cluster.box" in shown.read_bytes() else None


def _unshare(outer: int) -> int:
    count = box.first_process(outer)
    assert count is not None
    return count


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)
    return 3


def main(arguments: list[str]) -> int:
    match arguments:
        case ["up", *rest]:
            return up(*(rest or ["argocd"]))
        case ["shell", *rest]:
            return shell(rest)
        case ["down"]:
            return down()
        case ["serve", controller]:
            return serve(controller)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
