"""A server that forks supervisors, which fork launchers: both forks are faster than a new Python process.

The server has imported their modules, and compiled each launcher once. A supervisor runs one pod after the other, with
a fork that runs their launchers (`launcher_worker`), as a new process would, with the same arguments and environment.
It needs Linux; elsewhere, and for a launcher that needs another interpreter, processes are started as usual.

The definitions of a launcher take about 5 ms of CPU, and the patterns that it compiles at their first use 2 ms. The
server does both once, and forks only call `main`, if the launcher and the parts beside it are byte for byte those of
the package: the server executes no other launcher.
"""

# pathlib would add to the time that the server takes to start:
# ruff: noqa: PTH110, PTH118, PTH119, PTH120, PTH123, PTH208

import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import IO, Any

from sweepledger import process_tree
from sweepledger.engine.local import pod_supervisor
from sweepledger.engine.local.launcher_worker import PART, Launcher, LauncherWorker

PRELOADED = (
    *("bisect", "contextlib", "errno", "fcntl", "gc", "itertools", "json", "math", "re", "select", "shutil"),
    *("signal", "stat", "subprocess", "threading", "time", "typing"),
)
"""Modules of the standard library that launchers import."""
ENTRY = b'\n\nif __name__ == "__main__":\n    sys.exit(main())\n'
"""The end of a launcher; everything before it only defines, and depends on nothing that forks change."""
LARGEST_REQUEST = 1 << 16
LARGEST_LAUNCHER = 1 << 20
UID_LENGTH = 36
"""Length of a pod's UID, for which the server's environment has room."""
NO_UID = "-" * UID_LENGTH
"""What a supervisor without a pod has in its place."""


class SupervisorProcess:
    """A supervisor, which runs one pod after the other, and its pipes."""

    def __init__(
        self, pid: int, stdin: IO[bytes], stdout: IO[bytes], child: "subprocess.Popen[bytes] | None" = None
    ) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self._child = child
        """Its process if this one has started it; None: the server has forked it, and collects it."""

    @classmethod
    def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> "SupervisorProcess":
        """Start one as a new process. Raises OSError."""
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
            # Only the engine handles Ctrl-C in the terminal.
            start_new_session=True,
            bufsize=0,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        return cls(child.pid, child.stdin, child.stdout, child)

    def send(self, text: bytes) -> None:
        """Send it a line. If it has ended, its report contains the reason."""
        with contextlib.suppress(BrokenPipeError):
            rest = memoryview(text)
            while rest:
                rest = rest[self.stdin.write(rest) or 0 :]

    def end(self, deadline: float) -> None:
        """Wait until it has ended, after its input was closed; kill it after a time."""
        while select.select([self.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not self.stdout.read(LARGEST_REQUEST):
                break
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.release()

    def read_report(self) -> bytes:
        """Return the report of its pod, one line; an incomplete line if the supervisor has ended."""
        text = b""
        while not text.endswith(b"\n") and (part := self.stdout.read(LARGEST_REQUEST)):
            text += part
        return text

    def is_waiting(self) -> bool:
        """Return whether it can run another pod: it has written nothing since its report, and has not ended."""
        return not select.select([self.stdout], [], [], 0)[0]

    def release(self) -> None:
        """Close its pipes; a supervisor that waits for a pod ends."""
        self.stdin.close()
        self.stdout.close()
        if self._child is not None:
            self._child.wait()


class PodServer:
    """The engine's side of the server, which ends when the engine ends."""

    def __init__(self, script: Sequence[str], variable: str, launcher: str) -> None:
        """Start the server: `script` calls `serve`, and `variable` holds a pod's UID in the environment.

        The server may execute the definitions of `launcher` itself.
        """
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [*script, str(other.fileno()), variable, launcher],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # Room for the UID of a pod, which its supervisor writes there: other engines find processes by it.
                env={variable: NO_UID},
                start_new_session=True,
                pass_fds=(other.fileno(),),
            )
        self._control = own

    def fork(self, launcher: str | None) -> SupervisorProcess:
        """Start a supervisor, which shares the launcher with others if there is one. Raises OSError."""
        stdin, to = os.pipe()
        out, stdout = os.pipe()
        request = json.dumps({"launcher": launcher}).encode()
        try:
            socket.send_fds(self._control, [request], [stdin, stdout])
            reply = self._control.recv(LARGEST_REQUEST)
            if not reply:
                raise ConnectionResetError("the server of pods has ended")
        except OSError:
            os.close(to)
            os.close(out)
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        return SupervisorProcess(int(reply), os.fdopen(to, "wb", 0), os.fdopen(out, "rb", 0))

    def close(self) -> None:
        """End the server; supervisors that still run are not affected."""
        self._control.close()
        self._process.wait()


def can_fork() -> bool:
    """Return whether this system supports the server."""
    return sys.platform == "linux"


def forked_launcher(argv: Sequence[str]) -> str | None:
    """Return the launcher of a command that this interpreter would run as a script; None for any other command."""
    if len(argv) != 2 or "/" in argv[0]:  # noqa: PLR2004 - interpreter and script
        return None
    own = os.path.join(os.path.dirname(sys.executable), argv[0])
    return argv[1] if _is_this_interpreter(own) else None


@functools.lru_cache(maxsize=8)
def _is_this_interpreter(path: str) -> bool:
    """Return whether a path leads, perhaps by another name, to the interpreter of this program."""
    return os.path.exists(path) and os.path.realpath(path) == os.path.realpath(sys.executable)


def serve(control: socket.socket, variable: str, path: str) -> None:
    """Fork a supervisor at each request, until the engine closes the connection."""
    for name in PRELOADED:
        __import__(name)
    # Read before any trial runs: one that edits this file does not get its own code into the server.
    trusted = _trusted(path)
    launchers: dict[Texts, Launcher] = {}
    gc.freeze()
    find = functools.partial(_find, launchers=launchers, trusted=trusted)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 2)
        if not message:
            break
        _reap(os.WNOHANG)
        find(json.loads(message)["launcher"])  # here, so that all supervisors share it
        pid = os.fork()
        if pid == 0:
            control.close()
            os._exit(_supervise(descriptors, find, variable))
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode())
    control.close()
    _reap(0)


