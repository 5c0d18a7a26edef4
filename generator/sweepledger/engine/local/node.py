"""Runs pods as processes, each below a warden of its own, and tells how they ended."""

import contextlib
import ctypes
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from generator.engine.local import leftovers, warden

CLOSE_SECONDS = 15.0
"""More than a warden's own patience."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One pod, ready to start: every path is one of this machine."""

    uid: str
    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    stderr: Path
    cpus: tuple[int, ...]
    """CPUs it may run on; empty for all."""
    memory: int | None
    scratch: tuple[tuple[Path, int], ...]
    """Folders that may hold so many bytes."""
    grace: float

    def orders(self) -> bytes:
        """Write the line that a warden reads."""
        return (
            json.dumps(
                {
                    "argv": self.argv,
                    "cwd": str(self.cwd),
                    "env": dict(self.environment),
                    "stderr": str(self.stderr),
                    "cpus": self.cpus,
                    "memory": self.memory,
                    "scratch": [(str(folder), limit) for folder, limit in self.scratch],
                    "grace": self.grace,
                }
            ).encode()
            + b"\n"
        )


@dataclass(frozen=True, slots=True)
class PodExit:
    """How a pod ended."""

    uid: str
    code: int
    reason: str | None
    """None when its launcher ended by itself; else stopped, oom, scratch-full, killed, start-failed."""
    message: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this system lets a node do; what it does not is to be said, not hidden."""

    ends_descendants: bool
    """Children in sessions of their own end with their trial."""
    finds_leftovers: bool
    limits_memory: bool
    pins_cpus: bool


def capabilities() -> Capabilities:
    """Find out what this system lets a node do."""
    proc = leftovers.can_find()
    return Capabilities(
        ends_descendants=proc and hasattr(ctypes.CDLL(None), "prctl"),
        finds_leftovers=proc,
        limits_memory=proc,
        pins_cpus=hasattr(os, "sched_setaffinity"),
    )


class Node:
    """The pods that run here now."""

    def __init__(self) -> None:
        self._wardens: dict[str, subprocess.Popen[bytes]] = {}
        self._refused: list[PodExit] = []
        self._selector = selectors.DefaultSelector()

    def start(self, launch: Launch) -> None:
        """Start a pod; that it could not be started is told as its end."""
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", warden.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={leftovers.MARK: launch.uid},
                # A Ctrl-C in the terminal is the engine's to handle.
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._refused.append(PodExit(launch.uid, warden.START_FAILED, "start-failed", str(error)))
            return
        self._wardens[launch.uid] = process
        self._selector.register(_pipe(process.stdout), selectors.EVENT_READ)
        self._tell(launch.uid, launch.orders())

    def stop(self, uid: str) -> None:
        """Ask a pod to end: SIGTERM, its grace, SIGKILL."""
        self._tell(uid, b"stop\n")

    def _tell(self, uid: str, text: bytes) -> None:
        process = self._wardens.get(uid)
        if process is None or process.stdin is None:
            return
        pipe = process.stdin
        with contextlib.suppress(BrokenPipeError):  # it ended meanwhile, and its report says how
            rest = memoryview(text)
            while rest:
                rest = rest[pipe.write(rest) or 0 :]

    def wait(self, seconds: float) -> None:
        """Wait until a pod ends, at most so long."""
        if self._refused:
            return
        if not self._wardens:
            time.sleep(seconds)
            return
        self._selector.select(seconds)

    def ended(self) -> tuple[PodExit, ...]:
        """Take the pods that ended since the last call."""
        exits, self._refused = self._refused, []
        ready = {key.fd for key, _ in self._selector.select(0)} if self._wardens else set()
        for uid, process in list(self._wardens.items()):
            if _pipe(process.stdout) in ready:
                exits.append(self._end(uid, process))
        return tuple(exits)

    def _end(self, uid: str, process: subprocess.Popen[bytes]) -> PodExit:
        self._selector.unregister(_pipe(process.stdout))
        # A warden reports once all is over, then exits: neither the reading nor the waiting takes long.
        text = process.stdout.read() if process.stdout else b""
        with contextlib.suppress(BrokenPipeError):
            process.communicate()
        del self._wardens[uid]
        try:
            report = json.loads(text)
            found = PodExit(uid, report["code"], report["reason"], report["message"])
            lost = report["survivors"] > 0
        except (ValueError, KeyError, TypeError):
            found, lost = PodExit(uid, warden.KILLED, "killed", "its warden was killed"), True
        if lost:
            leftovers.end((uid,))
        return found

    def close(self) -> None:
        """Kill every pod at once and wait until nothing is left of it."""
        for process in self._wardens.values():
            if process.stdin:
                process.stdin.close()
        until = time.monotonic() + CLOSE_SECONDS
        for process in self._wardens.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout:
                process.stdout.close()
        leftovers.end(tuple(self._wardens))
        self._wardens.clear()
        self._selector.close()


def _pipe(stream: IO[bytes] | None) -> int:
    assert stream is not None, "wardens are started with pipes"
    return stream.fileno()
