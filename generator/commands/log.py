"""`sweep log`: the history of sweeps, read from git alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from generator.commands import ledger
from generator.commands.ledger import RESULTS, SUMMARY
from generator.commands.workspace import SPECS, Workspace
from generator.formats import lock, summary
from generator.formats.lock import LOCK_FILE
from generator.repo.batches import ACTIVE, ARCHIVE
from generator.repo.git import Commit, commits
from generator.structs.batch import Lock
from generator.structs.names import split_batch_name
from generator.structs.sweep import Metric


@dataclass(frozen=True)
class Entry:
    """One thing that a commit did to a sweep."""

    sweep: str
    kind: str
    """`spec`, `batch` or `results`."""
    commit: Commit
    text: str
    best: float | None = None
    change: float | None = None
    """Of the best metric since the results before."""


def log(workspace: Workspace, name: str | None = None) -> tuple[Entry, ...]:
    """Tell a sweep's story, or all of them, oldest first."""
    found = commits(workspace.repository, SPECS, ACTIVE, RESULTS)
    story = _Story(workspace, found)
    return tuple(entry for commit in found for entry in story.entries(commit) if name in {None, entry.sweep})


class _Story:
    """Remembers what the commits before have said."""

    def __init__(self, workspace: Workspace, found: tuple[Commit, ...]) -> None:
        self._metrics: dict[str, Metric] = {}
        self._best: dict[str, float] = {}
        self._contents = _contents(workspace, found)

    def entries(self, commit: Commit) -> Iterator[Entry]:
        """Tell what one commit did: asked first, then generated, then recorded."""
        parted = [(path, path.split("/")) for path in commit.files]
        for path, parts in parted:
            if parts[0] == SPECS and path.endswith(".yaml"):
                yield Entry(parts[-1].removesuffix(".yaml"), "spec", commit, commit.subject)
        for path, parts in parted:
            if path.startswith(f"{ACTIVE}/") and parts[-1] == LOCK_FILE and split_batch_name(parts[2]):
                yield self._batch(commit, path)
        for path, parts in parted:
            if parts[0] == RESULTS and parts[-1] == SUMMARY:
                yield self._results(commit, path, parts[1])

    def _batch(self, commit: Commit, path: str) -> Entry:
        held: Lock = lock.read(self._contents[commit.id, path])
        self._metrics[held.sweep] = held.metric
        return Entry(held.sweep, "batch", commit, f"{held.name}: {held.trials} trials")

    def _results(self, commit: Commit, path: str, sweep: str) -> Entry:
        rows = summary.read(self._contents[commit.id, path].decode()).rows
        done = sum(row.status == "ok" for row in rows)
        metric = self._metrics.get(sweep)
        best = ledger.ranked(rows, metric.name, metric.goal)[:1] if metric else ()
        if metric is None or not best:
            return Entry(sweep, "results", commit, f"{done}/{len(rows)} trials ok, no winner")
        winner, value = best[0], best[0].metrics[metric.name]
        before = self._best.get(sweep)
        self._best[sweep] = value
        text = f"{done}/{len(rows)} trials ok, best {metric.name} {value:.6g} ({winner.trial})"
        return Entry(sweep, "results", commit, text, value, None if before is None else value - before)


def _contents(workspace: Workspace, found: tuple[Commit, ...]) -> dict[tuple[str, str], bytes]:
    """Read every lock and summary of the history with two git processes."""
    wanted = [
        (commit.id, path)
        for commit in found
        for path in commit.files
        if path.endswith((f"/{LOCK_FILE}", f"/{SUMMARY}")) and not path.startswith(ARCHIVE)
    ]
    ids = workspace.repository.blob_ids(wanted)
    blobs = workspace.repository.blobs(ids.values())
    return {place: blobs[identity] for place, identity in ids.items()}
