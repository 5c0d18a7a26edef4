"""Processes and their descendants: list them, measure their memory, kill them.

The pod supervisor imports this module each time a pod starts, so it imports little. Everything is read from
/proc: on a system without it, no process has descendants and memory reads as 0.
"""

# pathlib would add to the time that every pod takes to start:
# ruff: noqa: PTH110, PTH123, PTH208

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, MS_REC, MS_SLAVE, MNT_DETACH = 0x20000, 0x4000, 0x80000, 2
PROC = "/proc"
"""The only way to other processes: all functions read it anew, so that a test can run without it."""


def has_proc() -> bool:
    """Return whether this system has /proc as Linux does."""
    return os.path.exists(f"{PROC}/self/environ")


def children(pid: int) -> list[int]:
    """Return the children of a process; none if the process has ended."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"{PROC}/{pid}/task"):
            with contextlib.suppress(OSError), open(f"{PROC}/{pid}/task/{task}/children", "rb") as file:
                pids += map(int, file.read().split())
    return pids


def descendants(pid: int) -> Iterator[int]:
    """Yield all processes below a process."""
    pending = children(pid)
    while pending:
        child = pending.pop()
        yield child
        pending += children(child)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process, shared memory included; 0 if it has ended."""
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"{PROC}/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def proportional_bytes(pid: int) -> int:
    """Return the memory of one process, with shared memory divided among its users; slower to read."""
    with contextlib.suppress(OSError, ValueError), open(f"{PROC}/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return resident_bytes(pid)


def with_variable(name: str, values: Collection[str]) -> tuple[int, ...]:
    """Return the live processes, except this one, in which an environment variable has one of these values."""
    wanted = {f"{name}={value}".encode() for value in values}
    if not wanted or not has_proc():
        return ()
    pids: list[int] = []
    for entry in filter(str.isdecimal, os.listdir(PROC)):
        # The environment of another user's process cannot be read; that of a zombie is empty.
        with contextlib.suppress(OSError), open(f"{PROC}/{entry}/environ", "rb") as file:
            if not wanted.isdisjoint(file.read().split(b"\0")):
                pids.append(int(entry))
    return tuple(pid for pid in pids if pid != os.getpid())


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to processes that may have ended already."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    """Send SIGKILL to a process group that may have ended already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses a group that has ended
        os.killpg(leader, signal.SIGKILL)


def kill_until_none(find: Callable[[], Collection[int]], *, seconds: float, pause: float) -> set[int]:
    """Kill the processes that `find` returns until it returns none; return all that it ever returned.

    Gives up after a number of seconds: a process that hangs in the kernel may never end.
    """
    deadline = time.monotonic() + seconds
    killed: set[int] = set()
    while (pids := find()) and time.monotonic() < deadline:
        killed.update(pids)
        kill(pids)
        time.sleep(pause)
    return killed


@functools.lru_cache(maxsize=1)
def system_library() -> Any:
    """Return the C library of this process, loaded once and not in each fork."""
    import ctypes  # noqa: PLC0415 - most programs that list processes never need it

    return ctypes.CDLL(None)


def own_mounts() -> bool:
    """Give this process a private mount namespace, which hides its mounts from others; return whether that worked."""
    if sys.platform != "linux" or os.geteuid():
        return False
    library = system_library()
    return not (library.unshare(CLONE_NEWNS) or library.mount(None, b"/", None, MS_REC | MS_SLAVE, None))


def mounts() -> bytes:
    """Return the mounts that this process sees, in the system's format; empty if the system lists none."""
    with contextlib.suppress(OSError), open(f"{PROC}/self/mountinfo", "rb") as file:
        return file.read()
    return b""


def mount_overlay(folder: str, options: str) -> None:
    """Mount an overlay over a folder. Raises OSError."""
    if system_library().mount(b"overlay", os.fsencode(folder), b"overlay", 0, os.fsencode(options)):
        raise OSError(f"{folder}: the system mounts no overlay there")


def unmount(folder: str) -> None:
    """Unmount a folder, or detach it if another process still uses it."""
    library, path = system_library(), os.fsencode(folder)
    if library.umount2(path, 0):
        library.umount2(path, MNT_DETACH)


def prctl(option: int, value: int, *, library: Any = None) -> bool:
    """Call prctl for this process; return whether the system has it and it succeeded.

    `library` is the C library to call, by default that of this process.
    """
    try:
        return bool((library or system_library()).prctl(option, value, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parent ends; return whether the system supports it."""
    return prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends; kill it now if the parent has already ended."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
