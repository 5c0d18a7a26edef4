"""`sweep fetch`: the files that a trial kept, from the results volume, each held against its checksum."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.commands.counted import Counted, counted
from generator.commands.reading_pod import ReadingPod
from generator.commands.workspace import Workspace
from generator.errors import IdleError
from generator.repo import artifacts
from generator.structs.record import Artifact, Record


@dataclass(frozen=True)
class Fetched:
    """What was brought, and where it lies."""

    trial: str
    uid: str
    folder: Path
    files: tuple[Artifact, ...]
    left_out: int
    """Files of the trial that its record does not name: too many, or none that could be read."""

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        return {
            "trial": self.trial,
            "uid": self.uid,
            "folder": str(self.folder),
            "files": [{"path": one.path, "bytes": one.bytes, "sha256": one.sha256} for one in self.files],
            "left_out": self.left_out,
        }


def fetch(
    workspace: Workspace, trial: str, *, into: Path | None, state: Path, pod: ReadingPod | None = None
) -> Fetched:
    """Copy what the attempt that counts has kept; from a folder, or with `pod` from a cluster's volume.

    What is there already as recorded stays. Raises IdleError where there is nothing, UsageError,
    StorageError for a file that is missing or another than recorded, ClusterError.
    """
    known = counted(workspace, trial)
    record = known.record
    if record is None or not record.artifacts:
        why = "no attempt at it is recorded" if record is None else "its record names none"
        raise IdleError(
            f"there are no artifacts of {known.found.id}: {why}",
            hint="a trial keeps what it writes below $SWEEP_ARTIFACTS",
        )
    folder = into or workspace.root / "artifacts" / known.found.id
    places = [(one, artifacts.place_of(one, folder)) for one in record.artifacts]
    wanted = [(one, place) for one, place in places if not artifacts.is_there(one, place)]
    if wanted and pod is not None:
        _by_pod(pod, known, record, wanted)
    elif wanted:
        name, index = known.found.batch.name, str(known.found.index)
        roots = [state / volume / name / index for volume in ("results", "artifacts")]
        for one, place in wanted:
            with artifacts.opened(roots, record.uid, one) as source:
                artifacts.keep(source, one, place)
    left_out = record.details.get("artifacts_left_out", 0)
    return Fetched(
        known.found.id, record.uid, folder, record.artifacts, left_out if isinstance(left_out, int) else 0
    )


def _by_pod(pod: ReadingPod, known: Counted, record: Record, wanted: list[tuple[Artifact, Path]]) -> None:
    below = f"{known.found.batch.name}/{known.found.index}/artifacts/{record.uid}"
    with pod.running() as reader:
        for one, place in wanted:
            with reader.opened(f"{below}/{one.path}", one.bytes) as source:
                artifacts.keep(source, one, place)
