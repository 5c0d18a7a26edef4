"""A fork of a supervisor that runs the launcher of one pod after the other.

A fork for each pod would copy every page of memory that the launcher writes to: a third of a short trial's cost.
Nothing of a pod remains for the next one: its files are closed; signals, environment and folder are those of
a new process, and the names of the launcher have their first values again. What cannot be undone ends the worker:
a thread, a process, a mount, or the forks of a pod of several rows. Then the next pod gets another worker.
"""

# pathlib would add to the time that every pod takes to start:
# ruff: noqa: PTH102, PTH106, PTH108, PTH120, PTH208

import contextlib
import fcntl
import gc
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from types import CodeType, ModuleType
from typing import IO, Any, NamedTuple

from sweepledger import process_tree

FAILED_CODE = 1
KEPT = (3, 4)
"""The descriptors of a worker: where it reads its instructions, and where it writes exit codes."""
PART = "launch_"
"""How the modules of a launcher begin, each a file beside it."""
OVERLAY = "SWEEP_OVERLAY"
"""Set by an engine that allows an overlay; for the launcher, the folder of the trial in it."""
UPPER = "upper"
"""Folder in the scratch of a pod with all that its trial has written, if the trial sees an overlay there."""
SPARE = "spare"
"""Beside it: what the system needs for the overlay."""
WORK = "run/work"
"""In the folder of a trial: where its own copy of the code is, and its program starts."""
FOLDERS = ("", "/run", f"/{WORK}", "/home", "/tmp")  # noqa: S108 - below a trial's folder
HANDLED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)


class Launcher(NamedTuple):
    """A launcher that was compiled, and whose definitions may have been executed."""

    path: str
    module: ModuleType
    code: CodeType
    """What is left to execute in the module."""
    names: Mapping[str, Any] | None
    """The names of the module before the first run, of a launcher that one process can run repeatedly; else None."""

    @property
    def is_repeatable(self) -> bool:
        """Whether one process can run it repeatedly."""
        return self.names is not None

    def run(self) -> int:
        """Run it as Python runs a script, and return its exit code."""
        if not self.is_repeatable:  # its parts are those beside it
            for name in [name for name in sys.modules if name.startswith(PART)]:
                del sys.modules[name]
        self.module.__file__ = self.path
        sys.modules["__main__"] = self.module
        sys.argv[:] = [self.path]
        sys.path[:0] = [os.path.dirname(self.path)]
        try:
            exec(self.code, self.module.__dict__)  # noqa: S102 - the launcher, which a new process would run
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:  # noqa: BLE001 - as at the end of any script
            traceback.print_exc()
            return FAILED_CODE
        finally:
            sys.stderr.flush()
        return 0

    def forget_run(self) -> bool:
        """Undo the effects of a run on this process; return whether all were undone."""
        if self.names is None or threading.active_count() > 1 or "SWEEP_ROWS" in os.environ:
            return False
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
            return False
        self.module.__dict__.clear()
        self.module.__dict__.update(self.names)
        gc.collect()  # files of the run are closed now rather than later, when their numbers mean others
        gc.freeze()  # what the first run has loaded is not looked at again
        return True


