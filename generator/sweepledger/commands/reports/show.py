"""`sweep show`: one trial, its result, and the commits that made it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.commands import ledger
from generator.commands.counted import row_of
from generator.commands.recorded import records_file
from generator.commands.workspace import Workspace
from generator.formats import record
from generator.formats.lock import LOCK_FILE
from generator.formats.summary import SummaryRow
from generator.repo.batches import ACTIVE, StoredBatch
from generator.repo.files import read_file
from generator.repo.git import Commit, commits
from generator.results import records_path, results_folder
from generator.structs.batch import Lock
from generator.structs.record import Record
from generator.structs.values import Value, bytes_digest

TOLD = ("error", "said")
"""In the details of a record: what the launcher says of an attempt, or the engine where no launcher did."""


@dataclass(frozen=True)
class Shown:
    """All that git knows of a trial."""

    trial: str
    index: int
    batch: StoredBatch
    assignment: Mapping[str, Value]
    result: SummaryRow | None
    """None while it is not recorded."""
    commits: tuple[tuple[str, Commit], ...]
    """What each commit did: asked, generated, recorded."""
    said: str | None = None
    """Why its last attempt did not end well, as launcher or engine tell it."""

    @property
    def parent(self) -> str | None:
        """The trial whose checkpoints it goes on from."""
        return self.batch.lock.parents.get(self.index)

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        held, result = self.batch.lock, self.result
        return {
            "trial": self.trial,
            "sweep": held.sweep,
            "batch": held.name,
            "index": self.index,
            "assignment": dict(self.assignment),
            "round": held.round,
            "parent": self.parent,
            "status": result.status if result else "missing",
            "reason": result.reason if result else None,
            "said": self.said,
            "attempts": result.attempts if result else 0,
            "metrics": dict(result.metrics) if result else {},
            "provenance": {
                "spec": {"path": held.spec_path, "digest": held.spec_digest},
                "program": held.program.as_data() | {"digest": held.program.digest},
                "generator": held.generator,
                "seed": result.seed if result else None,
                "ran": result.ran if result else None,
                "started": result.started if result else None,
                "finished": result.finished if result else None,
            },
            "commits": [
                {
                    "did": did,
                    "commit": commit.id,
                    "author": commit.author,
                    "date": commit.date,
                    "subject": commit.subject,
                }
                for did, commit in self.commits
            ],
        }


def show(workspace: Workspace, trial: str) -> Shown:
    """Find a trial by its id or the beginning of it. Raises UsageError, RepositoryError."""
    found = ledger.find(workspace, trial)
    values, result = found.batch.rows[found.index].values, row_of(workspace, found)
    made, said = tuple(_made(workspace, found.batch.lock)), _said(workspace, found)
    return Shown(found.id, found.index, found.batch, values, result, made, said)


def _said(workspace: Workspace, trial: ledger.Found) -> str | None:
    """Read why the last attempt that is recorded did not end well; None where it did, or did not say."""
    path = workspace.root / records_file(trial.batch)
    lines = record.read_lines(read_file(path).decode(errors="replace")) if path.is_file() else ()
    attempts = [one for one in lines if isinstance(one, Record) and one.trial == trial.id]
    last = max(attempts, key=lambda one: one.attempt, default=None)
    told = [last.details.get(name) for name in TOLD] if last and not last.status.is_success else []
    return next((text for text in told if isinstance(text, str)), None)


def _made(workspace: Workspace, held: Lock) -> Iterator[tuple[str, Commit]]:
    """Find the commits that asked for a batch, generated it and recorded it, as far as there are any."""
    spec = held.spec_path
    lock = f"{ACTIVE}/{held.name}/{LOCK_FILE}"
    records = f"{results_folder(held.sweep)}/{records_path(held.name)}"
    history = commits(workspace.repository, spec, lock, records)
    generated = next((place for place, commit in enumerate(history) if lock in commit.files), len(history))
    # The spec may have been touched after the batch, and even been put back to what it was.
    before = [commit for commit in history[: generated + 1] if spec in commit.files]
    after = [commit for commit in history[generated + 1 :] if spec in commit.files]
    contents = workspace.repository.blobs(commit.files[spec] for commit in before + after)
    digests = {identity: bytes_digest(content) for identity, content in contents.items()}
    same, same_after = (
        [commit for commit in part if digests[commit.files[spec]] == held.spec_digest]
        for part in (before, after)
    )
    for asked in (same or same_after or before)[-1:]:
        yield "asked", asked
    yield from (("generated", commit) for commit in history[generated : generated + 1])
    yield from (("recorded", commit) for commit in [one for one in history if records in one.files][:1])
