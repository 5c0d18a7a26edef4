"""The private folders of an attempt: the copy of the code, HOME and TMPDIR."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import stat
import time
from typing import Any, Iterable, Mapping, NamedTuple

from launch_files import (
    KIBIBYTE,
    LARGEST_FILE,
    CodeChanged,
    Refused,
    create,
    delete,
    delete_folder,
    describe,
    is_below,
    need,
    sha256,
    write_all,
    write_new,
)
from launch_json import open_regular

MOST_FILES = 10_000  # that a path with wildcards may match
MOST_CODE_FILES = 100_000  # of the code, which every trial copies
LARGEST_CODE = 1024 * 1024 * KIBIBYTE
LONGEST_TEMPORARY = 70  # bytes of TMPDIR: libraries put sockets there, whose paths end at 108
COPIED = "copied"  # a JSON file with the inode of each file of the code's copy, and when they were copied
COPY_TIMES = "/"  # its name in that file: the first and the last time of change that they have
OVERLAY = "SWEEP_OVERLAY"
MOST_SHARED = 5000  # files of a copy that a later attempt may take
MOST_WAITS = 40  # times half a millisecond
SHORT_FOLDER, SHORT_PREFIX = "/tmp", "sweep-tmp-"  # noqa: S108 - of a link to a longer TMPDIR


class Folders(NamedTuple):
    """The private folders of one attempt; they are deleted with it."""

    trial: str
    """The folder of all others, in the scratch."""
    work: str
    """A copy of the code, below a parent that nothing else uses."""
    home: str
    temporary: str
    code: str
    """The folder of the locked code."""
    note: bytes = b""
    """What is in the file `copied` if nobody has changed the copy; empty: no other attempt can have it."""

    def variables(self) -> dict[str, str]:
        """Return the variables that point programs to these folders."""
        home, temporary = self.home, self.temporary
        return {
            "HOME": home,
            "TMPDIR": temporary,
            "TMP": temporary,
            "TEMP": temporary,
            "XDG_CACHE_HOME": os.path.join(home, ".cache"),
            "XDG_CONFIG_HOME": os.path.join(home, ".config"),
            "XDG_DATA_HOME": os.path.join(home, ".local", "share"),
            "XDG_STATE_HOME": os.path.join(home, ".local", "state"),
            "XDG_RUNTIME_DIR": temporary,
            "GIT_CEILING_DIRECTORIES": self.trial,  # git must not find a repository around the scratch
        }


def short_link(trial: str) -> str:
    """Return the path of the link to a TMPDIR of a long path: all of a trial that is elsewhere."""
    return os.path.join(SHORT_FOLDER, SHORT_PREFIX + os.path.basename(trial))


def code_folder() -> str:
    """Return the folder of the locked code."""
    return os.path.realpath(need("SWEEP_CODE"))


def make_folders(trial: str) -> Folders:
    """Copy the code into the folder of an attempt, and add HOME and TMPDIR; an overlay has them."""
    work, home, temporary = (os.path.join(trial, name) for name in ("run/work", "home", "tmp"))
    is_copy = OVERLAY not in os.environ
    for folder in (os.path.dirname(work), home, temporary) if is_copy else ():
        os.mkdir(folder, 0o700)
    if len(os.fsencode(temporary)) > LONGEST_TEMPORARY:
        os.symlink(temporary, short_link(trial))
        temporary = short_link(trial)
    code = code_folder()
    if not os.environ.get("SWEEP_CODE_STATE") and not os.path.isdir(code):
        raise Refused(f"SWEEP_CODE: there is no folder {code}: the image must have the code there")
    if not is_copy:
        if time.monotonic() > COMPARED.get(code, 0.0) + 1:  # after the command, it is compared anyway
            compare_code(code)
        return Folders(trial, work, home, temporary, code)
    earlier, begin = earlier_copy(trial), changed_now(trial)
    try:
        state, numbers = copy_folder(code, work, earlier)
    except PermissionError as error:
        raise Refused(f"the code cannot be copied for the trial: {error}") from error
    finally:
        delete_folder(earlier.trial)
    compare_code(code, state)
    is_shared = "SWEEP_COPIES" in os.environ and len(numbers) <= MOST_SHARED
    note = note_of_copy(trial, numbers, begin) if is_shared else b""
    return Folders(trial, work, home, temporary, code, note)


COMPARED: dict[str, float] = {}  # by folder, when a process that runs several rows last had its state


def compare_code(code: str, state: str = "") -> None:
    """Compare the state of the code, if it is known, with what was locked. Raises CodeChanged."""
    expected = os.environ.get("SWEEP_CODE_STATE", "")
    if not state or expected.startswith(BY_CONTENT):
        state = state_of(code, expected)
    if expected and state != expected:
        raise CodeChanged("the stored code is no longer what was locked: something wrote to it")


def open_folder(path: str, parent: int | None = None) -> int:
    """Open a folder that is no link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


