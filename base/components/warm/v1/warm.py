"""Run the rows of a pod in forks of one interpreter, which has loaded what their program loads.

It imports launch.py (version 2) and pack.py, which are beside it in the pod; pack.py starts it if launch.json
has `pack.warm`. All else is as in a pack: each row has its own process, folder, output, timeout and record.

The first rows note which libraries they load, and which variables their program has set before. Once one of
them has ended well, this process loads the same libraries, in the same order. Later rows are forks of it that
run the program from its beginning: its own modules are loaded by each row, as ever.

A row starts as without this program, by a new interpreter, if
- its command is not this interpreter with `-m MODULE` or a file, or captures metrics;
- the interpreter has other flags, another hash seed or another version than a new one would have;
- a module beside the program has the name of a library that is loaded already;
- the libraries start threads that stay, or use a GPU, when they are loaded: a fork tries whether they do.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import io
import json
import locale
import os
import runpy
import signal
import subprocess
import sys
import sysconfig
import threading
import traceback
import types
from typing import IO, Any, Iterator, Mapping, NamedTuple, NoReturn, Sequence

import launch
import pack

ASK = """
import json, locale, sys
encodings = [sys.getfilesystemencoding(), locale.getpreferredencoding(False).lower(), sys.stdout.encoding]
print(json.dumps([sys.path[1:], list(sys.flags), hash("warm"), sys.version, encodings]))
"""
NO_BYTECODE, UTF8_MODE = 4, 14  # their places among the flags of all versions
RESTARTED = "SWEEP_WARM_RESTARTED"
LONGEST_NOTES = 4 * 1024 * launch.KIBIBYTE


class Program(NamedTuple):
    """A command that is Python code for this interpreter."""

    module: str
    path: str
    """Of a file; empty for a module."""
    arguments: list[str]

    @property
    def folder(self) -> str:
        """What Python puts first where it searches for modules."""
        return os.path.dirname(os.path.abspath(self.path)) if self.path else os.getcwd()


class Child:
    """What the launcher uses of `subprocess.Popen`, of a process that was forked."""

    def __init__(self, pid: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb", 0)
        self.stderr: IO[bytes] = os.fdopen(stderr, "rb", 0)


def program_of(arguments: Sequence[str], variables: Mapping[bytes, bytes]) -> Program | None:
    """Return the program of a command; None if it is not one of this interpreter."""
    words = list(arguments)
    if words[0] == "/usr/bin/env" and len(words) > 1 and "=" not in words[1] and not words[1].startswith("-"):
        words.pop(0)
    search = os.fsdecode(variables.get(b"PATH", b""))
    name = words[0]
    if not os.path.dirname(name):
        folders = [folder for folder in search.split(os.pathsep) if folder]
        paths = (os.path.join(folder, name) for folder in folders)
        name = next((path for path in paths if os.access(path, os.X_OK)), "")
    same_folder = os.path.dirname(os.path.abspath(name)) == os.path.dirname(os.path.abspath(sys.executable))
    if not name or not same_folder or os.path.realpath(name) != os.path.realpath(sys.executable):
        return None
    if len(words) > 2 and words[1] == "-m":
        return Program(words[2], "", words[3:])
    if len(words) > 1 and words[1].endswith(".py") and not words[1].startswith("-"):
        return Program("", words[1], words[2:])
    return None


def own_encodings() -> set[str]:
    """Return what this interpreter reads and writes texts in."""
    encodings = (
        sys.getfilesystemencoding(),
        locale.getpreferredencoding(do_setlocale=False),
        sys.stdout.encoding,
    )
    return {each.lower().replace("-", "") for each in encodings}


def is_library(origin: str | None) -> bool:
    """Return whether a module is of the interpreter or an installed package: code that all programs share."""
    if not origin or origin in ("built-in", "frozen"):
        return True
    folders = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    is_installed = "/site-packages/" in origin or "/dist-packages/" in origin
    return is_installed or any(origin.startswith(f"{folder}{os.sep}") for folder in folders if folder)


def origin_of(module: Any) -> str | None:
    """Return where a module was loaded from."""
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    return origin if isinstance(origin, str) else None


class Notes:
    """Finds modules as Python does, and notes which libraries a row loads, and with which variables."""

    def __init__(self, path: str, given: Mapping[str, str]) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self.known = dict(given)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module."""
        finders = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in finders if hasattr(finder, "find_spec"))
        spec = next((spec for spec in specs if spec), None)
        if spec and spec.origin and is_library(spec.origin):
            now = dict(os.environ)
            changed = {
                key: now.get(key) for key in {*now, *self.known} if now.get(key) != self.known.get(key)
            }
            self.known = now
            line = json.dumps([name, spec.origin, changed]) + "\n"
            with contextlib.suppress(OSError):
                os.write(self.file, line.encode())
        return spec


