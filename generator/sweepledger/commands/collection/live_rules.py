"""Rules of early stopping that follow the trials of a batch while it runs, where trials share a machine's files.

The launcher reads a file of thresholds again at each report. What it has seen goes to git with the records, so that
`sweep verify` repeats its decisions.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sweepledger import storage
from sweepledger.commands.collection.attempts import BatchAttempts
from sweepledger.commands.repository import at_commit
from sweepledger.commands.rounds.evidence import EvidenceSource
from sweepledger.formats import launch_json
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.results.outcomes import evaluate
from sweepledger.structs.early_stopping import COMPARING_RULES, ThresholdRule
from sweepledger.structs.sweep import Sweep

FOLDER = "thresholds"
"""In the state folder."""
SHARE = 20
"""The rules are computed again when a twentieth more trials have ended: all of them read all curves."""


@dataclass
class LiveRules:
    """Writes thresholds from all trials that have ended, those of the same batch included."""

    repository: Repository
    state: Path
    _ended: dict[str, int] = field(default_factory=dict)
    """How many trials of a batch had ended when its rules were computed last."""
    _sweeps: dict[tuple[str, str], Sweep | None] = field(default_factory=dict)
    """By commit and path of the spec."""

    def path(self, commit: str, batch: StoredBatch) -> Path | None:
        """Return the file of thresholds for the trials of a batch; None if its sweep has no rule that compares."""
        return None if self._sweep(commit, batch) is None else self.state / FOLDER / f"{batch.name}.json"

    def refresh(self, commit: str, batch: StoredBatch) -> bool:
        """Write the thresholds of a batch if enough trials have ended since; return whether. Raises StorageError."""
        sweep, path = self._sweep(commit, batch), self.path(commit, batch)
        if sweep is None or path is None:
            return False
        results = BatchAttempts.read(self.state / "results", batch).results
        ended = sum(outcome.status.is_final for outcome in evaluate(results).outcomes)
        before = self._ended.get(batch.name, 0)
        if ended < before + max(1, before // SHARE):
            return False
        self._ended[batch.name] = ended
        source = EvidenceSource(self.repository, commit, {batch.name: results})
        rules = [
            rule for rule in source.stop(sweep, batch.lock.program.digest) if isinstance(rule, ThresholdRule)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write_file(path, launch_json.write_thresholds(rules, batch.lock.metric.goal))
        return True

    def _sweep(self, commit: str, batch: StoredBatch) -> Sweep | None:
        """Return the sweep of a batch by the spec at a commit, if it has a rule that compares trials."""
        key = commit, batch.lock.spec.path
        if key not in self._sweeps:
            settings = at_commit.settings_or_defaults(self.repository, commit)
            sweep = at_commit.read_sweep(self.repository, *key, settings)
            compares = isinstance(sweep, Sweep) and isinstance(sweep.early_stop, COMPARING_RULES)
            self._sweeps = {one: kept for one, kept in self._sweeps.items() if one[0] == commit}
            self._sweeps[key] = sweep if compares and isinstance(sweep, Sweep) else None
        return self._sweeps[key]
