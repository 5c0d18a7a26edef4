"""A program whose output is read as it comes: bounded in bytes and time, ended with all that it started."""

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

PORTION = 1 << 16
KEPT_WORDS = 1 << 16
"""Bytes of standard error: the cause stands at the end."""
LAST_SECONDS = 5.0
"""For the words of a program that has closed its output."""


class ExceededError(Exception):
    """The program went beyond its bounds; the text says beyond which."""


class Running:
    """A started program as a source of bytes. Leaving it ends the program and its children."""

    def __init__(
        self, argv: Sequence[str], *, given: bytes, seconds: float, most: int, env: Mapping[str, str]
    ) -> None:
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._most = self._left = most
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
        assert self._process.stdin, "asked for above"
        assert self._process.stdout, "asked for above"
        assert self._process.stderr, "asked for above"
        self._out = self._process.stdout
        self.is_over = False
        """Whether all of standard output was read."""
        self._words = bytearray()
        # Threads, since a program may fill one pipe while nobody empties another.
        threading.Thread(target=_feed, args=(self._process.stdin, given), daemon=True).start()
        self._listener = threading.Thread(
            target=_listen, args=(self._process.stderr, self._words), daemon=True
        )
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Also after a good end: what it left behind would be bounded by nobody.
        with suppress(ProcessLookupError, PermissionError):  # some systems refuse a group that has ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._out.close()

    def read(self, size: int) -> bytes:
        """Give so many bytes, fewer only at the end. Raises ExceededError."""
        found = bytearray()
        while len(found) < size and (portion := self._portion(min(size - len(found), PORTION))):
            found += portion
        return bytes(found)

    def ended(self) -> tuple[int, str]:
        """Wait for the end; give exit code and the end of standard error. Raises ExceededError."""
        try:
            code = self._process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise self._late() from error
        self._listener.join(LAST_SECONDS)
        return code, bytes(self._words[-KEPT_WORDS:]).decode(errors="replace")

    def _portion(self, size: int) -> bytes:
        # Not a blocking read: a child that left the group could hold the pipe open for ever.
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            if not selector.select(max(0.0, self._deadline - time.monotonic())):
                raise self._late()
        found = os.read(self._out.fileno(), size)
        self.is_over = not found
        self._left -= len(found)
        if self._left < 0:
            raise ExceededError(f"was stopped as it sent more than {self._most} bytes")
        return found

    def _late(self) -> ExceededError:
        return ExceededError(f"was stopped after {self._seconds:g} s")


def _feed(target: IO[bytes], given: bytes) -> None:
    with suppress(BrokenPipeError), target:
        target.write(given)


def _listen(source: IO[bytes], words: bytearray) -> None:
    """Keep the tail of what a program says, however much it says."""
    with source:
        while portion := os.read(source.fileno(), PORTION):
            words += portion
            if len(words) > 2 * KEPT_WORDS:
                del words[:-KEPT_WORDS]
