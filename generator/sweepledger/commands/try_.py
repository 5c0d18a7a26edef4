"""`sweep try`: one trial from the work tree, here and now. Commits nothing, records nothing."""

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator import search
from generator.commands import programs
from generator.commands.foundation import bases
from generator.commands.workspace import STATE, Workspace
from generator.engine import datasets, foreground
from generator.errors import RepositoryError, UsageError
from generator.formats import record as records
from generator.formats.launch import GRACE_SECONDS, LAUNCH_FILE, shard_files
from generator.render.bases import LAUNCHER_FILE
from generator.render.overlay import overlay
from generator.repo import files
from generator.structs.batch import Batch
from generator.structs.labels import INDEX_VARIABLE
from generator.structs.record import Record, Status
from generator.structs.settings import Controller
from generator.structs.sweep import Shape, Sweep
from generator.structs.tree import FileTree
from generator.structs.trial import Trial
from generator.structs.values import bytes_digest

WORK_TREE = "0" * 40
"""Stands for the code's tree: what was tried is whatever lay there."""

TRIED = "try"
"""Stands for the trial's id, which depends on the code's tree: nobody could find a trial by it."""


@dataclass(frozen=True)
class Tried:
    """A trial that was tried, and what it left."""

    trial: Trial
    number: int
    of: int
    record: Record | None
    exit_code: int

    @property
    def is_ok(self) -> bool:
        """Tell whether the trial would count."""
        return self.record is not None and self.record.status.is_success

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        return {
            "trial": self.number,
            "of": self.of,
            "assignment": dict(self.trial.assignment),
            "status": str(self.record.status) if self.record else str(Status.MISSING),
            "reason": self.record.reason if self.record else None,
            "metrics": dict(self.record.metrics) if self.record else {},
            "seconds": self.record.seconds if self.record else None,
            "exit_code": self.exit_code,
        }


def try_(workspace: Workspace, name: str, number: int, *, quiet: bool) -> Tried:
    """Run trial `number` of a sweep's plan under the launcher, as a pod would; `quiet` keeps stdout free.

    Raises SpecError, UsageError for a trial that does not exist, StorageError for wrong data, ToolError.
    """
    (sweep,) = _here(workspace).sweeps([name])
    program = programs.asked_for(workspace, sweep, tree=WORK_TREE)
    trials = search.expand(sweep, program)
    of = len(trials)
    if not 0 <= number < of:
        raise UsageError(f"{sweep.name} has trials 0 to {of - 1}, got {number}")
    batch = Batch(sweep, 1, None, program, (trials[number],), Shape.INDEXED)
    with tempfile.TemporaryDirectory(prefix="sweep-try-") as scratch:
        record, code = _run(workspace, batch, Path(scratch), quiet=quiet)
    return Tried(batch.trials[0], number, of, record, code)


def _here(workspace: Workspace) -> Workspace:
    """Forget what applies overlays elsewhere: a cluster needs an image, this machine does not."""
    return replace(workspace, settings=replace(workspace.settings, controller=Controller.NONE))


def _run(workspace: Workspace, batch: Batch, scratch: Path, *, quiet: bool) -> tuple[Record | None, int]:
    identity = batch.trials[0].id
    made = overlay(batch, bases(workspace.root), workspace.settings).tree
    for path, content in _unnamed(made, identity):
        files.write_file(scratch / "batch" / path, content)
    code = _code(workspace, batch.run.code_path, scratch / "code")
    environment = _environment(workspace, batch, scratch, code)
    exit_code = foreground.run(
        [_interpreter(batch.sweep), str(scratch / "batch" / "launch.py")],
        folder=code,
        environment=environment,
        grace=GRACE_SECONDS,
        quiet=quiet,
    )
    left = scratch / "results" / f"{environment['SWEEP_POD_UID']}.json"
    content = left.read_bytes() if left.is_file() else b""
    # A record has to name a trial by an id.
    named = content.replace(f'"trial":"{TRIED}"'.encode(), f'"trial":"{identity}"'.encode())
    found = records.read(named) if content else None
    return found if isinstance(found, Record) else None, exit_code


def _unnamed(tree: FileTree, identity: str) -> Iterator[tuple[str, bytes]]:
    """Take the trial's id out of the table, whose digest the launcher looks at."""
    instructions = tree[LAUNCH_FILE]
    for file in shard_files(instructions):
        table = tree[file].replace(f"\n{identity}".encode(), f"\n{TRIED}".encode())
        instructions = instructions.replace(bytes_digest(tree[file]).encode(), bytes_digest(table).encode())
        yield file, table
    yield LAUNCH_FILE, instructions
    yield LAUNCHER_FILE, tree[LAUNCHER_FILE]


def _code(workspace: Workspace, path: str, folder: Path) -> Path:
    """Show the program what a batch would: a folder with the code path, and nothing else of the work tree."""
    real = workspace.root / path
    if not real.is_dir():
        raise RepositoryError(
            f"{path}/ is not a folder here",
            hint="say where the code lies: `run: {code: {path: …}}` in the spec; the default is trainer",
        )
    link = folder / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(real, target_is_directory=True)
    return folder


def _interpreter(sweep: Sweep) -> str:
    return sys.executable if sweep.run.interpreter in {"python", "python3"} else sweep.run.interpreter


def _environment(workspace: Workspace, batch: Batch, scratch: Path, code: Path) -> Mapping[str, str]:
    """Give the trial what a pod would have, and nothing of the person's own environment but PATH."""
    for folder in ("results", "scratch"):
        (scratch / folder).mkdir()
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(scratch / "scratch"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": str(batch.run.threads),
        "SWEEP_LAUNCH": str(scratch / "batch" / "launch.json"),
        "SWEEP_TABLE": str(scratch / "batch"),
        "SWEEP_RESULTS": str(scratch / "results"),
        "SWEEP_SCRATCH": str(scratch / "scratch"),
        "SWEEP_POD_UID": str(uuid.uuid4()),
        "SWEEP_RAN": "process",
        INDEX_VARIABLE: "0",
    }
    if batch.run.data is not None:
        dataset = workspace.settings.datasets[batch.run.data]
        data = workspace.root / STATE / "data" / dataset.name
        environment["SWEEP_DATA"] = str(datasets.ready(dataset, data, code=code))
    return environment
