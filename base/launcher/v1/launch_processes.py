"""Signals, outputs and processes of a command, from its start until none of them is left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from typing import IO, TYPE_CHECKING, Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from launch_files import KIBIBYTE, STOPPED_EARLY, TIMED_OUT, Stopped, create, say, write_all
from launch_lines import TERMINAL_CODES, Stream

if TYPE_CHECKING:
    from launch_stopping import Follower

LAST_WORDS = 16 * KIBIBYTE  # bytes of stderr in which the cause of a failure is sought
LONGEST_CAUSE = 300  # characters of it in the record
TRACEBACK = "Traceback (most recent call last):"
KEPT_OUTPUT = 256 * KIBIBYTE  # bytes of an output's head, and of its tail
PATIENCE = 2.0  # seconds for processes to end and pipes to empty after SIGKILL
LOOK = 1.0  # seconds between two looks at a growing file, if there are rules of early stopping


class Signals:
    """Signals as values to look at: a request to stop is remembered, and any signal ends a wait."""

    def __init__(self) -> None:
        self.stop = 0
        self.renew()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
                signal.signal(number, self.remember)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def renew(self) -> None:
        """Use a pipe of our own: after a fork, the old one would wake the parent."""
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)

    def remember(self, number: int, _frame: object) -> None:
        """Keep the first signal that requests the end."""
        self.stop = self.stop or number

    def wake(self) -> None:
        """End a wait from another thread."""
        with contextlib.suppress(BlockingIOError):  # full: it ends anyway
            os.write(self.writer, b"\0")

    def wait(self, seconds: float, outputs: Sequence[Tee] = ()) -> None:
        """Copy outputs until a signal arrives, the time is over, or a minute has passed."""
        until = time.monotonic() + min(max(seconds, 0), 60)
        while True:
            sources = [each for each in outputs if each.is_open]
            watched: list[int | Tee] = [self.reader, *sources]
            ready = select.select(watched, [], [], max(0.0, until - time.monotonic()))[0]
            for each in sources:
                if each in ready:
                    each.take()
            if self.reader in ready:
                os.read(self.reader, 4096)
                return
            if not ready or time.monotonic() >= until:
                return


def lock(folder: str, signals: Signals) -> None:
    """Wait for other launchers of this trial; the lock lasts as long as this process. Raises Stopped."""
    file = os.open(
        os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644
    )
    is_waiting = False
    while not signals.stop:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not is_waiting:
                say("another launcher of this trial is at work: waiting for it")
            is_waiting = True
            signals.wait(0.1)
        except OSError as error:
            say(f"the results volume has no locks, continuing without: {error}")
            return
        else:
            return
    raise Stopped(signals.stop)


class Tee(threading.Thread):
    """Passes on one output of the trial as it arrives, and keeps its head and its tail in a file."""

    def __init__(self, target: int, path: str, watch: Callable[[bytes], object], file: int = -1) -> None:
        super().__init__(daemon=True)
        self.target, self.path, self.watch = target, path, watch
        self.source = -1
        self.is_open = False
        """Whether others call `take` when there is something to read; else a thread of its own does."""
        self.file = file  # -1: not yet created
        self.total = self.head = 0
        self.tail = bytearray()
        self.failure: OSError | None = None

    def copy(self, source: IO[bytes] | None) -> None:
        """Start to copy from a pipe: in a thread, unless no write to the target can wait for its reader."""
        assert source  # Popen was given PIPE
        self.source = source.fileno()
        self.is_open = never_waits(self.target)
        if not self.is_open:
            self.start()

    def fileno(self) -> int:
        """Return the pipe that is read."""
        return self.source

    def run(self) -> None:
        """Read to the end, whatever happens to the copies."""
        while self.take():
            pass

    def take(self) -> bool:
        """Read once; return whether there may be more."""
        chunk = os.read(self.source, 65536)
        if not chunk:
            self.is_open = False
            return False
        self.keep(chunk)
        self.watch(chunk)
        self.pass_on(chunk)
        return True

    def keep(self, chunk: bytes) -> None:
        """Write the head to the file at once, and hold the tail in bounded memory."""
        head = chunk[: KEPT_OUTPUT - self.head]
        self.head += len(head)
        self.total += len(chunk)
        self.save(head)
        self.tail += chunk[len(head) :]
        if len(self.tail) > 2 * KEPT_OUTPUT:
            del self.tail[:-KEPT_OUTPUT]

    def save(self, content: bytes) -> None:
        """Write to the file until that fails."""
        if self.failure is None and content:
            try:
                if self.file < 0:
                    self.file = create(self.path)
                write_all(self.file, content)
            except OSError as error:
                self.failure = error

    def pass_on(self, chunk: bytes) -> None:
        """Copy to our own output until nobody reads it any more."""
        while chunk and self.target >= 0:
            try:
                chunk = chunk[os.write(self.target, chunk) :]
            except BlockingIOError:
                select.select([], [self.target], [])
            except OSError:
                self.target = -1

    def finish(self, until: float) -> None:
        """Wait for the end of the output, but not forever, and write the tail."""
        while self.is_open and select.select([self], [], [], max(0.0, until - time.monotonic()))[0]:
            self.take()
        if self.ident is not None:
            self.join(max(0.0, until - time.monotonic()))
        tail = bytes(self.tail[-KEPT_OUTPUT:])
        cut = self.total - self.head - len(tail)
        self.save((f"\n[launch.py cut {cut} bytes here]\n".encode() if cut else b"") + tail)
        if self.failure:
            say(f"the kept output {self.path} is not complete: {self.failure}")


def never_waits(target: int) -> bool:
    """Return whether writing to a descriptor waits for no reader: one of a file, or of /dev/null."""
    with contextlib.suppress(OSError):
        state = os.fstat(target)
        return stat.S_ISREG(state.st_mode) or (
            stat.S_ISCHR(state.st_mode) and state.st_rdev == os.stat(os.devnull).st_rdev
        )
    return False


class LastWords:
    """The end of the command's stderr, in which a line says why it failed."""

    def __init__(self) -> None:
        self.end = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next part."""
        self.end = (self.end + chunk)[-LAST_WORDS:]

    def has_metric(self, metric: Mapping[str, Any]) -> bool:
        """Return whether a line has the metric."""
        stream = Stream(metric)
        stream.feed(self.end)
        stream.finish()
        return not stream.report("", "").reason

    def cause(self, secrets: Iterable[bytes]) -> str:
        """Return the last exception of a traceback, else the last line, without colours and secrets."""
        text, *values = (re.sub(TERMINAL_CODES.encode(), b"", shown) for shown in (self.end, *secrets))
        parts = [part for value in values for part in value.split(b"\n")]
        for part in sorted(parts, key=len, reverse=True):
            text = text.replace(part, b"***") if part else text
        lines = [line.rstrip() for line in text.decode(errors="replace").split("\n")]
        if len(self.end) == LAST_WORDS:
            del lines[0]  # its beginning is lost, and with it what a secret is recognized by
        line = next((line for line in reversed(lines) if line), "")
        for place, header in enumerate(lines):
            # What Python ignores while it ends is not why it ended.
            if header == TRACEBACK and not (place and lines[place - 1].startswith("Exception ignored")):
                line = next((line for line in lines[place + 1 :] if line[:1].strip()), line)
        return " ".join(line.split())[:LONGEST_CAUSE]


def descendants(spared: Iterable[int] = ()) -> list[int]:
    """List all processes that descend from this one, where the system shows them, but through none spared."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                # pid (command) state parent …, and the command may contain anything, brackets included.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    pids = [pid for pid in children.get(os.getpid(), []) if pid not in spared]
    for pid in pids:  # grows during the iteration
        pids += children.get(pid, [])
    return pids