class Earlier(NamedTuple):
    """The copy that an ended attempt had: the inode of each file, and when they were copied or moved."""

    trial: str
    """The folder of that attempt."""
    numbers: Mapping[str, Any]
    begin: int
    end: int

    def open(self, folder: str) -> int:
        """Open a folder of the copy; -1: there is none. Links may name another attempt's."""
        file = -1
        for part in (self.trial, "run", "work", *filter(None, folder.split(os.sep))):
            parent = file
            try:
                file = open_folder(part, None if parent < 0 else parent)
            except OSError:
                file = -1
            if parent >= 0:
                os.close(parent)
            if file < 0:
                break
        return file

    def gives(self, name: str, number: int, original: os.stat_result, folder: int, target: int) -> bool:
        """Move a file of a folder to another one, if it is as it was copied; return whether it is there."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=folder)
        except OSError:
            return False
        try:
            state = os.fstat(file)
            if (
                state.st_ino != number
                or not self.begin <= state.st_ctime_ns <= self.end
                or state.st_mtime_ns != original.st_mtime_ns
                or state.st_size != original.st_size
                or state.st_mode != stat.S_IFREG | mode_of_copy(original)
                or state.st_nlink != 1
            ):
                return False
            # Granted only if nobody else has the file open, or mapped: whoever has could still write to it.
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            os.rename(name, name, src_dir_fd=folder, dst_dir_fd=target)
        except OSError:
            return False
        finally:
            os.close(file)
        return True


NO_COPY = Earlier("", {}, 0, 0)


def changed_now(folder: str) -> int:
    """Return the time of change that the file system of a folder notes now."""
    os.utime(folder)
    return os.stat(folder).st_ctime_ns


def earlier_copy(trial: str) -> Earlier:
    """Return the copy that an ended attempt has left in this scratch, if there is one."""
    scratch = os.path.dirname(trial)
    for name in os.listdir(scratch) if "SWEEP_COPIES" in os.environ else ():
        folder = os.path.join(scratch, name)
        if name.startswith("trial-") and folder != trial:
            with contextlib.suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
                with open_regular(os.path.join(folder, COPIED)) as file:
                    content = json.loads(file.read(LARGEST_FILE))
                begin, end = map(int, content[COPY_TIMES])
                return Earlier(folder, dict(content), begin, end)
            return Earlier(folder, {}, 0, 0)
    return NO_COPY


def note_of_copy(trial: str, numbers: Mapping[str, int], begin: int) -> bytes:
    """Return what the files of a copy are, if the file system notes each later write to them.

    First, the clock of the file system has to go on: where it has steps of seconds, waiting costs more than a
    copy.
    """
    end = changed_now(trial) if notes_writes(trial) else 0
    for _ in range(MOST_WAITS if end else 0):
        if changed_now(trial) > end:
            return json.dumps({**numbers, COPY_TIMES: [begin, end]}).encode()
        time.sleep(0.0005)
    return b""


def leave_note(trial: str, note: bytes) -> None:
    """Write what the files of a copy are, or nothing, when no process is left that could write it."""
    path = os.path.join(trial, COPIED)
    delete(path)
    if note:
        with contextlib.suppress(OSError):
            write_new(path, note)


NOTING: dict[int, bool] = {}  # by device, as far as somebody has tried it


def notes_writes(folder: str) -> bool:
    """Return whether the file system of a folder notes a write to a mapping that was read; tmpfs does not."""
    import mmap

    device = os.stat(folder).st_dev
    if device not in NOTING:
        NOTING[device] = False
        path = os.path.join(folder, "mapped")
        file = create(path)
        try:
            write_all(file, b"0")
            with contextlib.suppress(OSError, ValueError), mmap.mmap(
                file, 0
            ) as mapped:  # some have no mappings
                digit, written = mapped[0], os.fstat(file).st_ctime_ns
                for _ in range(MOST_WAITS):
                    if changed_now(folder) > written:
                        break
                    time.sleep(0.0005)
                mapped[0] = digit
                NOTING[device] = os.fstat(file).st_ctime_ns > written
        finally:
            os.close(file)
            os.unlink(path)
    return NOTING[device]


def copy_folder(
    source: str, target: str, earlier: Earlier = NO_COPY, *, is_code: bool = True
) -> tuple[str, dict[str, int]]:
    """Copy a folder so that no write to the copy reaches the original; return the state of the original.

    Also return the inode of each copied file. Files of an earlier copy that nobody has changed are moved.
    Folders are always new: a process outside the attempt that still has a folder of the earlier copy does not
    reach this one.
    """
    if is_code and is_below(source, os.path.dirname(target)):
        raise Refused(f"SWEEP_CODE: {source} contains the scratch folder {need('SWEEP_SCRATCH')}")
    states, numbers, size, waiting = [], {}, 0, [""]
    while waiting:
        folder = waiting.pop()
        listed = os.open(os.path.join(source, folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        states.append(facts_of(folder, os.fstat(listed)))
        place, prefix = (os.path.join(target, folder), folder + os.sep) if folder else (target, "")
        os.mkdir(place, 0o700)
        opened, new = earlier.open(folder), open_folder(place)
        given = earlier.numbers if opened >= 0 else {}
        with os.scandir(listed) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    number = given.get(name)
                    if number is None or not earlier.gives(entry.name, number, state, opened, new):
                        state, number = copy_file(os.path.join(source, name), entry.name, new)
                    numbers[name] = number
                    states.append(facts_of(name, state))
                    size += state.st_size
                elif entry.is_symlink():
                    states.append(facts_of(name, entry.stat(follow_symlinks=False)))
                    copy_link(name, source, target, is_code=is_code)
                elif entry.is_dir():
                    waiting.append(name)
                if is_code and (len(states) > MOST_CODE_FILES or size > LARGEST_CODE):
                    raise Refused(
                        f"the code has more than {MOST_CODE_FILES} files or {LARGEST_CODE >> 30} GiB, and"
                        " each trial has a copy: keep data in run.data, and the rest out of run.code"
                    )
        for file in filter(lambda file: file >= 0, (new, listed, opened)):
            os.close(file)
    return digest_of(states), numbers


def copy_link(name: str, source: str, target: str, *, is_code: bool) -> None:
    """Copy a link, or the file that a checkpoint names elsewhere: all that continue it would write there."""
    path, copy = os.path.join(source, name), os.path.join(target, name)
    if is_code or is_below(source, path):
        os.symlink(moved(os.readlink(path), source, target), copy)
    elif os.path.isfile(path):
        copy_file(os.path.realpath(path), copy)


def mode_of_copy(original: os.stat_result) -> int:
    """Return the permissions of the copy of a file: its owner may write."""
    return 0o600 | original.st_mode & 0o111


def copy_file(source: str, target: str, folder: int | None = None) -> tuple[os.stat_result, int]:
    """Copy a file, its time and whether it can run; return its state after it, and the copy's inode."""
    reader = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        state = os.fstat(reader)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        writer = os.open(target, flags, mode_of_copy(state), dir_fd=folder)
        try:
            copy_bytes(reader, writer, state.st_size)
            os.utime(writer, ns=(state.st_atime_ns, state.st_mtime_ns))
            number = os.fstat(writer).st_ino
        finally:
            os.close(writer)
        return os.fstat(reader), number
    finally:
        os.close(reader)


