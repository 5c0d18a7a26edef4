"""The node: runs pods as processes, each below its own supervisor, and reports how they ended.

Processes whose supervisor was killed are found by an environment variable that all processes of a pod inherit.
"""

import json
import selectors
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct, field, to_builtins

import sweepledger
from sweepledger import process_tree
from sweepledger.engine.local import pod_server, pod_supervisor
from sweepledger.engine.local.environment import POD_UID_VARIABLE
from sweepledger.engine.local.pod_server import PodServer, SupervisorProcess
from sweepledger.errors import RepositoryError

KILL_SECONDS = 10.0
"""Time for killed processes to end; a process that hangs in the kernel may never end."""
CLOSE_SECONDS = 15.0
"""Longer than a supervisor needs to kill its pod."""

SUPERVISOR_SCRIPT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from sweepledger.engine.local.pod_supervisor import run_pods; sys.exit(run_pods())"
)

SERVER_SCRIPT = (
    "import socket, sys; sys.path.append(sys.argv[1]); from sweepledger.engine.local.pod_server import serve; "
    "serve(socket.socket(fileno=int(sys.argv[2])), sys.argv[3], sys.argv[4])"
)


def command(script: str, *options: str) -> list[str]:
    """Return the isolated command that starts a supervisor or the server; `PodServer` adds the server's arguments."""
    package_parent = Path(sweepledger.__file__).parent.parent
    return [sys.executable, "-I", *options, "-c", script, str(package_parent)]


def find_pod_processes(uids: Collection[str]) -> tuple[int, ...]:
    """Return the live processes that carry the UID of one of these pods in their environment."""
    return process_tree.with_variable(POD_UID_VARIABLE, uids)


def kill_pod_processes(uids: Collection[str]) -> int:
    """Kill every process of these pods and wait until none is left; return their number.

    Raises RepositoryError if a process does not end: a trial must not run twice at the same time.
    """
    killed = process_tree.kill_until_none(lambda: find_pod_processes(uids), seconds=KILL_SECONDS, pause=0.01)
    if left := find_pod_processes(uids):
        raise RepositoryError(
            f"process {left[0]} of an earlier trial cannot be killed",
            hint="it may wait for a disk or a network drive: end it, then start again",
        )
    return len(killed)


class Launch(Struct, frozen=True):
    """A pod that is ready to start, with paths of this machine."""

    uid: str
    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(name="env")
    stderr: Path
    cpus: tuple[int, ...]
    """CPUs that it may use; empty: all."""
    memory: int | None
    scratch: tuple[tuple[Path, int], ...]
    """Folders and the bytes that each may contain."""
    grace: float

    @property
    def launcher(self) -> str | None:
        """The launcher that a supervisor may fork; None if its command must be started as a new process."""
        return pod_server.forked_launcher(self.argv)

    def instructions(self) -> bytes:
        """Return the line that the supervisor reads."""
        return json.dumps({**to_builtins(self, enc_hook=str), "launcher": self.launcher}).encode() + b"\n"


class PodExit(Struct, frozen=True):
    """How a pod ended."""

    uid: str
    code: int
    reason: str | None
    """None if its launcher ended by itself; else stopped, oom, scratch-full, killed or start-failed."""
    message: str


class Node:
    """Starts, stops and waits for the running pods."""

    def __init__(self, launcher: Path | None = None) -> None:
        """Start with no pods. The definitions of `launcher` need not be executed in every pod."""
        self._launcher = "" if launcher is None else str(launcher)
        self._supervisors: dict[str, SupervisorProcess] = {}
        self._server: PodServer | None = None
        self._waiting: list[SupervisorProcess] = []
        """Supervisors without a pod."""
        self._failed_starts: list[PodExit] = []
        self._selector = selectors.DefaultSelector()

    def start(self, launch: Launch) -> None:
        """Start a pod. A pod that cannot be started appears among those that have ended."""
        try:
            process = (
                self._waiting_supervisor()
                or self._fork(launch)
                # Without site packages, to start fast.
                or SupervisorProcess.start(command(SUPERVISOR_SCRIPT, "-S"), {POD_UID_VARIABLE: launch.uid})
            )
        except OSError as error:
            self._failed_starts.append(
                PodExit(launch.uid, pod_supervisor.START_FAILED_CODE, "start-failed", str(error))
            )
            return
        self._supervisors[launch.uid] = process
        self._selector.register(process.stdout, selectors.EVENT_READ)
        process.send(launch.instructions())

    def _waiting_supervisor(self) -> SupervisorProcess | None:
        while self._waiting:
            process = self._waiting.pop()
            if process.is_waiting():
                return process
            process.release()  # it was killed
        return None

    def _fork(self, launch: Launch) -> SupervisorProcess | None:
        """Let the server start a supervisor; None if there is no server."""
        if not pod_server.can_fork():
            return None
        try:
            if self._server is None:
                self._server = PodServer(command(SERVER_SCRIPT), POD_UID_VARIABLE, self._launcher)
            return self._server.fork(launch.launcher)
        except OSError:  # it was killed: the next pod gets another
            if self._server is not None:
                self._server.close()
                self._server = None
            return None

    def stop(self, uid: str) -> None:
        """Stop a pod: SIGTERM, its grace period, SIGKILL."""
        if (process := self._supervisors.get(uid)) is not None:
            process.send(pod_supervisor.STOP + b"\n")

    def wait(self, seconds: float) -> None:
        """Wait until a pod ends, at most `seconds`."""
        if self._failed_starts:
            return
        if not self._supervisors:
            time.sleep(seconds)
            return
        self._selector.select(seconds)

    def ended(self) -> tuple[PodExit, ...]:
        """Return the pods that have ended since the last call."""
        exits, self._failed_starts = self._failed_starts, []
        ready = {key.fileobj for key, _ in self._selector.select(0)} if self._supervisors else set()
        for uid, process in list(self._supervisors.items()):
            if process.stdout in ready:
                exits.append(self._end(uid, process))
        return tuple(exits)

    def _end(self, uid: str, process: SupervisorProcess) -> PodExit:
        self._selector.unregister(process.stdout)
        del self._supervisors[uid]
        can_continue = False
        try:
            # A supervisor writes its report last, so that reading takes no time.
            report = json.loads(process.read_report())
            pod_exit = PodExit(uid, report["code"], report["reason"], report["message"])
            has_survivors, can_continue = report["survivors"] > 0, pod_supervisor.can_continue(report)
        except (ValueError, KeyError, TypeError):
            pod_exit = PodExit(uid, pod_supervisor.KILLED_CODE, "killed", "its supervisor was killed")
            has_survivors = True
        if can_continue:
            self._waiting.append(process)
        else:
            process.release()
        if has_survivors:
            kill_pod_processes((uid,))
        return pod_exit

    def close(self) -> None:
        """Kill all pods and wait until none of their processes is left."""
        for waiting in self._waiting:
            waiting.release()
        self._waiting.clear()
        for process in self._supervisors.values():
            process.stdin.close()
        deadline = time.monotonic() + CLOSE_SECONDS
        for process in self._supervisors.values():
            process.end(deadline)
        kill_pod_processes(tuple(self._supervisors))
        self._supervisors.clear()
        self._selector.close()
        if self._server is not None:
            self._server.close()
            self._server = None
