"""The supervisor of a pod's processes: a separate program that the node starts, or forks, for each pod.

It reads its instructions as one line of JSON on standard input. A second line makes it stop the pod; the end of
the input means that the engine has ended, and it kills the pod. It kills all descendants, including those in other
sessions, before it writes its report as one line of JSON to standard output.
"""

# pathlib would add to the time that every pod takes to start:
# ruff: noqa: PTH116, PTH118, PTH123, PTH208

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from sweepledger import process_tree

POLL_SECONDS = 0.25
"""Interval of memory measurements, between which a trial can exceed its limit."""
SCRATCH_SECONDS = 5.0
"""Longer, because walking a folder costs more than reading /proc."""
KILL_SECONDS = 10.0
"""Time for killed processes to end; a process that hangs in the kernel may never end."""
STDERR_BYTES = 1 << 20
"""The pod's own stderr is truncated beyond this size; the launcher keeps the trial's output."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILLED_CODE = 128 + signal.SIGKILL
START_FAILED_CODE = 127

Report = dict[str, Any]


def prctl(option: int, value: int, *, library: Any = None) -> bool:
    """Call prctl for this process; return whether the system has it and it succeeded.

    `library` has the functions of the system; the C library of this process by default.
    """
    try:
        return bool((library or ctypes.CDLL(None)).prctl(option, value, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def exceeds_memory(limit: int) -> bool:
    """Return whether the pod uses more memory than its limit: by a quick measure, then by an exact one."""
    pids = list(process_tree.descendants(os.getpid()))
    return all(
        sum(map(measure, pids)) > limit
        for measure in (process_tree.resident_bytes, process_tree.proportional_bytes)
    )


def folder_bytes(folder: str) -> int:
    """Return the disk usage of the files below a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


class PodSupervisor:
    """The launcher of a pod, and all its descendants."""

    def __init__(self, instructions: dict[str, Any], launch: Callable[[], int] | None = None) -> None:
        self.instructions = instructions
        self.launch = launch
        """Runs the launcher in a fork of this process; None: its command is started as a new process."""
        self.launcher = 0
        self.code: int | None = None
        self.measure_at = self.walk_at = time.monotonic() + POLL_SECONDS
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def start(self) -> None:
        """Start the launcher. Raises OSError or SubprocessError."""
        own = os.getpid()

        def prepare() -> None:
            # The launcher is killed if its supervisor ends; other processes are found by the pod's variable.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != own:
                os._exit(KILLED_CODE)
            if self.instructions["cpus"]:
                os.sched_setaffinity(0, self.instructions["cpus"])

        with open(self.instructions["stderr"], "ab") as stderr:
            if self.launch is not None:
                self.launcher = self._fork(self.launch, prepare, stderr.fileno())
                return
            self.launcher = subprocess.Popen(
                self.instructions["argv"],
                cwd=self.instructions["cwd"],
                env=self.instructions["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                preexec_fn=prepare,  # noqa: PLW1509 - this program has one thread
                start_new_session=True,
            ).pid

    def _fork(self, launch: Callable[[], int], prepare: Callable[[], None], stderr: int) -> int:
        """Run the launcher in a fork with the descriptors and signals of a new process. Raises OSError."""
        os.stat(self.instructions["cwd"])
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        code = KILLED_CODE
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            prepare()
            os.setsid()
            os.chdir(self.instructions["cwd"])
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor, copy in ((null, 0), (null, 1), (stderr, 2)):
                os.dup2(descriptor, copy)
            os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
            os.environ.clear()
            os.environ.update(self.instructions["env"])
            code = launch()
            sys.stderr.flush()
        finally:
            os._exit(code)

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
        """Kill every descendant; return the number of those that do not end."""
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
            ready, _, _ = select.select([0, wakeup], [], [], POLL_SECONDS)
            if wakeup in ready and signal.SIGTERM in os.read(wakeup, 4096):
                return "killed"
            if 0 in ready:
                if not os.read(0, 4096):
                    return "engine-gone"
                if reason is None:
                    self.terminate()
                    reason, stop_at = "stopped", time.monotonic() + self.instructions["grace"]
        return reason

    def exceeded_limit(self) -> str | None:
        """Return the reason if the pod has exceeded a limit; measurements are repeated only after an interval."""
        now = time.monotonic()
        if now >= self.measure_at:
            self.measure_at = now + POLL_SECONDS
            self._trim_stderr()
            if self.instructions["memory"] and exceeds_memory(self.instructions["memory"]):
                return "oom"
        if now >= self.walk_at:
            self.walk_at = now + SCRATCH_SECONDS
            if any(folder_bytes(folder) > limit for folder, limit in self.instructions["scratch"]):
                return "scratch-full"
        return None

    def _trim_stderr(self) -> None:
        with contextlib.suppress(OSError):
            if os.stat(self.instructions["stderr"]).st_size > STDERR_BYTES:
                os.truncate(self.instructions["stderr"], 0)

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
        survivors = self.kill_all()
        code = KILLED_CODE if self.code is None or reason == "oom" else self.code
        return {"code": code, "reason": reason, "message": "", "survivors": survivors}


def read_instructions() -> dict[str, Any] | None:
    """Return the instructions in the first line of the input; None if it is not complete."""
    text = b""
    while not text.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        if not part:
            return None
        text += part
    instructions: dict[str, Any] = json.loads(text)
    return instructions


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


def main(launch: Callable[[], int] | None = None) -> int:
    """Run one pod, report how it ended, and return the exit code; `launch` runs its launcher in a fork."""
    instructions = read_instructions()
    if instructions is None:
        return 1
    report = PodSupervisor(instructions, launch).run(signal_pipe())
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(report).encode() + b"\n")
    return 0
