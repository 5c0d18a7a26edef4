"""`sweep logs` and `sweep show --fetch`: the output of a trial, and its artifacts with their checksums."""

import tempfile
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sweepledger.errors import IdleError, UsageError
from sweepledger.operations.collection.attempts import evaluate_here
from sweepledger.operations.collection.record_store import ReaderPodOptions, open_files
from sweepledger.operations.repository import catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.process import ByteSource
from sweepledger.repo import artifacts, batches, results_volume
from sweepledger.results.bounds import artifacts_left_out
from sweepledger.storage import output_path
from sweepledger.structs.record import Artifact, Status, SummaryRow
from sweepledger.structs.run_config import Shape


@dataclass(frozen=True)
class AttemptOutput:
    """The output of one attempt; the middle of a long output is omitted."""

    uid: str
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Logs:
    """The kept output of a trial, by attempt."""

    trial: str
    batch: str
    attempts: tuple[AttemptOutput, ...]
    error: str = ""
    """What the record says, which is all there is of a trial that was killed before it printed anything."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"trial": self.trial, "batch": self.batch, "attempts": self.attempts}


def log_link(workspace: Workspace, listed: catalog.ListedTrial) -> str | None:
    """Return where the log system shows a trial; None if the settings name none.

    Each attempt has a pod of its own, or one with the trials beside it: it is the beginning of their names.
    """
    lock = listed.batch.lock
    own = str(lock.run.packed.pod(listed.index)) if lock.shape is Shape.INDEXED else listed.id
    values = {
        "namespace": workspace.settings.trials.namespace,
        "sweep": listed.sweep,
        "batch": listed.batch.name,
        "trial": listed.id,
        "pod": f"{lock.name}-{own}-",
    }
    link = workspace.settings.platform.logs
    return link and link.format_map({name: quote(value, safe="") for name, value in values.items()})


def _require_files(listed: catalog.ListedTrial, what: str) -> None:
    store = listed.batch.lock.store
    if not store.facts.keeps_files:
        raise IdleError(
            f"{what} of {listed.id} was not kept: the records of {listed.batch.name} travelled by store: {store}",
            hint="`sweep show TRIAL --reproduce --run` runs it again; results.store: volume keeps files of new batches",
        )


def _require_volume(listed: catalog.ListedTrial) -> None:
    """Raise UsageError if no pod can read the files of a batch."""
    store = listed.batch.lock.store
    if store.facts.has_sidecar:
        message = f"--by-pod reads a volume, and the files of {listed.id} are in a {store}"
        raise UsageError(message, hint="without --by-pod they are read from here")


def trial_logs(workspace: Workspace, trial: str, *, state: Path) -> Logs:
    """Return a trial's output on this machine, or in the bucket of its batch.

    Raises UsageError if there is none, IdleError if it was never kept, StorageError.
    """
    listed = catalog.find_trial(workspace.root, trial)
    kept = _kept_output(workspace, listed.batch, listed.index, state)
    if not kept:
        _require_files(listed, "the output")
        store = listed.batch.lock.store
        if store.facts.has_sidecar:
            raise UsageError(
                f"no output of {listed.id} is in the {store}",
                hint="its pod ended before it was saved, or it has expired",
            )
        raise UsageError(
            f"no output of {listed.id} is kept here",
            hint="it is on the results volume of the trial; name its state folder with --state, "
            "or read a cluster's volume with --by-pod",
        )
    return Logs(listed.id, listed.batch.name, kept)


def _kept_output(
    workspace: Workspace, batch: batches.StoredBatch, index: int, state: Path
) -> tuple[AttemptOutput, ...]:
    """Return the output of a trial's attempts from this machine, else from the bucket. Raises StorageError."""
    kept = results_volume.attempt_output(state / "results", batch.name, batch.lock.place(index))
    away = None if kept else open_files(workspace, batch)
    output = kept if away is None else away.output(batch.name, index)
    return tuple(AttemptOutput(uid, out, err) for uid, (out, err) in output.items())


