"""Guards the processes of one pod: a program of its own, standard library alone, started by the node.

Its instructions are one line of JSON on standard input. A second line asks it to stop the pod; the end
of the input means that the engine is gone, and the pod with it. It ends every descendant, those in
sessions of their own included, before it reports with one line of JSON on standard output.
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
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

POLL_SECONDS = 0.25
"""How often memory is looked at: between two looks a trial can take more than its limit."""
SCRATCH_SECONDS = 5.0
"""Walking a folder costs more than reading numbers from /proc."""
PATIENCE_SECONDS = 10.0
"""For killed processes to vanish; one that hangs in the kernel can take for ever."""
STDERR_BYTES = 1 << 20
"""The pod's own stderr starts anew beyond this: the launcher keeps the trial's output, with head and tail."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILLED = 128 + signal.SIGKILL
START_FAILED = 127

Report = dict[str, Any]


def prctl(option: int, value: int) -> bool:
    """Ask Linux for something about this process; False where there is no such thing."""
    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def children(pid: int) -> list[int]:
    """List a process's children; none where the system does not tell."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def descendants() -> Iterator[int]:
    """Walk all processes below this one."""
    waiting = children(os.getpid())
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children(pid)


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use, those it shares included."""
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def proportional(pid: int) -> int:
    """Bytes of memory, what is shared divided among those who share it; slower to ask for."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident(pid)


def uses_too_much(limit: int) -> bool:
    """Tell whether the pod has more memory than its limit: by the quick measure, then by the fair one."""
    pids = list(descendants())
    return sum(map(resident, pids)) > limit and sum(map(proportional, pids)) > limit


def folder_bytes(folder: str) -> int:
    """Add up the files below a folder, as blocks on the disk."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


class Warden:
    """The pod's launcher, and all that came of it."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.orders = orders
        self.launcher = 0
        self.code: int | None = None
        self.look_at = self.walk_at = time.monotonic() + POLL_SECONDS
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def start(self) -> None:
        """Start the launcher. Raises OSError or SubprocessError."""
        own = os.getpid()

        def prepare() -> None:
            # The launcher dies with its warden, however that ends; the rest is found by the pod's mark.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != own:
                os._exit(KILLED)
            if self.orders["cpus"]:
                os.sched_setaffinity(0, self.orders["cpus"])

        with open(self.orders["stderr"], "ab") as stderr:
            self.launcher = subprocess.Popen(
                self.orders["argv"],
                cwd=self.orders["cwd"],
                env=self.orders["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                preexec_fn=prepare,  # noqa: PLW1509 - this program has one thread
                start_new_session=True,
            ).pid

    def reap(self) -> bool:
        """Collect those that ended; False when no child is left at all."""
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
        """Ask the launcher to end; it passes the word on."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.launcher, signal.SIGTERM)

    def end_all(self) -> int:
        """Kill every descendant; give the number of those that would not vanish."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            for pid in descendants():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # For systems that do not tell who descends from whom.
                os.killpg(self.launcher, signal.SIGKILL)
            # A reaper inherits every orphan: once it has no child, nothing of the pod is left.
            if not self.reap():
                return 0
            time.sleep(0.005)
        return len(list(descendants()))

    def watch(self, wakeup: int) -> str | None:
        """Wait until the launcher ends or must end; give the reason in the second case."""
        stop_at = float("inf")
        reason = None
        while self.reap() and self.code is None:
            if time.monotonic() >= stop_at:
                return reason
            if excess := self.excess():
                return excess
            ready, _, _ = select.select([0, wakeup], [], [], POLL_SECONDS)
            if wakeup in ready and signal.SIGTERM in os.read(wakeup, 4096):
                return "killed"
            if 0 in ready:
                if not os.read(0, 4096):
                    return "engine-gone"
                if reason is None:
                    self.terminate()
                    reason, stop_at = "stopped", time.monotonic() + self.orders["grace"]
        return reason

    def excess(self) -> str | None:
        """Name the limit that the pod has passed, looking no more often than is cheap."""
        now = time.monotonic()
        if now >= self.look_at:
            self.look_at = now + POLL_SECONDS
            self._trim_stderr()
            if self.orders["memory"] and uses_too_much(self.orders["memory"]):
                return "oom"
        if now >= self.walk_at:
            self.walk_at = now + SCRATCH_SECONDS
            if any(folder_bytes(folder) > limit for folder, limit in self.orders["scratch"]):
                return "scratch-full"
        return None

    def _trim_stderr(self) -> None:
        with contextlib.suppress(OSError):
            if os.stat(self.orders["stderr"]).st_size > STDERR_BYTES:
                os.truncate(self.orders["stderr"], 0)

    def run(self, wakeup: int) -> Report:
        """Run the pod from its start to its last process."""
        try:
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            return {"code": START_FAILED, "reason": "start-failed", "message": str(error), "survivors": 0}
        reason = self.watch(wakeup)
        survivors = self.end_all()
        code = KILLED if self.code is None or reason == "oom" else self.code
        return {"code": code, "reason": reason, "message": "", "survivors": survivors}


def read_orders() -> dict[str, Any] | None:
    """Read the first line of the input; None if the engine went away before it was complete."""
    text = b""
    while not text.endswith(b"\n"):
        part = os.read(0, 1 << 16)
        if not part:
            return None
        text += part
    orders: dict[str, Any] = json.loads(text)
    return orders


def awake_on_signals() -> int:
    """Make signals readable. Handlers, not SIG_IGN: what is ignored would stay so in the trial."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    handler: Callable[[int, FrameType | None], None] = lambda _number, _frame: None  # noqa: E731
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def main() -> int:
    """Guard one pod."""
    orders = read_orders()
    if orders is None:
        return 1
    report = Warden(orders).run(awake_on_signals())
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(report).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