def read_notes(path: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what rows have noted; a part of a line does not matter."""
    notes = []
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file.read(LONGEST_NOTES).split(b"\n"):
            with contextlib.suppress(ValueError, TypeError):
                name, origin, changed = json.loads(line)
                if isinstance(changed, dict) and isinstance(name, str):
                    notes.append((name, str(origin), changed))
    return notes


def load(notes: Sequence[tuple[str, str, dict[str, Any]]]) -> None:
    """Load libraries with the variables that a program had set by then."""
    for name, origin, changed in notes:
        for key, value in changed.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        if name in sys.modules:
            continue
        with contextlib.suppress(Exception):
            spec = importlib.util.find_spec(name)
            if spec and spec.origin == origin:
                importlib.import_module(name)


def why_unsafe() -> str:
    """Return why no fork of this process could run a program; nothing if it can."""
    with contextlib.suppress(OSError):
        if len(os.listdir("/proc/self/task")) > 1:
            # OpenBLAS, which numpy loads, ends its threads before a fork, and starts others when needed.
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        if len(os.listdir("/proc/self/task")) > 1:
            return "a library starts threads when it is loaded"
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{name}").startswith("/dev/nvidia"):
                    return "a library uses a GPU when it is loaded"
    return "" if threading.active_count() == 1 else "a library starts threads when it is loaded"


class Warm(pack.Pack):
    """Runs the rows of one pod as forks of this process."""

    def __init__(
        self, instructions: Mapping[str, Any], rows: range, uid: str, signals: launch.Signals, folder: str
    ) -> None:
        super().__init__(instructions, rows, uid, signals, folder)
        self.notes = os.path.join(
            os.path.abspath(launch.need("SWEEP_SCRATCH")), f"warm-{os.urandom(8).hex()}"
        )
        self.new_start = launch.start
        self.row = -1
        self.no_bytecode = 0
        self.is_restarted = os.environ.pop(RESTARTED, "") == "1"
        self.search_path = self.ask()
        self.is_learning = self.search_path is not None

    def ask(self) -> list[str] | None:
        """Return where a new interpreter finds modules; None if it would differ from this one otherwise."""
        with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
            answer = subprocess.run(
                [sys.executable, "-c", ASK],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                timeout=30,
                check=True,
            )
            path, flags, seed, version, encodings = json.loads(answer.stdout)
            own = list(sys.flags)
            # Whether compiled files are written changes no result, and can be changed at any time. UTF-8 mode
            # is one of two ways in which Python reads an environment without a locale: encodings say more.
            own[NO_BYTECODE] = self.no_bytecode = flags[NO_BYTECODE]
            own[UTF8_MODE] = flags[UTF8_MODE]
            is_utf8 = {each.lower().replace("-", "") for each in encodings} == {"utf8"} == own_encodings()
            is_seeded = os.environ.get("PYTHONHASHSEED", "random") != "random"
            if is_utf8 and (flags, version) == (own, sys.version) and (not is_seeded or seed == hash("warm")):
                return list(path)
        if not self.is_restarted:  # a local engine forks launchers from an isolated interpreter
            os.environ[RESTARTED] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606
        launch.say("warm: a new interpreter has other flags than this one; every trial starts by itself")
        return None

    def run(self) -> int:
        """Run all rows; return the exit code of the pod."""
        try:
            return int(super().run())
        finally:
            for row in self.rows:
                with contextlib.suppress(OSError):
                    os.unlink(self.notes_of(row))

    def notes_of(self, row: int) -> str:
        """Return the file in which a row notes what it loads."""
        return f"{self.notes}-{row}"

    def collect(self) -> None:
        """Load what the rows have loaded, once one of them has ended well."""
        super().collect()
        good = [row for row, code in self.codes.items() if code == 0 and os.path.exists(self.notes_of(row))]
        if self.is_learning and good:
            self.is_learning = False
            notes = read_notes(self.notes_of(good[0]))
            reason = self.try_to_load(notes)
            if reason:
                launch.say(f"warm: {reason}; every trial starts by itself")
                self.search_path = None
                return
            before = dict(os.environ)
            load(notes)
            os.environ.clear()
            os.environ.update(before)
            gc.freeze()

    def try_to_load(self, notes: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
        """Load libraries in a fork; return why this process must not."""
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            with contextlib.suppress(BaseException):
                load(notes)
                os.write(writer, (why_unsafe() or "safe").encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            said = file.read(launch.KIBIBYTE).decode()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return "" if said == "safe" else said or "its libraries cannot be loaded here"

    def launch_row(self, row: int) -> int:
        """Be the launcher of one row."""
        self.row = row
        if self.search_path is not None:
            launch.start = self.start_program
        return int(super().launch_row(row))

    def start_program(self, arguments: list[str], variables: Mapping[bytes, bytes], place: str) -> Any:
        """Start the command, in a fork of this process if it is Python code for it."""
        program = None if self.launch.get("capture") else program_of(arguments, variables)
        is_missing = (
            program is not None and program.path and not os.path.isfile(os.path.join(place, program.path))
        )
        if program is None or is_missing or any(self.shadowed(program, place)):
            return self.new_start(arguments, variables, place)
        out, own_out = os.pipe()
        err, own_err = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            become(variables, place, (own_out, own_err))
            self.run_program(program)
        os.close(own_out)
        os.close(own_err)
        return Child(pid, out, err)

    def shadowed(self, program: Program, place: str) -> Iterator[str]:
        """Yield modules beside a program that have the name of a loaded library, and would be loaded."""
        folder = os.path.dirname(os.path.abspath(program.path)) if program.path else os.path.abspath(place)
        loaded = {name for name, module in list(sys.modules.items()) if is_library(origin_of(module))}
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                stem, end = name.partition(".")[::2]
                is_package = os.path.isfile(os.path.join(folder, name, "__init__.py"))
                if stem in loaded and (is_package or end == "py" or end.endswith("so")):
                    yield name

    def run_program(self, program: Program) -> NoReturn:
        """Run a program as a new interpreter would, and end this process."""
        for name, module in list(sys.modules.items()):
            if name != "__main__" and not is_library(origin_of(module)):
                del sys.modules[name]  # the program's own module of this name is another one
        sys.path[:] = [program.folder, *(self.search_path or ())]
        sys.dont_write_bytecode = bool(self.no_bytecode)
        sys.argv[:] = [program.path or "-m", *program.arguments]
        if self.is_learning:
            sys.meta_path.insert(0, Notes(self.notes_of(self.row), os.environ))
        if "numpy.random" in sys.modules:  # its global state would be the same in all forks
            sys.modules["numpy.random"].seed()
        code = 0
        try:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            if program.path:
                run_file(program.path, main)
            else:
                runpy._run_module_as_main(program.module)  # type: ignore[attr-defined]  # noqa: SLF001 - as -m does
        except SystemExit as ended:
            code = exit_code(ended.code)
        except BaseException as error:  # noqa: BLE001 - as at the end of any script
            code = 1
            traceback.print_exception(type(error), error, own_frames(error.__traceback__))
        leave(code)


def become(variables: Mapping[bytes, bytes], place: str, outputs: tuple[int, int]) -> None:
    """Turn a fork of the launcher into a process with the files, signals and variables of a new one."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in zip((null, *outputs), range(3)):
        os.dup2(source, target)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.close(int(name))
    os.environb.clear()
    os.environb.update(variables)
    os.chdir(place)
    sys.stdin = open(0, encoding=sys.stdin.encoding if sys.stdin else None)  # noqa: SIM115
    sys.stdout = stream(1, errors="strict", by_line=False)
    sys.stderr = stream(2, errors="backslashreplace", by_line=True)
    vars(sys).update({f"__{name}__": getattr(sys, name) for name in ("stdin", "stdout", "stderr")})


def stream(file: int, *, errors: str, by_line: bool) -> io.TextIOWrapper:
    """Open an output as a new interpreter does if it is a pipe."""
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    before = sys.stdout if file == 1 else sys.stderr
    encoding = getattr(before, "encoding", None) or "utf-8"
    raw: Any = os.fdopen(file, "wb", 0 if is_unbuffered else -1, closefd=False)
    return io.TextIOWrapper(
        raw,
        encoding=encoding,
        errors=errors if file == 2 else getattr(before, "errors", errors),
        line_buffering=by_line,
        write_through=is_unbuffered,
    )


def exit_code(code: Any) -> int:
    """Return the exit code of a SystemExit, whose message goes to stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    sys.stderr.write(f"{code}\n")
    return 1


def run_file(path: str, main: types.ModuleType) -> None:
    """Run a file as an interpreter runs a script."""
    shown = os.path.abspath(path) if sys.version_info >= (3, 9) else path
    with open(path, "rb") as file:
        code = compile(file.read(), shown, "exec", dont_inherit=True)
    vars(main).update({"__file__": shown, "__cached__": None, "__builtins__": sys.modules["builtins"]})
    exec(code, vars(main))  # noqa: S102 - the program of the trial


def own_frames(trace: Any) -> Any:
    """Return a traceback without the frames of this file."""
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def leave(code: int) -> NoReturn:
    """End this process as an interpreter ends: threads, exit handlers, output."""
    shutdown: Any = getattr(threading, "_shutdown", None)  # what an interpreter calls at its end
    with contextlib.suppress(BaseException):
        shutdown()
    with contextlib.suppress(BaseException):
        import atexit  # noqa: PLC0415 - rarely needed before

        atexit._run_exitfuncs()  # noqa: SLF001
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            output.flush()
    os._exit(code)