class LauncherWorker:
    """The supervisor's side of a worker."""

    def __init__(self, pid: int, control: IO[bytes], reports: int) -> None:
        self.pid = pid
        self.control = control
        self._reports = reports
        self._can_report = True
        self.is_idle = True
        """Whether it waits for a pod; one that does not after its pod is of no use any more."""

    @classmethod
    def fork(
        cls, find: Callable[[str], Launcher | None], begin: Callable[[str], None], end: Callable[[], None]
    ) -> "LauncherWorker":
        """Start a worker. Raises OSError.

        `find` returns the launcher of a path; `begin` is called with the UID of each pod, and `end` after it.
        """
        own = os.getpid()
        stdin, control = os.pipe()
        reports, stdout = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = FAILED_CODE
            try:
                _become_worker(own, stdin, stdout)
                code = _work(find, begin, end)
            finally:
                os._exit(code)
        os.close(stdin)
        os.close(stdout)
        os.set_blocking(reports, False)
        return cls(pid, os.fdopen(control, "wb", 0), reports)

    def start(self, instructions: Mapping[str, Any]) -> int:
        """Start the launcher of a pod, and return the process that runs it. Raises OSError."""
        self.is_idle = False
        rest = memoryview(json.dumps(instructions).encode() + b"\n")
        while rest:
            rest = rest[self.control.write(rest) or 0 :]
        return self.pid

    @property
    def readable(self) -> tuple[int, ...]:
        """The descriptors that become readable when a launcher has ended; none if the worker ends with its launcher."""
        return (self._reports,) if self._can_report else ()

    def read_code(self) -> int | None:
        """Return the exit code of the launcher if it has ended and the worker goes on; else None."""
        with contextlib.suppress(BlockingIOError):
            if text := os.read(self._reports, 64):
                self.is_idle = True
                return int(text)
            self._can_report = False
        return None

    def release(self) -> None:
        """End a worker without a pod, and wait for it."""
        self.control.close()
        os.close(self._reports)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class _Overlays:
    """The overlays of a worker, in a namespace that ends with the worker and its trial, and that nobody else sees."""

    def __init__(self) -> None:
        self._can_mount: bool | None = None
        """None: nobody has tried."""
        self._mounts: bytes | None = None
        """All mounts of the namespace between two pods; None: the worker has none of its own."""

    def mount(self, variables: MutableMapping[str, str]) -> str | None:
        """Mount an overlay on the scratch folder of a pod; return its path, or None if the launcher must copy the code.

        The trial's folder is new except for `run/work`, where the stored code is the layer below the trial's files.
        """
        code, scratch = os.path.realpath(variables["SWEEP_CODE"]), variables["SWEEP_SCRATCH"]
        lower, name = os.path.split(code)
        upper, spare, trial = f"{scratch}/{UPPER}", f"{scratch}/{SPARE}", f"trial-{os.urandom(8).hex()}"
        if self._can_mount is None:
            self._can_mount = process_tree.own_mounts()
            self._mounts = process_tree.mounts() if self._can_mount else None
        # Options have no way to say these; and a trial may write to each file that the code has.
        if not self._can_mount or set(",:\\") & set(lower + scratch) or not os.access(code, os.W_OK):
            return None
        try:
            for folder in (upper, spare, *(f"{upper}/{trial}{each}" for each in FOLDERS)):
                os.mkdir(folder, 0o700)
            os.setxattr(f"{upper}/{trial}/{WORK}", "trusted.overlay.redirect", os.fsencode(f"/{name}"))
            # With redirect_dir, a trial can rename the code's folders.
            options = (
                f"lowerdir={lower},upperdir={upper},workdir={spare},redirect_dir=on,index=off,metacopy=off"
            )
            process_tree.mount_overlay(scratch, options)
        except OSError:
            self._can_mount = False
            self._empty(scratch)
            return None
        variables[OVERLAY] = f"{scratch}/{trial}"
        return scratch

    def end(self, scratch: str | None) -> bool:
        """Unmount the overlay of a pod, if any, and delete the trial's files; return whether nothing else remains.

        Otherwise a trial has mounted or unmounted something, which only the next trial would see; and the files
        in the scratch folder may belong to somebody else.
        """
        if scratch:
            process_tree.unmount(scratch)
        if self._mounts is not None and not self._mounts == process_tree.mounts() != b"":
            return False
        if scratch:
            self._empty(scratch)
        return True

    def _empty(self, scratch: str) -> None:
        with contextlib.suppress(OSError):  # most trials leave no files, and to look for them takes longer
            (trial,) = os.listdir(f"{scratch}/{UPPER}")
            own = f"{scratch}/{UPPER}/{trial}"
            os.unlink(f"{own}/trial.json")
            for folder in (*(f"{own}{each}" for each in reversed(FOLDERS)), f"{scratch}/{UPPER}"):
                os.rmdir(folder)
            os.rmdir(f"{scratch}/{SPARE}/work")
            os.rmdir(f"{scratch}/{SPARE}")
        for name in os.listdir(scratch):
            shutil.rmtree(f"{scratch}/{name}", ignore_errors=True)


def _become_worker(parent: int, stdin: int, stdout: int) -> None:
    """Give this fork the descriptors and signals of a new process, and its own session."""
    process_tree.end_with(parent)
    os.setsid()
    signal.set_wakeup_fd(-1)
    _reset_signals()
    # First to numbers that are not replaced, since each may be one of them.
    copies = [fcntl.fcntl(number, fcntl.F_DUPFD, KEPT[-1] + 1) for number in (stdin, stdout)]
    for copy, number in zip(copies, KEPT, strict=True):
        os.dup2(copy, number, inheritable=False)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    _close_others()


def _reset_signals() -> None:
    for number in HANDLED:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _close_others() -> None:
    os.closerange(KEPT[-1] + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)


def _set_environment(variables: Mapping[str, str]) -> None:
    """Set the environment variables of this process, most of which equal those of the previous pod."""
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    for name, text in variables.items():
        if os.environ.get(name) != text:
            os.environ[name] = text


def _work(
    find: Callable[[str], Launcher | None], begin: Callable[[str], None], end: Callable[[], None]
) -> int:
    """Run launchers until the supervisor closes the pipe, or one cannot be forgotten; return its exit code."""
    all_cpus, folders, overlays = os.sched_getaffinity(0), list(sys.path), _Overlays()
    with open(KEPT[0], "rb", closefd=False) as control:
        for line in control:
            instructions = json.loads(line)
            begin(instructions["uid"])
            launcher = find(instructions["launcher"])
            if launcher is None:
                return FAILED_CODE
            os.sched_setaffinity(0, instructions["cpus"] or all_cpus)
            stderr = os.open(instructions["stderr"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            os.dup2(stderr, 2)
            os.close(stderr)
            os.chdir(instructions["cwd"])
            _set_environment(instructions["env"])
            is_allowed = os.environ.pop(OVERLAY, "") and launcher.is_repeatable
            overlay = overlays.mount(os.environ) if is_allowed else None
            if not launcher.is_repeatable:
                os.closerange(KEPT[0], KEPT[-1] + 1)
            code = launcher.run() & 0xFF
            if not overlays.end(overlay) or not launcher.forget_run():
                return code
            signal.set_wakeup_fd(-1)
            _reset_signals()
            _close_others()
            os.chdir("/")
            sys.path[:] = folders
            end()
            os.write(KEPT[1], f"{code}\n".encode())
    return 0
