"""A trial's folders for tests of the launcher: valid by default, one change per test.

The launcher runs in a fork of the test process, where its module is compiled already: the files, descriptors, signals
and processes are real. It runs as a process of its own where a test needs another interpreter, or a variable that
takes effect when an interpreter starts.
"""

import hashlib
import importlib
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[2] / "base/launcher/v1"
LAUNCHER = FOLDER / "launch.py"
PACK = Path(__file__).parents[2] / "base/components/pack/v1/pack.py"
SCHEMA = Draft202012Validator(json.loads((FOLDER / "record.schema.json").read_text(encoding="utf-8")))
"""That of records."""
LAUNCHER_PARTS = sorted(path for path in FOLDER.glob("launch_*.py") if path.stem != "launch_capture")


def names_of_launcher() -> dict[str, Any]:
    """Return all that the parts of the launcher define; `launch.py` leaves no compiled files in a folder of bases."""
    writes, folders = sys.dont_write_bytecode, list(sys.path)
    names = runpy.run_path(str(LAUNCHER), run_name="launch")
    for part in LAUNCHER_PARTS:
        names.update(vars(importlib.import_module(part.stem)))
    sys.dont_write_bytecode, sys.path[:] = writes, folders
    return names


launch: Any = SimpleNamespace(**names_of_launcher())
"""What the launcher and its parts define."""

BESIDE = {"exit", "said", "peak_memory", "wall"}
"""What `try_once` adds to a record."""

PROGRAM = "ab" * 32
CODE = "cd" * 20
TRIALS = ("t00000000000", "t00000000001")
REPORT = 'printf \'{"test_accuracy": 0.5}\' > "$SWEEP_RESULT"'
"""The shortest good trial."""


PATIENCE = 120
"""Seconds until a launcher hangs for sure: on a machine full of others, its start alone may take ten."""

HOUR = 3600
LATE = 'echo $PPID >> "$HERE/late"; kill -CHLD $PPID'
"""In a command of a shell: for its launcher, an hour goes by at once, and it looks at its clock."""


def make_late(folder: Path, launcher: int) -> None:
    with (folder / "late").open("a", encoding="utf-8") as file:
        file.write(f"{launcher}\n")
    os.kill(launcher, signal.SIGCHLD)


def leaping_clock(leaps: Path) -> Callable[[], float]:
    """Return a clock that is an hour ahead for each time that the file has the number of the process.

    So a timeout is over when the command has done what a test needs, and not while it still starts. The first
    time in each process has no leap: it is when a launcher begins to count, which may be after its command began.
    """
    real, have_begun = time.monotonic, set()

    def monotonic() -> float:
        number, now = os.getpid(), real()
        if number not in have_begun:
            have_begun.add(number)
            return now
        numbers = leaps.read_text(encoding="utf-8").split() if leaps.exists() else []
        return now + HOUR * numbers.count(str(number))

    return monotonic


def wait_for(path: Path) -> None:
    """Wait until a test's child has made a file."""
    until = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.005)


def shell(script: str) -> list[Any]:
    return ["sh", "-c", script]


def python(script: str) -> list[Any]:
    return [sys.executable, "-I", "-S", "-c", script]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Run:
    """What a launcher did, as its caller sees it."""

    code: int
    out: bytes
    err: str

    @property
    def said(self) -> list[str]:
        """The launcher's own lines."""
        lines = self.err.splitlines()
        return [line.removeprefix("launch.py: ") for line in lines if line.startswith("launch.py: ")]


