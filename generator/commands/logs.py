"""`sweep logs`: what a trial printed, as kept beside its record."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from generator.commands import ledger
from generator.commands.reading_pod import ReadingPod
from generator.commands.workspace import Workspace
from generator.errors import UsageError
from generator.repo import volume


@dataclass(frozen=True)
class Output:
    """What one attempt printed, its middle cut if it was long."""

    uid: str
    out: str
    err: str


@dataclass(frozen=True)
class Logs:
    """A trial's kept output, an attempt at a time."""

    trial: str
    batch: str
    attempts: tuple[Output, ...]


def logs(workspace: Workspace, trial: str, *, state: Path) -> Logs:
    """Find a trial's kept output on this machine. Raises UsageError if there is none."""
    found = ledger.find(workspace, trial)
    kept = volume.kept_output(state / "results", found.batch.name, found.index)
    if not kept:
        raise UsageError(
            f"no output of {found.id} is kept here",
            hint="it stays on the results volume of whatever ran it; name its state folder by --state, "
            "or read a cluster's volume by --by-pod",
        )
    return Logs(found.id, found.batch.name, tuple(Output(uid, out, err) for uid, (out, err) in kept.items()))


def logs_by_pod(workspace: Workspace, trial: str, pod: ReadingPod) -> Logs:
    """Read a trial's kept output from a volume that only pods can read.

    Raises UsageError if there is none, ClusterError, StorageError.
    """
    batch = ledger.find(workspace, trial).batch.name
    with tempfile.TemporaryDirectory(prefix="sweep-logs-") as folder:
        results = Path(folder) / "results"
        results.mkdir()
        pod.copy(batch, results)
        return logs(workspace, trial, state=Path(folder))
