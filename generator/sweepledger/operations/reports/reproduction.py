"""The rerun of a recorded trial: its recipe, and whether it has the same result."""

import re
import shlex
import struct
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sweepledger.engine.local import machine
from sweepledger.engine.local.attempt_records import DATA_CHANGED
from sweepledger.engine.local.engine import LocalEngine
from sweepledger.engine.local.local_batch import DesiredBatch
from sweepledger.errors import RepositoryError, SpecError, StorageError, UsageError
from sweepledger.formats import json, launch_json, record_json
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.catalog import CountedTrial, counted_trial
from sweepledger.operations.repository.outside_imports import environment_differences, locked_python_path
from sweepledger.operations.repository.rendered_manifests import desired_batch
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.render.command import expand_command
from sweepledger.repo import results_volume
from sweepledger.repo.base_files import packaged_launcher
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import Mirror, commit_with_code, store_code
from sweepledger.repo.state import DATA, state_folder
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import LOCK_FILE, results_folder
from sweepledger.structs.record import Environment, Record, SummaryRow
from sweepledger.structs.values import Value, as_data

TICK_SECONDS = 0.5


def _desired_state(
    workspace: Workspace, batch: StoredBatch, index: int, state: Path
) -> tuple[DesiredBatch, tuple[str, ...]]:
    """Return the batch to run, and how the environment here differs from the locked one."""
    repository = workspace.repository
    paths = (f"{place}/{batch.name}/{LOCK_FILE}" for place in (ACTIVE, ARCHIVE))
    commits = [commit for commit, _ in at_commit.file_versions(repository, "HEAD", *paths)]
    if not commits:
        hint = "commit it, and run it by `sweep cluster local`"
        raise RepositoryError(f"{batch.folder} is in no commit", hint=hint)
    commit = commits[-1]  # which added the batch, so it has the settings and bases of the batch
    mirror = Mirror(state, repository, workspace.settings.git.branch)
    store_code(repository, batch.lock.program.code, ["HEAD", commit])
    cache = state_folder(repository) / DATA
    desired, started = desired_batch(repository, commit, batch, mirror, cache, workspace.settings.trials)
    alone = replace(desired.batch, indexes=(index,), parallelism=1, retries=0, max_failed=None)
    python_path = locked_python_path(started, repository, batch.folder)
    desired = replace(desired, batch=alone, python_path=python_path, failures=0)
    return desired, environment_differences(started)


TIMING_NAME = re.compile(
    r"(?:^|[_./ -])(?:seconds|secs?|ms|minutes|hours|time|duration|runtime|elapsed|latency|throughput)$"
    r"|per[_ -]?(?:second|sec|s)$",
    re.IGNORECASE,
)
"""Names of metrics that are durations or rates."""


@dataclass(frozen=True)
class Recipe:
    """Everything that is needed to run a trial again."""

    trial: str
    index: int
    lock: BatchLock
    commit: str | None
    """A commit with the code tree; None if this clone has none."""
    assignment: Mapping[str, Value]
    seed: int
    command: tuple[str, ...]
    """The trial's command; values that only a pod knows are in angle brackets."""
    ran: str | None
    """The image that ran it, or `process`; None while it is not recorded."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return shell commands, for the root of a clone, that run the trial manually."""
        folder, data = f"../{self.lock.sweep}-{self.trial}", self.lock.program.data
        variables = [f"SWEEP_SEED={self.seed}", "SWEEP_RESULT=result.json"]
        variables += ["SWEEP_DATA=<folder>"] if data else []
        workdir = self.lock.program.workdir
        start = folder if workdir is None else f"{folder}/{workdir}"
        links = [
            f"ln -s <folder of {name}> {shlex.quote(path)}"
            for name, path in (data.at.items() if data else ())
        ]
        command = f"env {' '.join(variables)} {shlex.join(self.command)}"
        return (
            shlex.join(["git", "worktree", "add", "--detach", folder, self.commit or "<commit>"]),
            " && ".join([f"cd {shlex.quote(start)}", *links, command]),
        )

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "trial": self.trial,
            "sweep": self.lock.sweep,
            "batch": self.lock.name,
            "index": self.index,
            "code": {**as_data(self.lock.program.code), "commit": self.commit},
            "image": self.lock.program.image,
            "ran": self.ran,
            "data": as_data(self.lock.program.data),
            "workdir": self.lock.program.workdir,
            "configuration": dict(self.assignment),
            "seed": self.seed,
            "command": list(self.command),
            "lines": list(self.lines),
        }


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """The recorded value of a metric and that of the rerun; None if it was not finite, or not reported."""

    name: str
    recorded: float | None
    rerun: float | None
    file: str
    """The file with the recorded value."""
    timing: bool = False
    """Whether the metric is a duration or a rate, which differs in every run and is not compared."""

    @property
    def is_equal(self) -> bool:
        """Return whether both are the same to the last bit."""
        return _bits(self.recorded) == _bits(self.rerun)

    @property
    def differs(self) -> bool:
        """Return whether the values differ and the metric is not a timing."""
        return not self.is_equal and not self.timing