def failed_logs(workspace: Workspace, reference: str, *, state: Path) -> tuple[Logs, ...]:
    """Return the output of a sweep's failed trials, recorded or not, from this machine or from the bucket.

    Raises UsageError, StorageError.
    """
    present = batches.in_work_tree(workspace.root)
    name = catalog.choose_sweep(workspace.root, reference, catalog.sweep_names(workspace, present))
    table = catalog.read_summary(workspace.root, name)
    rows = [*table.rows] if table else []
    stored = {batch.name: batch for batch in batches.readable(batches.of_sweep(present, name))}
    for batch in stored.values():
        evaluated = evaluate_here(batch, state / "results") if batch.is_active else None
        rows += map(SummaryRow.of, evaluated.outcomes) if evaluated else ()
    return tuple(
        Logs(
            row.trial,
            row.batch,
            _kept_output(workspace, stored[row.batch], row.index, state),
            row.error or "",
        )
        for row in rows
        if row.status.kind is Status.FAILED and row.batch in stored
    )


def logs_by_pod(workspace: Workspace, trial: str, pod: ReaderPodOptions) -> Logs:
    """Return a trial's output from a volume that only pods can read.

    Raises UsageError if there is none, ClusterError, StorageError.
    """
    listed = catalog.find_trial(workspace.root, trial)
    _require_volume(listed)
    _require_files(listed, "the output")
    with tempfile.TemporaryDirectory(prefix="sweep-logs-") as folder:
        results = Path(folder) / "results"
        results.mkdir()
        with pod.running() as reader:
            reader.copy(listed.batch.name, results)
        return trial_logs(workspace, trial, state=Path(folder))


@dataclass(frozen=True)
class FetchedArtifacts:
    """The copied files and their folder."""

    trial: str
    uid: str
    folder: Path
    files: tuple[Artifact, ...]
    omitted: int
    """Files of the trial that its record does not list: too many, or unreadable."""


def fetch_artifacts(
    workspace: Workspace, trial: str, *, into: Path, state: Path, pod: ReaderPodOptions | None = None
) -> FetchedArtifacts:
    """Copy the artifacts of the attempt that counts, from a folder, the bucket, or with `pod` a cluster's volume.

    Files that exist with the recorded checksum stay. Raises IdleError if there is nothing to copy,
    UsageError, StorageError for a file that is missing or differs from its record, ClusterError.
    """
    counted = catalog.counted_trial(workspace.root, trial)
    listed, record = counted.trial, counted.record
    if record is None or not (record.artifacts or record.artifact_list):
        why = "no attempt at it is recorded" if record is None else "its record names none"
        raise IdleError(
            f"there are no artifacts of {listed.id}: {why}",
            hint="a trial's artifacts are the files that it writes below $SWEEP_ARTIFACTS",
        )
    output_path(into)
    if pod is not None:
        _require_volume(listed)
    batch, index, uid = listed.batch, listed.index, record.uid
    is_here = (state / "results" / batch.name).is_dir()
    away = None if is_here else open_files(workspace, batch)
    with ExitStack() as stack:
        # The cluster's volume is reached on first use.
        reader = cache(lambda: stack.enter_context(pod.running())) if pod is not None else None

        def opened(path: str, size: int) -> AbstractContextManager[ByteSource]:
            """Open a file of the attempt."""
            if away is not None:
                return away.opened(batch.name, index, path, uid=uid)
            below = f"{batch.name}/{batch.lock.place(index)}"
            if reader is not None:
                return reader().opened(f"{below}/{path}", size)
            return artifacts.open_file([state / volume / below for volume in ("results", "artifacts")], path)

        named = record.artifacts
        if record.artifact_list is not None:  # in a file next to the record
            with opened(f"{uid}.artifacts", record.artifact_list.bytes) as source:
                named = artifacts.read_list(source, record.artifact_list)
        paths = tuple(map(output_path, artifacts.artifact_paths(named, into)))
        places = zip(named, paths, strict=True)
        wanted = [(artifact, place) for artifact, place in places if not artifacts.is_copied(artifact, place)]
        if wanted and (pod is not None or not is_here):
            _require_files(listed, "an artifact")
        for artifact, place in wanted:
            with opened(f"artifacts/{uid}/{artifact.path}", artifact.bytes) as source:
                artifacts.copy_verified(source, artifact, place)
    return FetchedArtifacts(listed.id, uid, into, named, artifacts_left_out(record))