@dataclass
class TrialFolder:
    """The folders and the environment of one trial."""

    root: Path
    columns: list[tuple[str, str]] = field(default_factory=lambda: [("learning_rate", "number")])
    rows: list[str] = field(default_factory=lambda: [f"{TRIALS[0]},0.1", f"{TRIALS[1]},1e-05"])
    command: list[Any] = field(default_factory=lambda: shell(REPORT))
    changes: dict[str, Any] = field(default_factory=dict)
    """Of launch.json."""
    environment: dict[str, str] = field(default_factory=dict)
    interpreter: str = sys.executable
    arguments: list[str] = field(default_factory=list)
    """Of the launcher: what the manifest shows."""
    may_fork: bool = True
    """Whether the launcher may run in a fork of the test process, whose memory counts as its own."""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def code(self) -> Path:
        """The folder of the locked code, of which each attempt has a copy."""
        return self.root / "code"

    @property
    def results(self) -> Path:
        return self.root / "results" / "batch" / "0"

    @property
    def header(self) -> str:
        return ",".join(["trial", *(name for name, _ in self.columns)])

    @property
    def table(self) -> str:
        return "".join(f"{line}\n" for line in [self.header, *self.rows])

    def row_digest(self, index: int = 0) -> str:
        return sha256(f"{PROGRAM}\n{self.header}\n{self.rows[index]}\n".encode())

    def launch_json(self) -> dict[str, Any]:
        shard = {
            "file": "hyperparams.csv",
            "first": 0,
            "count": len(self.rows),
            "digest": f"sha256:{sha256(self.table.encode())}",
        }
        return {
            "version": 1,
            "max_disruptions": 5,
            "batch": "lr-b1-3f9a1c2e",
            "program": PROGRAM,
            "code": CODE,
            "data": None,
            "columns": [{"name": name, "type": kind} for name, kind in self.columns],
            "shards": [shard],
            "command": self.command,
            "interpreter": sys.executable,
            "metric": {"name": "test_accuracy", "source": "result"},
            "seed_base": 0,
            "timeout_seconds": 100,
            "grace_seconds": 10,
            **self.changes,
        }

    def variables(self, changes: Mapping[str, str]) -> dict[str, str]:
        given = {
            "PATH": os.environ["PATH"],
            "HERE": str(self.root),  # where commands leave what tests look at
            "SWEEP_LAUNCH": str(self.root / "launch.json"),
            "SWEEP_TABLE": str(self.root / "table"),
            "SWEEP_CODE": str(self.code),
            "SWEEP_RESULTS": str(self.results),
            "SWEEP_SCRATCH": str(self.root / "scratch"),
            "SWEEP_INDEX": "0",
            "SWEEP_POD_UID": "uid-1",
            "SWEEP_TERMINATION_LOG": str(self.root / "termination-log"),
            **self.environment,
            **changes,
        }
        return {name: value for name, value in given.items() if value}

    def write(self) -> None:
        (self.root / "table").mkdir(exist_ok=True)
        (self.root / "scratch").mkdir(exist_ok=True)
        self.code.mkdir(exist_ok=True)
        replace(self.root / "table" / "hyperparams.csv", self.table)
        replace(self.root / "launch.json", json.dumps(self.launch_json()))

    def start(
        self, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE, /, **variables: str
    ) -> subprocess.Popen[bytes]:
        """Write everything and start the launcher; an empty value leaves a variable out."""
        self.write()
        environment = self.variables(variables)
        command = [self.interpreter, str(LAUNCHER), *self.arguments]
        in_fork = (
            self.may_fork
            and self.interpreter == sys.executable
            and not any(map(is_read_at_start, environment))
        )
        with (
            warnings.catch_warnings()
        ):  # Python 3.12 warns of forks next to a thread, and pytest-xdist has one
            warnings.simplefilter("ignore", DeprecationWarning)
            launcher = subprocess.Popen(
                command,
                env=environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                preexec_fn=become_launcher(command[1:], environment, self.root) if in_fork else None,  # noqa: PLW1509
                restore_signals=not in_fork,  # a Python that starts ignores SIGPIPE
            )
        self.started.append(launcher)
        return launcher

    def start_copied(self, program: str = "pack.py", **variables: str) -> subprocess.Popen[bytes]:
        """Write everything and start a program that lies beside the launcher, as in a pod of several rows."""
        self.write()
        folder = self.root / "launcher"
        folder.mkdir(exist_ok=True)
        for path in (*FOLDER.glob("launch*.py"), PACK):
            if not (folder / path.name).exists():
                shutil.copy(path, folder)
        process = subprocess.Popen(
            [self.interpreter, "-B", str(folder / program)],
            env=self.variables(variables),
            cwd=self.code,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End every launcher that a failed test left behind, and what it runs."""
        for launcher in self.started:
            if launcher.poll() is None:
                launcher.terminate()
                try:
                    launcher.communicate(timeout=2)
                except subprocess.TimeoutExpired:
                    launcher.kill()
                    launcher.communicate()

    def run(self, **variables: str) -> Run:
        """Run the launcher to its end; an empty value leaves a variable out."""
        return ended(self.start(**variables))

    def records(self) -> dict[str, Any]:
        """Read the records by their files' names; each must be as the schema says."""
        read = {path.name: json.loads(path.read_bytes()) for path in sorted(self.results.glob("*.json"))}
        for record in read.values():
            SCHEMA.validate(record)
        return read

    def record(self) -> Any:
        (record,) = self.records().values()
        return record

    def try_once(self, **variables: str) -> Any:
        """Run the launcher and read its record; its exit code goes along as `exit`.

        What is no test's to choose, memory and wall of its command, is in the record beside `details`.
        """
        run, record = self.run(**variables), self.record()
        own = {name: record["details"].pop(name, None) for name in ("peak_memory", "wall")}
        return record | {"exit": run.code, "said": run.said} | own


def replace(path: Path, text: str) -> None:
    """Write a file so that a launcher which started before reads it whole, as it was or as it is now."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8", newline="")
    beside.replace(path)


def metric(name: str = "loss", source: str = "result", **changes: Any) -> dict[str, Any]:
    """Return how a trial reports, as a launcher that has read launch.json knows it."""
    complete: dict[str, Any] = launch.complete_metric({"name": name, "source": source, **changes})
    return complete


def report_of(content: str | bytes, folder: Path, **changes: Any) -> Any:
    """Return what the launcher reads in a trial's file with this content."""
    path = folder / "result.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return launch.read_report(None, launch.Files(str(path)), metric(**changes))


def is_read_at_start(variable: str) -> bool:
    """Return whether a variable of the environment takes effect when a Python process starts."""
    return variable.startswith(("PYTHON", "LC_", "LANG", "TZ"))


def become_launcher(arguments: list[str], environment: Mapping[str, str], folder: Path) -> Callable[[], None]:
    """Return a function that runs the launcher in a forked process and ends that process."""

    def run() -> None:
        code = 70
        try:
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # as a new program's are; Popen waits for one of them
            os.environ.clear()
            os.environ.update(environment)
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
            sys.argv = arguments
            time.monotonic = leaping_clock(folder / "late")
            code = launch.main()
        except BaseException:  # noqa: BLE001 - a fork must never return into the tests
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    return run


def ended(process: subprocess.Popen[bytes]) -> Run:
    """Wait for a launcher's end; none ever prints a traceback."""
    out, err = process.communicate(timeout=PATIENCE)
    message = err.decode(errors="replace")
    assert "Traceback" not in message, message
    return Run(process.returncode, out or b"", message)