@dataclass(frozen=True)
class Reproduction:
    """A trial that was run again."""

    recipe: Recipe
    record: Record | None
    output: Mapping[str, str]
    recorded: str
    """The status in git."""
    metrics: tuple[MetricComparison, ...]
    recorded_environment: Environment | None = None
    environment_differences: tuple[str, ...] = ()
    """How the packages here differ from those that the batch has locked."""

    @property
    def environment(self) -> Environment | None:
        """The environment of the rerun."""
        return self.record.environment if self.record else None

    @property
    def has_other_environment(self) -> bool:
        """Return whether the rerun is known to have used different packages from the recorded trial."""
        known = None not in {self.recorded_environment, self.environment}
        return bool(self.environment_differences) or (known and self.recorded_environment != self.environment)

    @property
    def is_equal(self) -> bool:
        """Return whether the trial ended as recorded, with every metric the same to the last bit."""
        ended = self.record is not None and str(self.record.status) == self.recorded
        return ended and not any(metric.differs for metric in self.metrics)

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            **self.recipe.as_data(),
            "equal": self.is_equal,
            "environment": {
                "recorded": as_data(self.recorded_environment),
                "rerun": as_data(self.environment),
                "differences": list(self.environment_differences),
            },
            "status": {"recorded": self.recorded, "rerun": str(self.record.status) if self.record else None},
            "metrics": [{**asdict(metric), "equal": metric.is_equal} for metric in self.metrics],
        }


def recipe(workspace: Workspace, trial: str) -> Recipe:
    """Return a trial's recipe. Raises UsageError, RepositoryError."""
    return _recipe(workspace, counted_trial(workspace.root, trial))


def run_again(workspace: Workspace, trial: str) -> Reproduction:
    """Run a recorded trial under its own launcher, with its locked code, and compare its metrics bit for bit.

    Everything is kept in a temporary folder: neither git nor `sweep cluster local` see it. Raises UsageError if
    no attempt is recorded, SpecError if this machine cannot run it, StorageError for wrong data,
    RepositoryError, ToolError.
    """
    counted = counted_trial(workspace.root, trial)
    batch, record, row = counted.trial.batch, counted.record, counted.row
    if record is None:
        raise UsageError(
            f"no attempt at {counted.trial.id} is recorded, so there is nothing to compare with",
            hint=f"`sweep show {counted.trial.id}` shows its state; `sweep try` runs a trial of the current spec",
        )
    if batch.lock.shape.is_distributed:
        raise UsageError(
            f"{batch.name} has shape {batch.lock.shape}: its trials need a cluster",
            hint="`sweep retry` requests them again from a cluster",
        )
    with tempfile.TemporaryDirectory(prefix="sweep-reproduce-") as folder:
        state, place = Path(folder), batch.lock.place(counted.trial.index)
        desired, differences = _desired_state(workspace, batch, counted.trial.index, state)
        with LocalEngine(state, slots=1, launcher=packaged_launcher()) as engine:
            if problems := machine.capacity_problems(desired.batch, engine.capacity):
                raise SpecError(problems)
            engine.step([desired])
            while not engine.is_settled:
                engine.wait(TICK_SECONDS)
                engine.step([desired])
        kept = results_volume.attempt_output(state / "results", batch.name, place).values()
        output = {name: text for streams in kept for name, text in zip(("out", "err"), streams, strict=True)}
        records = map(record_json.read, results_volume.attempt_records(state / "results", batch.name, place))
        again = next((one for one in records if isinstance(one, Record)), None)
    if again is not None and again.reason == DATA_CHANGED:
        raise StorageError(
            f"{desired.data} changed while {counted.trial.id} ran again",
            hint="stop what writes to the dataset, and try again",
        )
    metrics = tuple(_metric_comparisons(batch, record, row, again.metrics if again else {}))
    status = str(row.status) if row else str(record.status)
    return Reproduction(
        *(_recipe(workspace, counted), again, output, status, metrics, record.environment, differences)
    )


def _recipe(workspace: Workspace, counted: CountedTrial) -> Recipe:
    batch, index = counted.trial.batch, counted.trial.index
    lock, values = batch.lock, batch.rows[index]
    instructions = batch.tree[launch_json.LAUNCH_FILE]
    order = [column.name for column in launch_json.read_table_layout(instructions).columns]
    seed = lock.run.seed_base + values.replicate
    context_values = (str(json.load(instructions)["interpreter"]), seed)
    return Recipe(
        trial=counted.trial.id,
        index=index,
        lock=lock,
        commit=commit_with_code(workspace.repository, lock.program.code),
        assignment=values.values,
        seed=seed,
        command=tuple(expand_command(lock.program.command, values.values, order, context_values)),
        ran=counted.row.ran if counted.row else None,
    )


def _metric_comparisons(
    batch: StoredBatch, record: Record, row: SummaryRow | None, metrics: Mapping[str, float | None]
) -> Iterator[MetricComparison]:
    """Compare the metrics with the record, and with the summary if its values differ."""
    for name in dict.fromkeys((*record.metrics, *metrics)):
        is_timing = name != batch.lock.metric.name and TIMING_NAME.search(name) is not None
        values = record.metrics.get(name), metrics.get(name)
        yield MetricComparison(name, *values, batch.records_file(), is_timing)
    for name, value in (row.metrics if row else {}).items():
        if _bits(value) != _bits(record.metrics.get(name)):
            where = f"{results_folder(batch.lock.sweep)}/summary.csv"
            yield MetricComparison(name, value, metrics.get(name), where)


def _bits(value: float | None) -> bytes | None:
    # Adding 0.0 turns -0.0 into 0.0, as records do.
    return None if value is None else struct.pack(">d", value + 0.0)
