"""`sweep show`: one trial, its result, and the commits that made it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.commands import ledger
from generator.commands.workspace import Workspace
from generator.formats.summary import SummaryRow
from generator.repo.batches import ACTIVE, StoredBatch
from generator.repo.git import Commit, commits
from generator.structs.values import Value


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

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        held, result = self.batch.lock, self.result
        return {
            "trial": self.trial,
            "sweep": held.sweep,
            "batch": held.name,
            "index": self.index,
            "assignment": dict(self.assignment),
            "status": result.status if result else "missing",
            "reason": result.reason if result else None,
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
    held = found.batch.lock
    recorded = ledger.summary(workspace, held.sweep)
    rows = recorded.rows if recorded else ()
    result = next((row for row in rows if row.trial == found.id and row.program == held.program.digest), None)
    paths = {
        "asked": held.spec_path,
        "generated": f"{ACTIVE}/{held.name}/batch.yaml",
        "recorded": f"results/{held.sweep}/records/{held.name}.jsonl",
    }
    made = [(did, commits(workspace.repository, path)) for did, path in paths.items()]
    # The spec may have been touched after the batch that this trial came with.
    first = {did: history[0] for did, history in made if history}
    return Shown(
        found.id, found.index, found.batch, found.batch.rows[found.index].values, result, tuple(first.items())
    )