def has_children() -> bool:
    """Return whether this process may have children, ended ones included; without any, no descendants."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except AttributeError:  # macOS has no such call
        pass
    return True


PRCTL: list[Any] = []  # the function, once somebody has needed it


def load_prctl() -> None:
    """Load the function, if the system has it (Linux)."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        if not PRCTL:
            PRCTL.append(ctypes.CDLL(None).prctl)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, where the system supports it."""
    load_prctl()
    for prctl in PRCTL:
        prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


class Ended(NamedTuple):
    """How a child process ended."""

    code: int  # as in Popen: minus the signal
    peak: int
    """The most memory in bytes that it, or one of the processes for which it has waited, had at a time."""


def reap() -> dict[int, Ended]:
    """Collect all child processes that have ended, orphans too, by their ids."""
    ended: dict[int, Ended] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            ended[pid] = Ended(code, usage.ru_maxrss * (1 if sys.platform == "darwin" else KIBIBYTE))
    return ended


class Command(subprocess.Popen):  # type: ignore[type-arg]
    """The user's command."""

    peak_memory = 0
    """The most memory in bytes that one of its processes had, of those that have ended."""


def reap_for(child: Command) -> None:
    """Collect all child processes that have ended, and note what is known of the command."""
    for pid, ended in reap().items():
        child.peak_memory = max(child.peak_memory, ended.peak)
        if pid == child.pid:
            child.returncode = ended.code


def forget_peak_memory() -> None:
    """Count the peak of our memory from now on, if the system can: that of a child begins with it."""
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"5")
        finally:
            os.close(file)


def signal_group(child: Command, number: int) -> None:
    """Send a signal to all processes of the trial's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def kill_all(pids: Iterable[int]) -> None:
    """Send SIGKILL to processes, some of which may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def end_all(child: Command) -> bool:
    """Kill the trial's group and all descendants, in other sessions too; return whether none is left."""
    until = time.monotonic() + PATIENCE
    signal_group(child, signal.SIGKILL)
    while time.monotonic() < until:
        # To read all of /proc takes longer than all else here, and most programs leave no process behind.
        remaining = descendants() if has_children() else []
        if not remaining:
            return True
        kill_all(remaining)
        time.sleep(0.005)
        reap_for(child)
    say("processes of the trial do not end, continuing without them")
    return False


class Ending(NamedTuple):
    """How the command ended."""

    code: int  # as in Popen: minus the signal
    cause: int  # 0: by itself; TIMED_OUT; STOPPED_EARLY; else the signal that the launcher received
    seconds: float


def supervise(
    child: Command,
    launch: Mapping[str, Any],
    signals: Signals,
    follower: Follower | None,
    outputs: Sequence[Tee],
) -> Ending:
    """Wait for the command; end it at its timeout, by a rule, or when the launcher is to stop."""
    start = time.monotonic()
    stop_at, cause = start + launch["timeout_seconds"], 0
    while True:
        reap_for(child)
        now = time.monotonic()
        if child.returncode is not None:
            return Ending(child.returncode, cause, now - start)
        is_early = follower is not None and not cause and follower.look()
        if not cause and (signals.stop or is_early or now >= stop_at):
            cause = signals.stop or (STOPPED_EARLY if is_early else TIMED_OUT)
            stop_at = now + launch["grace_seconds"]
            signal_group(child, signal.SIGTERM)
        elif now >= stop_at:
            signal_group(child, signal.SIGKILL)
            stop_at = now + PATIENCE
        pause = stop_at - now
        signals.wait(min(pause, LOOK) if follower and follower.looks and not cause else pause, outputs)
