"""A moment after which nothing is started any more, and what runs is ended with everything it started."""

import math
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 20.0
"""Seconds between asking and killing: enough for a build to remove its temporary files."""


class DeadlinePassedError(Exception):
    """The time is over, and what ran was ended."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock; without one, never."""

    at: float = math.inf

    @classmethod
    def in_minutes(cls, minutes: float | None) -> "Deadline":
        """Give the moment that lies so far from now; none is for ever."""
        return cls() if minutes is None else cls(time.monotonic() + 60 * minutes)

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.at

    def run(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, shows: bool = False
    ) -> str:
        """Run a program and give what it prints, unless it shows that; `env` is added to ours.

        Raises DeadlinePassedError, and CalledProcessError where it fails.
        """
        if self.has_passed:
            raise DeadlinePassedError
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=None if shows else subprocess.PIPE,
            text=True,
            process_group=0,  # its children are ended with it; Ctrl-C reaches it through us
        )
        left = None if math.isinf(self.at) else max(0.0, self.at - time.monotonic())
        try:
            printed, _ = process.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            raise DeadlinePassedError from None
        finally:
            _end(process)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(argv), printed)
        return printed or ""


def heed_signals() -> None:
    """Take being asked to end, or hung up on, as Ctrl-C: what runs has its own group, and would go on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process that still runs, and its group: asked as by Ctrl-C, then killed."""
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
