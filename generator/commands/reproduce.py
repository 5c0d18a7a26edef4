"""`sweep reproduce`: what exactly a recorded trial was, and whether it comes out the same here."""

import re
import shlex
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.commands import past, recorded
from generator.commands.counted import Counted, counted
from generator.commands.rerunning import rerun
from generator.commands.workspace import Workspace
from generator.errors import UsageError
from generator.formats import json, launch
from generator.formats.launch import LAUNCH_FILE
from generator.formats.summary import SummaryRow
from generator.render.values import words
from generator.repo.batches import StoredBatch
from generator.results import results_folder
from generator.structs.batch import Lock
from generator.structs.record import Record
from generator.structs.values import Value

TIMING = re.compile(
    r"(?:^|[_./ -])(?:seconds|secs?|ms|minutes|hours|time|duration|runtime|elapsed|latency|throughput)$"
    r"|per[_ -]?(?:second|sec|s)$",
    re.IGNORECASE,
)
"""Names of metrics that say how long something took, or how fast it was."""


@dataclass(frozen=True)
class Recipe:
    """All that a trial was: who has these has the trial."""

    trial: str
    index: int
    lock: Lock
    commit: str | None
    """One that holds the code; None where this clone has none."""
    assignment: Mapping[str, Value]
    seed: int
    command: tuple[str, ...]
    """The trial's own words; what only a pod can know is in angle brackets."""
    ran: str | None
    """What ran it: an image, or `process`; None while it is not recorded."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Give what to paste into a shell at the root of a clone, to run it by hand."""
        folder, data = f"../{self.lock.sweep}-{self.trial}", self.lock.program.data
        variables = [f"SWEEP_SEED={self.seed}", "SWEEP_RESULT=result.json"]
        variables += ["SWEEP_DATA=<folder>"] if data else []
        return (
            shlex.join(["git", "worktree", "add", "--detach", folder, self.commit or "<commit>"]),
            f"cd {shlex.quote(folder)} && env {' '.join(variables)} {shlex.join(self.command)}",
        )

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        return {
            "trial": self.trial,
            "sweep": self.lock.sweep,
            "batch": self.lock.name,
            "index": self.index,
            "code": {**self.lock.program.as_data()["code"], "commit": self.commit},
            "image": self.lock.program.image,
            "ran": self.ran,
            "data": self.lock.program.as_data()["data"],
            "assignment": dict(self.assignment),
            "seed": self.seed,
            "command": list(self.command),
            "lines": list(self.lines),
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric, as recorded and as it came out; None where it was not finite, or not reported."""

    name: str
    recorded: float | None
    found: float | None
    where: str
    """Which file says what was recorded."""
    is_timing: bool = False
    """It says how long something took, by its name: that never repeats, so it decides nothing."""

    @property
    def is_equal(self) -> bool:
        """Tell whether both are the same to the last bit."""
        return _bits(self.recorded) == _bits(self.found)

    @property
    def differs(self) -> bool:
        """Tell whether it is another number, and that means something."""
        return not self.is_equal and not self.is_timing


@dataclass(frozen=True)
class Reproduced:
    """A trial that was run again."""

    recipe: Recipe
    record: Record | None
    output: Mapping[str, str]
    recorded: str
    """The status that git holds of it."""
    metrics: tuple[Measured, ...]

    @property
    def is_equal(self) -> bool:
        """Tell whether it ended as recorded, with every metric the same to the last bit."""
        ended = self.record is not None and str(self.record.status) == self.recorded
        return ended and not any(one.differs for one in self.metrics)

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        return {
            **self.recipe.as_data(),
            "equal": self.is_equal,
            "status": {"recorded": self.recorded, "found": str(self.record.status) if self.record else None},
            "metrics": [
                {
                    "name": one.name,
                    "recorded": one.recorded,
                    "found": one.found,
                    "file": one.where,
                    "equal": one.is_equal,
                    "timing": one.is_timing,
                }
                for one in self.metrics
            ],
        }


def recipe(workspace: Workspace, trial: str) -> Recipe:
    """Say what a trial was. Raises UsageError, RepositoryError."""
    return _recipe(workspace, counted(workspace, trial))


def reproduce(workspace: Workspace, trial: str) -> Reproduced:
    """Run a recorded trial here and compare what it reports, bit for bit.

    Raises UsageError for one that has no recorded attempt, and what `rerun` raises.
    """
    known = counted(workspace, trial)
    batch, record, row = known.found.batch, known.record, known.row
    if record is None:
        raise UsageError(
            f"no attempt at {known.found.id} is recorded, so there is nothing to compare with",
            hint=f"`sweep show {known.found.id}` says where it stands; `sweep try` runs one of today's spec",
        )
    found, output = rerun(workspace, batch, known.found.index)
    metrics = tuple(_measured(batch, record, row, found))
    status = str(row.status) if row else str(record.status)
    return Reproduced(_recipe(workspace, known), found, output, status, metrics)


def _recipe(workspace: Workspace, known: Counted) -> Recipe:
    batch, index = known.found.batch, known.found.index
    lock, values = batch.lock, batch.rows[index]
    instructions = batch.tree[LAUNCH_FILE]
    order = [column.name for column in launch.columns(instructions)]
    seed = lock.seed_base + values.replicate
    told = (str(json.load(instructions)["interpreter"]), seed)
    return Recipe(
        trial=known.found.id,
        index=index,
        lock=lock,
        commit=past.holding(workspace.repository, lock.program.code.tree, lock.program.code.path),
        assignment=values.values,
        seed=seed,
        command=tuple(words(lock.program.command, values.values, order, told)),
        ran=known.row.ran if known.row else None,
    )


def _measured(
    batch: StoredBatch, record: Record, row: SummaryRow | None, found: Record | None
) -> Iterator[Measured]:
    """Compare with what the record says, and with the summary where that says something else."""
    got = found.metrics if found else {}
    for name in dict.fromkeys((*record.metrics, *got)):
        is_timing = name != batch.lock.metric.name and TIMING.search(name) is not None
        values = record.metrics.get(name), got.get(name)
        yield Measured(name, *values, recorded.records_file(batch), is_timing)
    for name, value in (row.metrics if row else {}).items():
        if _bits(value) != _bits(record.metrics.get(name)):
            where = f"{results_folder(batch.lock.sweep)}/summary.csv"
            yield Measured(name, value, got.get(name), where)


def _bits(value: float | None) -> bytes | None:
    # As it is recorded: there is no minus zero in a record.
    return None if value is None else struct.pack(">d", value + 0.0)
