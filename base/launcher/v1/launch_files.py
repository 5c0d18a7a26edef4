"""Exit codes, refusals, and files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import Any

try:  # loading OpenSSL, as hashlib does, costs 5 ms
    from _sha2 import sha256 as new_sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256 as new_sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as new_sha256


VERSION = 1  # of launch.json and of records
BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED = 42, 43, 44
LAUNCHER_FAULT, STORAGE_FAILED, TIMED_OUT = 70, 74, 124
STOPPED_EARLY = 125  # a cause, not an exit code
# A pruned trial has done its work: no Job of any kind retries 0 or counts it as failed.
FINAL = {"ok": 0, "pruned": 0, "diverged": BAD_HYPERPARAMETERS}
WORST_FIRST = (BAD_SWEEP, STORAGE_FAILED, DISRUPTED)
KIBIBYTE = 1024
LARGEST_FILE = 1024 * KIBIBYTE  # of JSON that a trial may have written
CREATED_MODE = 0o644
TERMINATION_BYTES = 4095  # Kubernetes keeps 4096
COUNT = re.compile(r"[0-9]{1,9}")


class Refused(Exception):
    """The sweep itself is wrong: no attempt at any of its trials can succeed."""

    reason = "bad-sweep"


class BadCommand(Refused):
    """The command cannot be started."""

    reason = "bad-command"


class CodeChanged(Refused):
    """Something wrote to the stored code, so that the trial would run other code."""

    reason = "code-changed"


class Stopped(Exception):
    """A signal arrived before the command was started."""


def say(message: str) -> None:
    """Write one line to stderr, whatever the message contains; a closed stderr changes nothing."""
    line = "".join(letter if letter.isprintable() else " " for letter in message)
    with contextlib.suppress(OSError):
        os.write(2, f"launch.py: {line[:2000]}\n".encode())


def write_termination_message(text: str) -> bool:
    """Write the text that the node keeps when all volumes are gone; return whether it is complete."""
    path = os.environ.get("SWEEP_TERMINATION_LOG") or "/dev/termination-log"
    content = text.encode()
    with contextlib.suppress(OSError), open(path, "r+b") as file:  # r+: it must exist already
        file.write(content[:TERMINATION_BYTES])
        file.truncate()
        return len(content) <= TERMINATION_BYTES
    return False


def need(name: str) -> str:
    """Return a variable of the environment that must be set."""
    value = os.environ.get(name)
    if not value:
        raise Refused(f"the environment variable {name} must be set")
    return value


def count_from(variable: str, default: int) -> int:
    """Return the number in an annotation that Kubernetes sets; the default if it has none."""
    text = os.environ.get(variable, "")
    return int(text) if COUNT.fullmatch(text) else default


def create(path: str) -> int:
    """Open a file for writing from its start, never through a link or into a pipe that a trial has made."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(path, flags, CREATED_MODE)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def write_all(file: int, content: bytes) -> None:
    """Write every byte: an almost full disk accepts a part first and fails at the next call."""
    while content:
        content = content[os.write(file, content) :]


def write_new(path: str, content: bytes) -> None:
    """Write a file. Raises OSError."""
    file = create(path)
    try:
        write_all(file, content)
    finally:
        os.close(file)


def write_safely(path: str, content: bytes, suffix: str = ".tmp") -> None:
    """Write a file that is then complete and durable, or does not exist. Raises OSError."""
    temporary = path + suffix
    try:
        file = create(temporary)
        try:
            write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, path)
    except OSError as error:
        error.filename = path  # neither write nor fsync names one
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Make a rename survive a power failure, if the file system can."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the answer of file systems that cannot
            raise
    finally:
        os.close(folder)


def write_once(folder: str, name: str, content: bytes) -> None:
    """Write a file that is named by its digest, unless it exists. A failure is only reported."""
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.path.lexists(os.path.join(folder, name)):
            # Several launchers may write to a common folder; in its own, the next attempt writes over it.
            own = "SWEEP_ENVIRONMENTS" not in os.environ
            write_safely(os.path.join(folder, name), content, ".tmp" if own else f".{os.getpid()}.tmp")
    except OSError as error:
        say(f"{name} cannot be kept: {error}")


def make_temporary_folder(prefix: str) -> str:
    """Create a folder of our own in the scratch folder."""
    path = os.path.join(os.path.abspath(need("SWEEP_SCRATCH")), prefix + os.urandom(8).hex())
    os.mkdir(path, 0o700)
    return path


def sha256(content: bytes) -> str:
    """Return a digest in hexadecimal digits."""
    return str(new_sha256(content).hexdigest())


def is_below(folder: str, path: str) -> bool:
    """Return whether a path is a folder or in it, after all links."""
    folder, path = os.path.realpath(folder), os.path.realpath(path)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def describe(path: str, shown: str) -> dict[str, Any]:
    """Return path, size and digest of a file. Raises OSError."""
    import hashlib

    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(LARGEST_FILE), b""):
            digest.update(chunk)
            size += len(chunk)
    return {"path": shown, "bytes": size, "sha256": digest.hexdigest()}


def delete(path: str) -> None:
    """Delete whatever has a path, as far as possible."""
    try:
        os.unlink(path)
    except OSError:
        delete_folder(path)


def delete_folder(path: str) -> None:
    """Delete a folder and its content, as far as possible."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError:
        import shutil

        shutil.rmtree(path, ignore_errors=True)