def copy_bytes(reader: int, writer: int, size: int) -> None:
    """Copy a file to its end, by the system or by sharing blocks if it can."""
    try:
        while size > 0 and hasattr(os, "copy_file_range"):
            count = os.copy_file_range(reader, writer, size)
            if not count:
                break
            size -= count
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
            raise
    for chunk in iter(lambda: os.read(reader, LARGEST_FILE), b""):  # what is left, of files that grow, too
        write_all(writer, chunk)


def facts_of(name: str, state: os.stat_result) -> tuple[Any, ...]:
    """Return what a write to a file or folder changes."""
    return name, state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def digest_of(states: Iterable[tuple[Any, ...]], contents: Iterable[str] = ()) -> str:
    """Return one digest for the states of all files of a folder, and for their contents."""
    lines = [
        f"{name}\0{number} {mode:o} {size} {written} {changed}"
        for name, number, mode, size, written, changed in states
    ]
    return sha256("\n".join(sorted([*lines, *contents])).encode("utf-8", "surrogateescape"))


DIGESTS: dict[str, tuple[list[tuple[Any, ...]], str]] = {}
"""By folder, the states that a process that runs several rows had last, and their digest."""
BY_CONTENT = "content-"
"""Begins a state for which all files were read: their file system does not note each write to a file."""


