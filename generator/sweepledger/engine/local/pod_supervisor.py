"""The supervisor of a pod's processes: a separate program that the node starts or forks, and uses for many pods.

It reads its instructions as one line of JSON on standard input. The line `stop` makes it stop the pod; the end of
the input means that the engine has ended, and it kills the pod. It kills all descendants, including those in other
sessions, before it writes its report as one line of JSON to standard output. Then it waits for its next pod, because
forking another supervisor costs more than all its other work. So does the process in which it runs launchers
(`launcher_worker`), if it was forked and the launcher allows it.
"""

# pathlib would add to the time that every pod takes to start:
# ruff: noqa: PTH116, PTH118, PTH123

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from sweepledger import process_tree
from sweepledger.engine.local.launcher_worker import OVERLAY, LauncherWorker

POLL_SECONDS = 0.25
"""Interval of memory measurements, between which a trial can exceed its limit."""
SCRATCH_SECONDS = 5.0
"""Longer, because walking a folder costs more than reading /proc."""
KILL_SECONDS = 10.0
"""Time for killed processes to end; a process that hangs in the kernel may never end."""
STDERR_BYTES = 1 << 20
"""The pod's own stderr is truncated beyond this size; the launcher keeps the trial's output."""

KILLED_CODE = 128 + signal.SIGKILL
START_FAILED_CODE = 127

STOP = b"stop"
"""The line that stops a pod; one that arrives after the pod has ended means nothing."""
ENDS_WITH_POD = frozenset({"killed", "engine-gone"})
"""Reasons after which a supervisor has no other pod."""

Report = dict[str, Any]


def memory_beyond(limit: int) -> int:
    """Return the memory of the pod if it exceeds the limit by a quick and by an exact measure; else 0."""
    pids = list(process_tree.descendants(os.getpid()))
    if sum(map(process_tree.resident_bytes, pids)) <= limit:
        return 0
    used = sum(map(process_tree.proportional_bytes, pids))
    return used if used > limit else 0


