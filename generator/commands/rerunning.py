"""One recorded trial, run once more on this machine: its batch rendered as it was, one index of it."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from generator.commands import committed, past
from generator.commands.rendering import rendered
from generator.commands.workspace import STATE, Workspace
from generator.engine import datasets
from generator.engine.local import machine, manifests
from generator.engine.local.engine import LocalEngine
from generator.engine.local.launching import Desired
from generator.engine.local.workload import BatchSpec
from generator.errors import RepositoryError, SpecError, UsageError
from generator.formats import record
from generator.formats.lock import LOCK_FILE
from generator.problems import Problem
from generator.repo import volume
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import Mirror
from generator.structs.record import Record
from generator.structs.settings import Settings

TICK_SECONDS = 0.5


def rerun(workspace: Workspace, batch: StoredBatch, index: int) -> tuple[Record | None, Mapping[str, str]]:
    """Run one row of a batch under its own launcher, with its locked code; give its record and its output.

    Everything is kept in a folder that goes afterwards: neither git nor `sweep local` learn of it. Raises
    SpecError where this machine cannot run it, RepositoryError, StorageError for wrong data, ToolError.
    """
    if batch.lock.shape.is_distributed:
        raise UsageError(
            f"{batch.name} has shape {batch.lock.shape}: its trials need a cluster",
            hint="`sweep retry` asks a cluster for them once more",
        )
    with tempfile.TemporaryDirectory(prefix="sweep-reproduce-") as folder:
        state = Path(folder)
        desired = _desired(workspace, batch, index, state)
        with LocalEngine(state, slots=1) as engine:
            lacking = machine.refuse([desired.batch], engine.capacity)
            if lacking:
                raise SpecError(lacking)
            engine.step([desired])
            while not engine.is_settled:
                engine.wait(TICK_SECONDS)
                engine.step([desired])
        kept = volume.kept_output(state / "results", batch.name, index)
        output = {name: text for one in kept.values() for name, text in zip(("out", "err"), one, strict=True)}
        found = map(record.read, volume.attempts(state / "results", batch.name, index))
        return next((one for one in found if isinstance(one, Record)), None), output


def _desired(workspace: Workspace, batch: StoredBatch, index: int, state: Path) -> Desired:
    repository, program = workspace.repository, batch.lock.program
    commit = _made_in(workspace, batch)
    settings = committed.settings(repository, commit)
    if not isinstance(settings, Settings):
        raise SpecError(settings)
    built = rendered(repository, commit, batch, settings)
    wrong = tuple(one for one in built if isinstance(one, Problem))
    if wrong:
        raise SpecError(wrong)
    parsed = manifests.parse(batch.name, [one for one in built if not isinstance(one, Problem)])
    if not isinstance(parsed, BatchSpec):
        raise SpecError(parsed)
    mirror = Mirror(state, str(workspace.root), workspace.settings.branch)
    mirror.borrow(repository)
    code = mirror.code(program.code.tree, program.code.path)
    return Desired(_alone(parsed, index), code, _data(workspace, batch, settings, code))


def _alone(batch: BatchSpec, index: int) -> BatchSpec:
    """Keep one index, and one attempt at it."""
    (job,) = (job for job in batch.jobs if index in job.indexes)
    return replace(batch, jobs=(replace(job, indexes=(index,), parallelism=1, retries=0, max_failed=None),))


def _made_in(workspace: Workspace, batch: StoredBatch) -> str:
    """Name the commit that brought a batch: its settings and bases are what it was made by."""
    places = (f"{place}/{batch.name}/{LOCK_FILE}" for place in (ACTIVE, ARCHIVE))
    found = [one for one, _ in past.versions(workspace.repository, "HEAD", *places)]
    if not found:
        raise RepositoryError(
            f"{batch.folder} is in no commit", hint="commit it, and run it by `sweep local`"
        )
    return found[-1]


def _data(workspace: Workspace, batch: StoredBatch, settings: Settings, code: Path) -> Path | None:
    data = batch.lock.program.data
    if data is None:
        return None
    known = [one.datasets.get(data.name) for one in (settings, workspace.settings)]
    dataset = next((one for one in known if one is not None and one.identity == data.digest), None)
    if dataset is None:
        raise RepositoryError(
            f"{batch.name} locked dataset {data.name} at {data.digest[:19]}, which no settings name",
            hint=f"restore datasets.{data.name}.digest in sweepledger.yaml",
        )
    return datasets.ready(dataset, workspace.root / STATE / "data" / data.name, code=code)
