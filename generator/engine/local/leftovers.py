"""Processes of pods whose warden is gone, found by the mark that every process of a pod inherits."""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from generator.errors import RepositoryError

MARK = "SWEEP_POD_UID"
PROC = Path("/proc")

PATIENCE_SECONDS = 10.0
"""For killed processes to vanish; one that hangs in the kernel can take for ever."""


def can_find() -> bool:
    """Tell whether this system shows the environment of processes."""
    return (PROC / "self/environ").is_file()


def find(uids: Collection[str]) -> tuple[int, ...]:
    """List the live processes that carry the mark of one of these pods."""
    wanted = {f"{MARK}={uid}".encode() for uid in uids}
    if not wanted:
        return ()
    found: list[int] = []
    for entry in PROC.glob("[0-9]*"):
        # Another user's, a zombie's or a vanished process's environment cannot be read, or is empty.
        with contextlib.suppress(OSError):
            if not wanted.isdisjoint((entry / "environ").read_bytes().split(b"\0")):
                found.append(int(entry.name))
    return tuple(pid for pid in found if pid != os.getpid())


def end(uids: Collection[str]) -> int:
    """Kill every process of these pods and wait until none is left; give how many there were.

    Raises RepositoryError if one does not go: a trial must not be started beside its former self.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    killed: set[int] = set()
    while pids := find(uids):
        if time.monotonic() > until:
            raise RepositoryError(
                f"process {pids[0]} of an earlier trial cannot be ended",
                hint="it may wait for a disk or a network drive: end it, then start again",
            )
        for pid in pids:
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return len(killed)
