"""`sweep show`: one trial, its result, and the commits that made it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweepledger.commands.reports.outputs import log_link
from sweepledger.commands.repository import at_commit, catalog
from sweepledger.commands.repository.batch_records import read_records_files
from sweepledger.commands.repository.catalog import summary_row
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.rounds.evidence import foreign_labels
from sweepledger.formats import record_json, records_jsonl
from sweepledger.formats.summary_csv import SummaryRow
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.git import Commit, commits
from sweepledger.results.paths import records_path, results_folder
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import LOCK_FILE
from sweepledger.structs.record import NO_CURVES, CurvePoint, Environment, Record
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, as_data, bytes_digest


@dataclass(frozen=True)
class TrialDetails:
    """A trial with its result and its commits, from git."""

    trial: str
    index: int
    batch: StoredBatch
    assignment: Mapping[str, Value]
    result: SummaryRow | None
    """None while it is not recorded."""
    commits: tuple[tuple[str, Commit], ...]
    """What each commit did: requested, generated, recorded."""
    message: str | None = None
    """Why its last attempt did not succeed, as launcher or engine report it."""
    logs: str | None = None
    """Where a log system shows its output."""
    environment: Environment | None = None
    """The environment of its last recorded attempt; None if no record has one."""
    is_laptop: bool = False
    """Whether its batch is marked as made on a laptop."""
    foreign: tuple[str, ...] = ()
    """Foreign evidence that the round of its batch had, in words."""
    curves: Mapping[str, Sequence[CurvePoint]] = field(default_factory=lambda: NO_CURVES)
    """The learning curves of its last recorded attempt."""

    @property
    def parent(self) -> str | None:
        """The parent trial."""
        return self.batch.lock.parents.get(self.index)

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        lock, result = self.batch.lock, self.result
        return {
            "trial": self.trial,
            "sweep": lock.sweep,
            "batch": lock.name,
            "index": self.index,
            "configuration": dict(self.assignment),
            "round": lock.round,
            "parent": self.parent,
            "status": result.status if result else "missing",
            "reason": result.reason if result else None,
            "message": self.message,
            "logs": self.logs,
            "attempts": result.attempts if result else 0,
            "metrics": dict(result.metrics) if result else {},
            "curves": {name: [list(point) for point in points] for name, points in self.curves.items()},
            "provenance": {
                "spec": {"path": lock.spec.path, "digest": lock.spec.digest},
                "program": as_data(lock.program) | {"digest": lock.program.digest},
                "generator": lock.generator,
                "seed": result.seed if result else None,
                "ran": result.ran if result else None,
                "made_on": "laptop" if self.is_laptop else None,
                "foreign": list(self.foreign),
                "environment": record_json.as_object(self.environment),
                "started": result.started if result else None,
                "finished": result.finished if result else None,
            },
            "commits": [
                {
                    "action": did,
                    "commit": commit.id,
                    "author": commit.author,
                    "date": commit.date,
                    "subject": commit.subject,
                }
                for did, commit in self.commits
            ],
        }


def show(workspace: Workspace, trial: str) -> TrialDetails:
    """Return a trial by its id or the beginning of it. Raises UsageError, RepositoryError."""
    listed = catalog.find_trial(workspace.root, trial)
    values, result = listed.batch.rows[listed.index].values, summary_row(workspace.root, listed)
    generated_by, last = tuple(_batch_commits(workspace, listed.batch.lock)), _last_attempt(workspace, listed)
    return TrialDetails(
        listed.id,
        listed.index,
        listed.batch,
        values,
        result,
        generated_by,
        last.error if last and not last.status.is_success else None,
        log_link(workspace, listed),
        last.environment if last else None,
        listed.batch.name in catalog.laptop_batches_here(workspace.root, listed.batch.sweep),
        _foreign_evidence(workspace, listed.batch.lock, dict(generated_by).get("generated")),
        last.curves if last else NO_CURVES,
    )


def _foreign_evidence(workspace: Workspace, lock: BatchLock, commit: Commit | None) -> tuple[str, ...]:
    """Return the foreign evidence of a round, as it was in the commit that generated the batch."""
    if lock.round is None or commit is None:
        return ()
    settings = at_commit.settings_or_defaults(workspace.repository, commit.id)
    sweep = at_commit.read_sweep(workspace.repository, commit.id, lock.spec.path, settings)
    return foreign_labels(workspace.repository, commit.id, sweep) if isinstance(sweep, Sweep) else ()


def _last_attempt(workspace: Workspace, trial: catalog.ListedTrial) -> Record | None:
    """Return the record of the last attempt; None if there is none."""
    contents = read_records_files(workspace.root, trial.batch)
    records = [record for content in contents for record in records_jsonl.records(content)]
    attempts = [record for record in records if isinstance(record, Record) and record.trial == trial.id]
    return max(attempts, key=lambda record: record.attempt, default=None)


def _batch_commits(workspace: Workspace, batch_lock: BatchLock) -> Iterator[tuple[str, Commit]]:
    """Return the commits that requested a batch, generated it and recorded it, as far as they exist."""
    spec = batch_lock.spec.path
    lock = f"{ACTIVE}/{batch_lock.name}/{LOCK_FILE}"
    records = f"{results_folder(batch_lock.sweep)}/{records_path(batch_lock.name)}"
    history = commits(workspace.repository, spec, lock, records)
    generated = next((place for place, commit in enumerate(history) if lock in commit.files), len(history))
    # The spec may have changed after the batch, and may even have been restored.
    before = [commit for commit in history[: generated + 1] if spec in commit.files]
    after = [commit for commit in history[generated + 1 :] if spec in commit.files]
    contents = workspace.repository.blobs(commit.files[spec] for commit in before + after)
    digests = {identity: bytes_digest(content) for identity, content in contents.items()}
    same, same_after = (
        [commit for commit in part if digests[commit.files[spec]] == batch_lock.spec.digest]
        for part in (before, after)
    )
    for commit in (same or same_after or before)[-1:]:
        yield "requested", commit
    yield from (("generated", commit) for commit in history[generated : generated + 1])
    yield from (
        ("recorded", commit) for commit in [commit for commit in history if records in commit.files][:1]
    )
