"""`sweep try`: one trial from the work tree, here and now. Commits nothing, records nothing."""

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import search
from generator.commands import programs
from generator.commands.foundation import bases
from generator.commands.workspace import Workspace
from generator.engine import datasets
from generator.errors import UsageError
from generator.formats import record as records
from generator.render.overlay import overlay
from generator.repo import files
from generator.structs.batch import Batch
from generator.structs.record import Record, Status
from generator.structs.sweep import Shape, Sweep
from generator.structs.trial import Trial

WORK_TREE = "0" * 40
"""Stands for the code's tree: what was tried is whatever lay there."""

STATE = ".sweepledger"


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
        return self.record is not None and self.record.status is Status.OK

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
    """Run row `number` of a sweep's grid under the launcher, as a pod would; `quiet` keeps stdout free.

    Raises SpecError, UsageError for a row that does not exist, StorageError for wrong data.
    """
    (sweep,) = workspace.sweeps([name])
    trials = search.expand(sweep, programs.asked_for(workspace, sweep, tree=WORK_TREE))
    if not 0 <= number < len(trials):
        raise UsageError(f"{name} has trials 0 to {len(trials) - 1}, got {number}")
    with tempfile.TemporaryDirectory(prefix="sweep-try-") as scratch:
        return _run(workspace, sweep, trials, number, Path(scratch), quiet=quiet)


def _run(
    workspace: Workspace, sweep: Sweep, trials: tuple[Trial, ...], number: int, scratch: Path, *, quiet: bool
) -> Tried:
    program = programs.asked_for(workspace, sweep, tree=WORK_TREE)
    batch = Batch(sweep, 1, None, program, (trials[number],), Shape.INDEXED)
    for path, content in overlay(batch, bases(workspace.root), workspace.settings).tree:
        files.write_file(scratch / "batch" / path, content)
    environment = _environment(workspace, sweep, scratch)
    done = subprocess.run(
        [_interpreter(sweep), str(scratch / "batch" / "launch.py")],
        cwd=workspace.root,
        env=environment,
        stdout=sys.stderr if quiet else None,
        check=False,
    )
    left = scratch / "results" / f"{environment['SWEEP_POD_UID']}.json"
    found = records.read(left.read_bytes()) if left.is_file() else None
    record = found if isinstance(found, Record) else None
    return Tried(trials[number], number, len(trials), record, done.returncode)


def _interpreter(sweep: Sweep) -> str:
    return sys.executable if sweep.run.interpreter in {"python", "python3"} else sweep.run.interpreter


def _environment(workspace: Workspace, sweep: Sweep, scratch: Path) -> Mapping[str, str]:
    """Give the trial what a pod would have, and nothing of the person's own environment but PATH."""
    for folder in ("results", "scratch"):
        (scratch / folder).mkdir()
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(scratch / "scratch"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": str(sweep.run.resources.threads),
        "SWEEP_LAUNCH": str(scratch / "batch" / "launch.json"),
        "SWEEP_TABLE": str(scratch / "batch"),
        "SWEEP_RESULTS": str(scratch / "results"),
        "SWEEP_SCRATCH": str(scratch / "scratch"),
        "SWEEP_POD_UID": str(uuid.uuid4()),
        "SWEEP_RAN": "process",
        "SWEEP_INDEX": "0",
    }
    if sweep.run.data is not None:
        dataset = workspace.settings.datasets[sweep.run.data]
        data = workspace.root / STATE / "data" / dataset.name
        environment["SWEEP_DATA"] = str(datasets.ready(dataset, data, code=workspace.root))
    return environment
