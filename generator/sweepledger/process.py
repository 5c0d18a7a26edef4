"""Other programs: found, run within limits of time, output and memory, or run in the foreground.

Every program starts in its own session, and all processes in that session end with it.
Memory is the resident set of the program and its descendants, measured repeatedly: a limit on address space
below a gibibyte would kill every Go program, however little it uses.
"""

import contextlib
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Protocol, Self

from sweepledger import process_tree
from sweepledger.errors import ToolError

CHUNK_BYTES = 1 << 16
STDERR_BYTES = 1 << 16
"""Standard error that is kept: its end, where the cause is."""
POLL_SECONDS = 0.01
POLL_SECONDS_WITHOUT_MEMORY = 0.2
POLL_SECONDS_WITHOUT_PROC = 0.2
"""Longer, because each measurement starts `ps`."""
FOREGROUND_EXIT_SECONDS = 5.0
"""Time beyond the program's own grace period, in which the launcher ends its processes and writes its record."""
CREDENTIALS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/@\s]+@", re.IGNORECASE)


class ByteSource(Protocol):
    """A source of bytes: an open file or the output of a program."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; short only at the end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use."""

    seconds: float
    output: int
    """Bytes on standard output. Standard error may have as many, and always `STDERR_BYTES`."""
    memory: int | None = None
    """Bytes; None: no limit."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The exit code and output of a program."""

    code: int
    stdout: bytes
    stderr: bytes
    """Its last `STDERR_BYTES`."""


class LimitExceededError(Exception):
    """A program exceeded a limit and was killed; the text names the limit."""


def find_program(name: str) -> str | None:
    """Return the path of a program on PATH, else next to this Python; None if there is none."""
    beside = Path(sys.executable).parent / name
    return shutil.which(name) or (str(beside) if beside.is_file() else None)


def chosen_program(variable: str, *, hint: str) -> tuple[str, ...] | None:
    """Return the command that an environment variable contains; None if it is not set.

    Raises ToolError if the variable contains no command, or its program does not exist.
    """
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ToolError(f"${variable} must be a command, got {text!r}: {error}", hint=hint) from error
    if not words:
        raise ToolError(f"${variable} must be a command, got {text!r}", hint=hint)
    if shutil.which(words[0]) is None:
        raise ToolError(f"${variable} names {words[0]!r}, which is not a program", hint=hint)
    return words


def run(
    argv: Sequence[str], limits: Limits, *, env: Mapping[str, str], cwd: Path | None = None
) -> ProcessResult:
    """Run a program to its end. Raises LimitExceededError, and OSError if it cannot be started."""
    with ProcessStream(argv, limits, env=env, cwd=cwd) as stream:
        stdout = stream.read(limits.output + 1)
        code, stderr = stream.wait()
        return ProcessResult(code, stdout, stderr)