def _reap(options: int) -> None:
    """Collect ended supervisors; with no options, all of them. Their resource usage counts as the engine's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


Texts = tuple[tuple[str, bytes], ...]
"""Name and text of a launcher, and of each of its parts."""


def _programs(path: str) -> list[str]:
    """Return the paths of a launcher and of its parts, which are in the same folder. Raises OSError."""
    folder = os.path.dirname(path)
    parts = sorted(name for name in os.listdir(folder) if name.startswith(PART) and name.endswith(".py"))
    return [path, *(os.path.join(folder, name) for name in parts)]


def _read(path: str) -> Texts:
    """Return a launcher and its parts; nothing if a file cannot be read."""
    texts = []
    with contextlib.suppress(OSError):
        for program in _programs(path):
            with open(program, "rb") as file:
                texts.append((os.path.basename(program), file.read(LARGEST_LAUNCHER)))
        return tuple(texts)
    return ()


def _state(path: str) -> tuple[int, ...]:
    """Return a value that differs after every change of a launcher or its parts; empty if a file is missing."""
    state: list[int] = []
    with contextlib.suppress(OSError):
        for found in map(os.stat, _programs(path)):
            state += found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        return tuple(state)
    return ()


def _find(
    path: str | None, launchers: dict[Texts, Launcher], trusted: dict[Texts, CodeType]
) -> Launcher | None:
    """Return a launcher that a fork can run; None if only a new process can report its fault."""
    if path is None or not (texts := _read(path)):
        return None
    if texts not in launchers:
        try:
            if texts in trusted:
                launchers[texts] = _executed(path, trusted[texts])
            else:
                code = compile(texts[0][1], path, "exec")
                launchers[texts] = Launcher(path, ModuleType("__main__"), code, None)
        except (OSError, SyntaxError, ValueError):
            return None
        gc.freeze()
    return launchers[texts]._replace(path=path)


def _trusted(path: str) -> dict[Texts, CodeType]:
    """Return the compiled launcher of the package by its texts, and import its parts; Python caches all of them."""
    with contextlib.suppress(OSError, SyntaxError, ValueError, ImportError), _own_path():
        texts, code = _read(path), SourceFileLoader("launch", path).get_code("launch")
        if code and texts and texts[0][1].endswith(ENTRY):
            sys.path.insert(0, os.path.dirname(path))
            for part, _ in texts[1:]:
                importlib.import_module(part.removesuffix(".py"))
            return {texts: code}
    return {}


@contextlib.contextmanager
def _own_path() -> Iterator[None]:
    """Restore `sys.path` after the block."""
    folders = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = folders


def _executed(path: str, code: CodeType) -> Launcher:
    """Execute the definitions of a launcher, and return it with the remaining code."""
    module = ModuleType("launch")
    module.__file__ = path
    with _own_path():
        exec(code, module.__dict__)  # noqa: S102 - a launcher of the package
    module.__dict__["warm_up"]()
    module.__name__ = "__main__"
    return Launcher("", module, compile(ENTRY, "launch", "exec"), dict(module.__dict__))


class _Workers:
    """The worker of a supervisor, with their shared state: launchers, and the address of a pod's UID."""

    def __init__(self, find: Callable[[str | None], Launcher | None], variable: str) -> None:
        self._find = find
        self._address = _uid_address(variable)
        self._current: dict[str, tuple[tuple[int, ...], Launcher | None]] = {}
        self._worker: LauncherWorker | None = None

    def find(self, path: str) -> Launcher | None:
        state = _state(path)
        if path not in self._current or self._current[path][0] != state:
            self._current[path] = state, self._find(path)
        return self._current[path][1]

    def begin(self, uid: str) -> None:
        _write_uid(self._address, uid)

    def end(self) -> None:
        _write_uid(self._address, NO_UID)

    def worker_for(self, instructions: dict[str, Any]) -> LauncherWorker | None:
        """Return the worker for a pod, whose UID the system now shows; None if no worker can run its launcher."""
        self.begin(instructions["uid"])
        path = instructions["launcher"]
        if path is None or self.find(path) is None:
            return None
        if self._worker is not None and not self._worker.is_idle:
            self._worker.release()
            self._worker = None
        if self._worker is None:
            self._worker = LauncherWorker.fork(self.find, self.begin, self.end)
        return self._worker

    def close(self) -> None:
        """Wait for a worker without a pod, so that its resource usage counts as the engine's."""
        if self._worker is not None and self._worker.is_idle:
            self._worker.release()


def _supervise(
    descriptors: Sequence[int], find: Callable[[str | None], Launcher | None], variable: str
) -> int:
    """Run as a supervisor, and return the exit code."""
    try:
        os.setsid()
        os.dup2(descriptors[0], 0)
        os.dup2(descriptors[1], 1)
        for descriptor in descriptors:
            os.close(descriptor)
        with closing(_Workers(find, variable)) as workers:
            return pod_supervisor.run_pods(workers.worker_for, workers.end)
    except BaseException:  # noqa: BLE001 - the caller's stack is the server's
        return 1


def _uid_address(variable: str) -> int | None:
    """Return the address of the UID in the environment that the system shows of this process; None if it is missing."""
    environment = ctypes.POINTER(ctypes.c_void_p).in_dll(process_tree.system_library(), "environ")
    wanted = f"{variable}={NO_UID}".encode()
    place = 0
    while address := environment[place]:
        if ctypes.string_at(address) == wanted:
            return int(address) + len(variable) + 1
        place += 1
    return None


def _write_uid(address: int | None, uid: str) -> None:
    """Replace the UID in the environment that the system shows of this process and of its forks."""
    if address is not None and len(uid) == UID_LENGTH:
        ctypes.memmove(address, uid.encode(), UID_LENGTH)
