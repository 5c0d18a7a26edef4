"""The collector's row of `benchmarks/cluster.py`: 10,000 finished trials, one commit. It needs no cluster."""

import math
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from benchmarks.meter import Used, measured
from benchmarks.scaling import TEN, git, grid, repository, sweep
from sweepledger.formats.record_json import to_line
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.record import ExpectedTrial, Record, Status

PRINTED = "epoch 1: loss=0.5\n" * 20
"""Of each trial: the collector lists such files and opens none."""


def finished(
    folder: Path, sizes: Sequence[int], leave: Callable[[Path, StoredBatch], None]
) -> tuple[Path, Path]:
    """Make a shallow clone, as the CronJob has it, of a merged sweep, and the volume that its trials left."""
    author, remote = repository(folder / "author", grid(*sizes)), folder / "remote.git"
    sweep(author, "generate", "big")
    git(author, "add", "--all")
    git(author, "commit", "-q", "-m", "Ask for a big sweep")
    git(folder, "clone", "-q", "--bare", str(author), str(remote))
    clone = folder / "clone"
    git(folder, "clone", "-q", "--depth=1", "--branch=main", f"file://{remote}", str(clone))
    (batch,) = batches.in_work_tree(author)
    leave(folder / "results", batch)
    return clone, folder / "results"


def leave(results: Path, batch: StoredBatch, uids: Mapping[int, str] | None = None) -> None:
    """Leave what the launcher leaves of each trial: lock, record, output. `uids` are those of the pods."""
    for trial in expected_trials(batch):
        uid = uids[trial.index] if uids else f"3f9a1c2e-0000-4000-8000-{trial.index:012}"
        leave_record(results, a_record(batch, trial, uid))


def leave_record(results: Path, record: Record) -> None:
    """Leave what the launcher leaves of one trial."""
    folder = results / record.batch / str(record.index)
    folder.mkdir(parents=True)
    (folder / ".lock").touch()
    (folder / f"{record.uid}.out").write_text(PRINTED)
    (folder / f"{record.uid}.err").touch()
    (folder / f"{record.uid}.json").write_text(to_line(record))


def a_record(batch: StoredBatch, trial: ExpectedTrial, uid: str) -> Record:
    """Write what a trial that went well says of itself."""
    return Record(
        trial=trial.trial,
        row=trial.row,
        batch=batch.name,
        index=trial.index,
        uid=uid,
        attempt=1,
        disruptions=0,
        status=Status.OK,
        reason=None,
        metrics=MappingProxyType({"loss": 1 / (1 + trial.index), "accuracy": 0.5 + trial.index / 30_000}),
        seconds=61.25,
        started="2026-01-01T00:00:00Z",
        finished="2026-01-01T00:01:01Z",
        ran=f"sha256:{'0' * 64}",
        code=batch.lock.program.code.tree,
        data=None,
        seed=trial.replicate,
        node=f"node-{trial.index % 100}",
        environment=None,
        details=MappingProxyType({"device": "cuda", "versions": {"torch": "2.9.0", "python": "3.13.1"}}),
    )


def collected() -> Used:
    """Give the CPU seconds and the memory of one collection, and see that it recorded every trial."""
    with tempfile.TemporaryDirectory() as scratch:
        clone, results = finished(Path(scratch), TEN, leave)
        used, records = collect(clone, results)
        assert records.count("\n") == math.prod(TEN) + len(["the first line"])
    return used


def collect(clone: Path, results: Path) -> tuple[Used, str]:
    """Give what one collection used, and the records that it committed."""
    command = [
        sys.executable,
        "-m",
        "sweepledger.cli",
        "cluster",
        "collect",
        "--push",
        f"--results={results}",
    ]
    used = measured(command, clone)
    git(clone, "pull", "-q", "--ff-only")
    files = sorted((clone / "results/big/records").iterdir())
    return used, "".join(file.read_text() for file in files)


if __name__ == "__main__":
    print(collected())