class ProcessStream:
    """A running program as a source of bytes. Closing it kills the program and its process group."""

    def __init__(
        self,
        argv: Sequence[str],
        limits: Limits,
        *,
        env: Mapping[str, str],
        stdin: bytes = b"",
        cwd: Path | None = None,
    ) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._measure_at = 0.0
        self._process = _start(
            argv,
            cwd=cwd,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            bufsize=0,
        )
        self._stdin = memoryview(stdin)
        self._stdout, self._stderr = bytearray(), bytearray()
        self._stdout_bytes = self._stderr_bytes = 0
        # One loop for all pipes, since a program may fill one while it waits for another.
        self._selector = selectors.DefaultSelector()
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
            is_input = pipe is self._process.stdin
            self._selector.register(pipe, selectors.EVENT_WRITE if is_input else selectors.EVENT_READ, pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process_tree.kill_group(self._process.pid)  # also after a normal end: nothing limits what is left
        self._process.wait()
        self._selector.close()
        for pipe in self._pipes():
            pipe.close()

    @property
    def is_over(self) -> bool:
        """Whether all of standard output was read."""
        return not self._stdout and not self._is_open(self._process.stdout)

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes of standard output; short only at its end. Raises LimitExceededError."""
        while len(self._stdout) < size and self._is_open(self._process.stdout):
            self._step()
        content = bytes(self._stdout[:size])
        del self._stdout[:size]
        return content

    def wait(self) -> tuple[int, bytes]:
        """Wait for the end; return the exit code and the end of standard error. Raises LimitExceededError."""
        while self._is_open(self._process.stderr):
            self._step()
        while self._process.poll() is None:  # it closed its output before it ended
            self._check_limits()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._poll_seconds())
        return self._process.returncode, bytes(self._stderr[-STDERR_BYTES:])

    def _step(self) -> None:
        """Wait a moment for the pipes, serve those that are ready, and check the limits."""
        has_ended = self._process.poll() is not None
        if has_ended:
            process_tree.kill_group(self._process.pid)
        events = self._selector.select(0 if has_ended else self._poll_seconds())
        for key, _ in events:
            self._serve(key.data)
        if has_ended and not events:
            # A child that left the process group holds a pipe open, perhaps for as long as it lives.
            for pipe in self._pipes():
                self._close(pipe)
        self._check_limits()

    def _serve(self, pipe: IO[bytes]) -> None:
        if pipe is self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._stdin = self._stdin[os.write(pipe.fileno(), self._stdin[:CHUNK_BYTES]) :]
                if self._stdin:
                    return
            self._close(pipe)
            return
        content = os.read(pipe.fileno(), CHUNK_BYTES)
        if not content:
            self._close(pipe)
        elif pipe is self._process.stdout:
            self._stdout += content
            self._stdout_bytes += len(content)
        else:
            self._stderr += content
            self._stderr_bytes += len(content)
            if len(self._stderr) > 2 * STDERR_BYTES:
                del self._stderr[:-STDERR_BYTES]

    def _check_limits(self) -> None:
        limits, now = self._limits, time.monotonic()
        if now > self._deadline:
            raise LimitExceededError(f"was stopped after {limits.seconds:g} s")
        if self._stdout_bytes > limits.output or self._stderr_bytes > max(limits.output, STDERR_BYTES):
            raise LimitExceededError(f"was stopped because it printed more than {_size_text(limits.output)}")
        if limits.memory is not None and now >= self._measure_at:
            self._measure_at = now + self._poll_seconds()
            if _memory_bytes(self._process.pid) > limits.memory:
                raise LimitExceededError(
                    f"was stopped because it used more than {_size_text(limits.memory)} of memory"
                )

    def _poll_seconds(self) -> float:
        if self._limits.memory is None:
            seconds = POLL_SECONDS_WITHOUT_MEMORY
        else:
            seconds = POLL_SECONDS if process_tree.has_proc() else POLL_SECONDS_WITHOUT_PROC
        return max(0.0, min(seconds, self._deadline - time.monotonic()))

    def _pipes(self) -> tuple[IO[bytes], ...]:
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        return tuple(pipe for pipe in pipes if pipe is not None)

    def _is_open(self, pipe: IO[bytes] | None) -> bool:
        return pipe is not None and not pipe.closed

    def _close(self, pipe: IO[bytes]) -> None:
        if not pipe.closed:
            self._selector.unregister(pipe)
            pipe.close()


def _memory_bytes(pid: int) -> int:
    """Return the resident memory of a process and its descendants; 0 if it has ended."""
    if process_tree.has_proc():
        return sum(map(process_tree.resident_bytes, (pid, *process_tree.descendants(pid))))
    listing = subprocess.run(["ps", "-A", "-o", "pgid=,rss="], capture_output=True, text=True, check=False)
    rows = (line.split() for line in listing.stdout.splitlines())
    return sum(int(kibibytes) for group, kibibytes in rows if group == str(pid)) * 1024


def _size_text(size: int) -> str:
    return f"{size >> 20} MiB" if size and size % (1 << 20) == 0 else f"{size} bytes"


def run_foreground(
    argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], grace: float, quiet: bool
) -> int:
    """Run a program to its end and return its exit code; `quiet` sends its standard output to standard error.

    On an interrupt it gets SIGTERM, has its grace period, and is killed with its process group.
    Raises ToolError if it cannot be started.
    """
    try:
        child = _start(argv, cwd=folder, env=environment, stdout=sys.stderr if quiet else None)
    except OSError as error:
        raise ToolError(f"{argv[0]} cannot be run: {(error.strerror or str(error)).lower()}") from error
    try:
        return child.wait()
    except BaseException:
        child.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace + FOREGROUND_EXIT_SECONDS)
        process_tree.kill_group(child.pid)
        child.wait()
        raise


def _start(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own.

    An interrupt waits until the program has started, and then ends it. An interrupt within `Popen` would leave
    behind an unknown program that no Ctrl-C reaches.
    """

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, start_new_session=True, **options)

    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        return start()
    interrupts: list[tuple[int, FrameType | None]] = []
    child = None
    signal.signal(signal.SIGINT, lambda number, frame: interrupts.append((number, frame)))
    try:
        child = start()
        return child
    finally:
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            try:
                handler(*interrupts[0])
            except BaseException:
                if child is not None:
                    with child:
                        process_tree.kill_group(child.pid)
                raise


def redact(text: str) -> str:
    """Replace user and password in every URL of a text with `***`."""
    return CREDENTIALS.sub(r"\g<scheme>***@", text)