def folder_bytes(folder: str) -> int:
    """Return the disk usage of the files below a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


class Lines:
    """The lines of standard input, read as they arrive."""

    def __init__(self) -> None:
        self.rest = b""
        self.has_ended = False

    def read(self) -> bytes | None:
        """Return the next line after one read; None if the line is incomplete."""
        if b"\n" not in self.rest:
            part = os.read(0, 1 << 16)
            self.has_ended = not part
            self.rest += part
        line, end, rest = self.rest.partition(b"\n")
        if not end:
            return None
        self.rest = rest
        return line

    def wait(self, wakeup: int, seconds: float, *others: int) -> bool:
        """Wait for a signal or any input, at most some seconds; return whether `read` would return without waiting."""
        if b"\n" in self.rest:
            return True
        ready, _, _ = select.select([0, wakeup, *others], [], [], seconds)
        return 0 in ready

    def instructions(self) -> dict[str, Any] | None:
        """Wait for the instructions for the next pod; return None if the input ends first."""
        while not self.has_ended:
            line = self.read()
            if line is not None and line != STOP:
                instructions: dict[str, Any] = json.loads(line)
                return instructions
        return None


class PodSupervisor:
    """The launcher of a pod, and all its descendants."""

    def __init__(
        self, instructions: dict[str, Any], lines: Lines, worker: LauncherWorker | None = None
    ) -> None:
        self.instructions = instructions
        self.lines = lines
        self.worker = worker
        """Runs the launcher; None: its command is started as a new process."""
        self.launcher = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        self.message = ""
        """What the engine is to say of a pod that is killed."""
        self.measure_at = self.walk_at = time.monotonic() + POLL_SECONDS
        self.is_subreaper = process_tree.adopt_orphans()

    def start(self) -> None:
        """Start the launcher. Raises OSError or SubprocessError."""
        own = os.getpid()

        def prepare() -> None:
            process_tree.end_with(own)
            if self.instructions["cpus"]:
                os.sched_setaffinity(0, self.instructions["cpus"])

        if self.worker is not None:
            os.stat(self.instructions["cwd"])
            self.launcher = self.worker.start(self.instructions)
            return
        with open(self.instructions["stderr"], "ab") as stderr:
            # Kept: as it is deleted, it would collect a process that has ended already, and its exit code.
            self.process = subprocess.Popen(
                self.instructions["argv"],
                cwd=self.instructions["cwd"],
                env={name: text for name, text in self.instructions["env"].items() if name != OVERLAY},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                preexec_fn=prepare,  # noqa: PLW1509 - this program has one thread
                start_new_session=True,
            )
            self.launcher = self.process.pid

    def reap(self) -> bool:
        """Collect ended children; return False if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.launcher:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code

    def terminate(self) -> None:
        """Send SIGTERM to the launcher, which passes it on."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.launcher, signal.SIGTERM)

    def kill_all(self) -> int:
        """Kill every descendant; return the number of those that do not end.

        A worker that waits for its next pod is spared if nothing else is left.
        """
        if self.is_subreaper and not self.reap():
            return 0  # the usual end, which needs no look at other processes
        if self.worker is not None and self.worker.is_idle:
            if process_tree.children(os.getpid()) == [self.launcher]:
                return 0
            self.worker.is_idle = False
        deadline = time.monotonic() + KILL_SECONDS
        while time.monotonic() < deadline:
            process_tree.kill(process_tree.descendants(os.getpid()))
            process_tree.kill_group(self.launcher)  # for systems that do not list descendants
            # A subreaper inherits every orphan: once it has no child, nothing of the pod is left.
            if not self.reap():
                return 0
            time.sleep(0.005)
        return len(list(process_tree.descendants(os.getpid())))

    def watch(self, wakeup: int) -> str | None:
        """Wait until the launcher ends; return a reason if the pod has to be killed."""
        stop_at = float("inf")
        reason = None
        while self.reap() and self.code is None:
            if time.monotonic() >= stop_at:
                return reason
            if limit := self.exceeded_limit():
                return limit
            has_line = self.lines.wait(wakeup, POLL_SECONDS, *(self.worker.readable if self.worker else ()))
            if self.worker is not None and self.worker.readable:
                self.code = self.worker.read_code()
            if has_got_sigterm(wakeup):
                return "killed"
            if has_line:
                line = self.lines.read()
                if self.lines.has_ended:
                    return "engine-gone"
                if line == STOP and reason is None:
                    self.terminate()
                    reason, stop_at = "stopped", time.monotonic() + self.instructions["grace"]
        return reason

    def exceeded_limit(self) -> str | None:
        """Return the reason if the pod has exceeded a limit; measurements are repeated only after an interval."""
        now = time.monotonic()
        if now >= self.measure_at:
            self.measure_at = now + POLL_SECONDS
            with contextlib.suppress(OSError):
                if os.stat(self.instructions["stderr"]).st_size > STDERR_BYTES:
                    os.truncate(self.instructions["stderr"], 1)  # its first byte begins each such file
            limit = self.instructions["memory"]
            if limit and (used := memory_beyond(limit)):
                self.message = f"used {_mebibytes(used)} of memory, and the limit is {_mebibytes(limit)}"
                return "oom"
        if now >= self.walk_at:
            self.walk_at = now + SCRATCH_SECONDS
            if any(folder_bytes(folder) > limit for folder, limit in self.instructions["scratch"]):
                return "scratch-full"
        return None

    def run(self, wakeup: int) -> Report:
        """Run the pod until its last process has ended, and return the report."""
        try:
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            return {
                "code": START_FAILED_CODE,
                "reason": "start-failed",
                "message": str(error),
                "survivors": 0,
            }
        reason = self.watch(wakeup)
        if self.worker is not None and reason is not None:
            self.worker.is_idle = False  # a signal may still be on its way to it
        survivors = self.kill_all()
        code = KILLED_CODE if self.code is None or reason == "oom" else self.code
        return {"code": code, "reason": reason, "message": self.message, "survivors": survivors}


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.0f}Mi"


def has_got_sigterm(wakeup: int) -> bool:
    """Return whether a SIGTERM has arrived since the last call."""
    with contextlib.suppress(BlockingIOError):
        return signal.SIGTERM in os.read(wakeup, 4096)
    return False


def signal_pipe() -> int:
    """Return a pipe that signals write to. Signals get handlers, because the trial would inherit ignored ones."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    handler: Callable[[int, FrameType | None], None] = lambda _number, _frame: None  # noqa: E731
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def run_pods(
    worker_for: Callable[[dict[str, Any]], LauncherWorker | None] = lambda _: None,
    end: Callable[[], None] = lambda: None,
) -> int:
    """Run one pod after the other until the engine ends, and return the exit code.

    `worker_for` returns the worker for a pod's launcher; `end` is called before the pod is reported.
    """
    lines, wakeup = Lines(), signal_pipe()
    while (instructions := lines.instructions()) is not None:
        has_got_sigterm(wakeup)  # sent while there was no pod to kill
        report = PodSupervisor(instructions, lines, worker_for(instructions)).run(wakeup)
        end()
        with contextlib.suppress(BrokenPipeError):  # the engine has ended
            os.write(1, json.dumps(report).encode() + b"\n")
        if not can_continue(report):
            break
    return 0


def can_continue(report: Report) -> bool:
    """Return whether a supervisor waits for another pod after this report."""
    return not report["survivors"] and report["reason"] not in ENDS_WITH_POD