def state_of(folder: str, expected: str = "", *, follows: bool = False) -> str:
    """Return the state of all files below a folder, by which a change is noticed, of the expected kind.

    If it follows links, also that of files elsewhere to which they lead, directly or in a folder.
    """
    kind = BY_CONTENT if expected.startswith(BY_CONTENT) else ""
    states: list[tuple[Any, ...]] = []
    contents: list[str] = []
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", ())]
    while waiting:
        parent, around = waiting.pop()
        state = os.stat(os.path.join(folder, parent))
        if (state.st_dev, state.st_ino) in around:  # a link to a folder around it
            continue
        around = (*around, (state.st_dev, state.st_ino))
        states.append(facts_of(parent, state))
        prefix = parent + os.sep if parent else ""
        with os.scandir(os.path.join(folder, parent)) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((name, around))
                    continue
                states.append(facts_of(name, entry.stat(follow_symlinks=False)))
                if follows and entry.is_symlink():
                    with contextlib.suppress(OSError):  # it leads nowhere
                        states.append(facts_of(name, entry.stat()))
                        if entry.is_dir():
                            waiting.append((name, around))
                if kind and entry.is_file(follow_symlinks=follows):
                    contents.append(f"{name}\0{describe(entry.path, name)['sha256']}")
    noted, digest = DIGESTS.get(folder, ([], ""))
    if contents or noted != states:
        digest = digest_of(states, contents)
        if not contents and len(states) <= MOST_SHARED:
            DIGESTS[folder] = states, digest
    return kind + digest


def has_data_changed() -> bool:
    """Return whether the data is no longer what it was when the trial began, if somebody said what it was."""
    expected = os.environ.get("SWEEP_DATA_STATE", "")
    try:
        return bool(expected) and state_of(need("SWEEP_DATA"), expected, follows=True) != expected
    except OSError:  # some of it is gone
        return True


def moved(path: str, source: str, target: str) -> str:
    """Return where an absolute path is in the copy, if the source has it after all links; else the path."""
    if not os.path.isabs(path) or not is_below(source, path):
        return path
    return os.path.normpath(os.path.join(target, os.path.relpath(os.path.realpath(path), source)))


def working_directory(launch: Mapping[str, Any], folders: Folders) -> str:
    """Return the folder in which the command starts, with links to datasets where the sweep wants them."""
    place = os.path.normpath(os.path.join(folders.work, launch.get("workdir", ".")))
    if place != folders.work and not (os.path.isdir(place) and is_below(folders.work, place)):
        raise Refused(f"run.workdir: the code has no folder {launch['workdir']}")
    for name, path in sorted(launch.get("data_at", {}).items()):
        link = os.path.normpath(os.path.join(place, path))
        if not is_below(os.path.dirname(folders.work), os.path.dirname(link)) or os.path.lexists(link):
            raise Refused(f"run.data: {path} is in the code already, or more than one level up")
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.join(os.path.abspath(need("SWEEP_DATA")), name), link)
    return place


def keep_written(patterns: Iterable[str], work: str, source: str, target: str) -> None:
    """Move what the command has written to the artifacts, if a pattern of `run.keep` matches its path."""
    import filecmp
    import glob
    import shutil

    matches = (
        path for pattern in patterns for path in glob.iglob(os.path.join(work, pattern), recursive=True)
    )
    for path in itertools.islice(dict.fromkeys(matches), MOST_FILES):
        name = os.path.relpath(path, work)
        original, kept = os.path.join(source, name), os.path.join(target, name)
        if os.path.islink(path) or not os.path.isfile(path) or not is_below(work, path):
            continue
        if os.path.isfile(original) and filecmp.cmp(original, path, shallow=False):
            continue
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        if not os.path.lexists(kept):
            shutil.move(path, kept)
