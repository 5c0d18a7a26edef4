"""A server that forks the supervisors of pods, and their launchers: starting Python anew takes longer than both.

It has imported what they import, and compiled each launcher once. A fork runs the same launcher as a new process
would, with the same arguments, environment and descriptors. Only Linux has it; elsewhere, and for a launcher that
needs another interpreter, processes are started as usual.

The definitions of a launcher take about 5 ms of CPU. The server executes them once, and forks only call `main`, if the
launcher is byte for byte one of the package: no other is executed in the server.
"""

# pathlib would add to the time that the server takes to start:
# ruff: noqa: PTH110, PTH118, PTH120, PTH123

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from types import CodeType, ModuleType
from typing import IO

from sweepledger.engine.local import pod_supervisor

PRELOADED = (
    *(
        "bisect",
        "contextlib",
        "errno",
        "fcntl",
        "hashlib",
        "itertools",
        "json",
        "math",
        "re",
        "select",
        "shutil",
    ),
    *("signal", "stat", "subprocess", "tempfile", "threading", "time", "typing"),
)
"""Modules of the standard library that launchers import."""
ENTRY = b'\n\nif __name__ == "__main__":\n    sys.exit(main())\n'
"""The end of a launcher; everything before it only defines, and depends on nothing that forks change."""
LARGEST_REQUEST = 1 << 16
LARGEST_LAUNCHER = 1 << 20
UID_LENGTH = 36
"""Length of a pod's UID, for which the server's environment has room."""

_Loaded = tuple[ModuleType, CodeType]
"""The module of a launcher, and the code that each fork executes in it."""


class SupervisorProcess:
    """A supervisor that the server has forked: its pipes, and what `subprocess.Popen` offers of a process."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended. Raises TimeoutExpired. Its exit code is unknown, and its report says more."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self.stdout], [], [], left)[0]:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0)
            if not self.stdout.read(LARGEST_REQUEST):
                return 0

    def kill(self) -> None:
        """Kill it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def release(self) -> None:
        """Close its pipes."""
        self.stdin.close()
        self.stdout.close()


class PodServer:
    """The engine's side of the server, which ends when the engine ends."""

    def __init__(self, script: Sequence[str], variable: str, launchers: Sequence[str] = ()) -> None:
        """Start the server: `script` calls `serve`, and `variable` holds a pod's UID in the environment.

        `launchers` are the paths of those that the server may execute itself.
        """
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [*script, str(other.fileno()), variable, *launchers],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # Room for a UID, which each fork writes in its place: other engines find processes by it.
                env={variable: "-" * UID_LENGTH},
                start_new_session=True,
                pass_fds=(other.fileno(),),
            )
        self._control = own

    def fork(self, uid: str, launcher: str | None) -> SupervisorProcess:
        """Start the supervisor of a pod, with a launcher to fork if there is one. Raises OSError."""
        stdin, to = os.pipe()
        out, stdout = os.pipe()
        request = json.dumps({"uid": uid, "launcher": launcher}).encode()
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
    """Return whether this system has what the server needs."""
    return sys.platform == "linux"


def forked_launcher(argv: Sequence[str], path: str) -> str | None:
    """Return the launcher of a command that this interpreter would run as a script; None for any other command."""
    if len(argv) != 2 or "/" in argv[0]:  # noqa: PLR2004 - interpreter and script
        return None
    first = os.path.join(path.split(os.pathsep, maxsplit=1)[0], argv[0])
    is_own = os.path.dirname(first) == os.path.dirname(sys.executable) and os.path.exists(first)
    return argv[1] if is_own and os.path.realpath(first) == os.path.realpath(sys.executable) else None


def serve(control: socket.socket, variable: str, paths: Sequence[str] = ()) -> None:
    """Fork a supervisor for each request, until the engine closes the connection."""
    for name in PRELOADED:
        __import__(name)
    # Read before any trial runs: one that edits these files does not get its own code into the server.
    trusted = frozenset(filter(None, map(_read, paths)))
    launchers: dict[bytes, _Loaded] = {}
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 2)
        if not message:
            break
        _reap(os.WNOHANG)
        request = json.loads(message)
        launcher = None if request["launcher"] is None else _runner(request["launcher"], launchers, trusted)
        pid = os.fork()
        if pid == 0:
            control.close()
            os._exit(_run_pod(request, descriptors, launcher, variable))
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


def _read(path: str) -> bytes:
    """Return the text of a launcher; nothing if it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(LARGEST_LAUNCHER)
    return b""


def _runner(
    path: str, launchers: dict[bytes, _Loaded], trusted: Collection[bytes]
) -> Callable[[], int] | None:
    """Return a function that runs a launcher as a script; None if only a new process can say what is wrong with it."""
    if not (text := _read(path)):
        return None
    if text not in launchers:
        try:
            launchers[text] = _load(text, path, is_trusted=text in trusted)
        except (SyntaxError, ValueError):
            return None
        gc.freeze()
    return lambda: _run_script(path, *launchers[text])


def _load(text: bytes, path: str, *, is_trusted: bool) -> _Loaded:
    """Compile a launcher, and execute its definitions if it is trusted. Raises SyntaxError and ValueError."""
    module = ModuleType("__main__")
    if not is_trusted or not text.endswith(ENTRY):
        return module, compile(text, path, "exec")
    definitions = text.removesuffix(ENTRY)
    exec(compile(definitions, path, "exec"), module.__dict__)  # noqa: S102 - a launcher of the package
    return module, compile(b"\n" * definitions.count(b"\n") + ENTRY, path, "exec")  # with its line numbers


def _run_pod(
    request: dict[str, str], descriptors: Sequence[int], launcher: Callable[[], int] | None, variable: str
) -> int:
    """Be the supervisor of a pod, and return its exit code."""
    try:
        os.setsid()
        _write_uid(variable, request["uid"])
        os.dup2(descriptors[0], 0)
        os.dup2(descriptors[1], 1)
        for descriptor in descriptors:
            os.close(descriptor)
        return pod_supervisor.main(launcher)
    except BaseException:  # noqa: BLE001 - the caller's stack is the server's
        return 1


def _write_uid(variable: str, uid: str) -> None:
    """Replace the UID in the environment that the system shows of this process."""
    environment = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    old, new = (f"{variable}={value}".encode() for value in ("-" * UID_LENGTH, uid))
    place = 0
    while address := environment[place]:
        if ctypes.string_at(address) == old and len(old) == len(new):
            ctypes.memmove(address, new, len(new))
        place += 1


def _run_script(path: str, module: ModuleType, code: CodeType) -> int:
    """Run a script as Python does, and return its exit code."""
    module.__file__ = path
    sys.modules["__main__"] = module
    sys.argv[:] = [path]
    sys.path[:0] = [os.path.dirname(path)]
    try:
        exec(code, module.__dict__)  # noqa: S102 - the launcher, which a new process would run
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as at the end of any script
        traceback.print_exc()
        return 1
    return 0
