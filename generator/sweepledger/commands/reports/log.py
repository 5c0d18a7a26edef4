"""`sweep log`: the history of sweeps, read from git alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from generator.commands import ledger
from generator.commands.workspace import SPECS, Workspace
from generator.formats.glance import Asked, glance_at_lock, glance_at_summary
from generator.formats.lock import LOCK_FILE
from generator.formats.summary import SUMMARY_FILE
from generator.repo import batches
from generator.repo.batches import ACTIVE
from generator.repo.git import Commit, commits
from generator.results import results_folder
from generator.results.tree import RESULTS
from generator.results.words import duration
from generator.structs.names import is_sweep_name, split_batch_name

LONGEST_REASON = 200
"""Of what is wrong with a file; it quotes what a stranger wrote."""


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


@dataclass(frozen=True)
class Told:
    """A story, of one sweep or of all."""

    sweep: str | None
    entries: tuple[Entry, ...]


def log(workspace: Workspace, asked: str | None = None) -> Told:
    """Tell a sweep's story, or all of them, oldest first. Raises UsageError for one that there never was."""
    found = commits(workspace.repository, SPECS, ACTIVE, RESULTS)
    story = _Story(workspace, found)
    entries = tuple(entry for commit in found for entry in story.entries(commit))
    if asked is None:
        return Told(None, entries)
    present = ledger.sweeps(workspace, batches.in_work_tree(workspace.root))
    name = ledger.chosen(workspace, asked, present | {entry.sweep for entry in entries})
    return Told(name, tuple(entry for entry in entries if entry.sweep == name))


class _Story:
    """Remembers what the commits before have said."""

    def __init__(self, workspace: Workspace, found: tuple[Commit, ...]) -> None:
        self._asked: dict[str, Asked] = {}
        self._best: dict[str, float] = {}
        self._contents = _contents(workspace, found)

    def entries(self, commit: Commit) -> Iterator[Entry]:
        """Tell what one commit did: asked first, then generated, then recorded."""
        for path in commit.files:
            if sweep := _asked(path):
                yield Entry(sweep, "spec", commit, commit.subject)
        for path, blob in commit.files.items():
            if batch := _generated(path):
                yield self._told(commit, "batch", batch, blob)
        for path, blob in commit.files.items():
            if sweep := _recorded(path):
                yield self._told(commit, "results", sweep, blob)

    def _told(self, commit: Commit, kind: str, name: str, blob: str) -> Entry:
        """Tell of one file; history cannot be mended, so one that nobody can read is told of as well."""
        sweep = (split_batch_name(name) or (name,))[0]
        try:
            content = self._contents[blob]
            return (
                self._batch(commit, sweep, name, content)
                if kind == "batch"
                else self._results(commit, sweep, content)
            )
        except ValueError as error:
            file = f"{name}: {LOCK_FILE}" if kind == "batch" else SUMMARY_FILE
            reason = " ".join(str(error).split())[:LONGEST_REASON]
            return Entry(sweep, kind, commit, f"{file} cannot be read: {reason}")

    def _batch(self, commit: Commit, sweep: str, name: str, content: bytes) -> Entry:
        held = self._asked[sweep] = glance_at_lock(content)
        told = f", {held.round}" if held.round else ""
        return Entry(sweep, "batch", commit, f"{name}: {held.trials} trials{told}")

    def _results(self, commit: Commit, sweep: str, content: bytes) -> Entry:
        by = self._asked.get(sweep)
        seen = glance_at_summary(content.decode(), by)
        if by is None or seen.value is None:
            return Entry(sweep, "results", commit, f"{seen.ok}/{seen.trials} trials ok, no winner")
        done, spent = f"{seen.ok}/{seen.trials} trials ok", ""
        if by.round:
            spent = f", {duration(seen.seconds)} spent"
        if by.others:
            names = ", ".join(one.name for one in (by.metric, *by.others))
            return Entry(sweep, "results", commit, f"{done}, front of {seen.front} by {names}{spent}")
        before, value = self._best.get(sweep), seen.value
        self._best[sweep] = value
        text = f"{done}, best {by.metric.name} {value:.6g} ({seen.trial}){spent}"
        return Entry(sweep, "results", commit, text, value, None if before is None else value - before)


def _asked(path: str) -> str | None:
    """Name the sweep whose spec this is."""
    folder, _, file = path.rpartition("/")
    name = file.removesuffix(".yaml")
    return name if folder == SPECS and name != file and is_sweep_name(name) else None


def _generated(path: str) -> str | None:
    """Name the batch whose lock this is."""
    folder, _, name = path.removesuffix(f"/{LOCK_FILE}").rpartition("/")
    return name if folder == ACTIVE and path.endswith(f"/{LOCK_FILE}") and split_batch_name(name) else None


def _recorded(path: str) -> str | None:
    """Name the sweep whose summary this is."""
    name = path.removeprefix(f"{RESULTS}/").removesuffix(f"/{SUMMARY_FILE}")
    return name if is_sweep_name(name) and path == f"{results_folder(name)}/{SUMMARY_FILE}" else None


def _contents(workspace: Workspace, found: tuple[Commit, ...]) -> dict[str, bytes]:
    """Read every lock and summary of the history with one git process."""
    return workspace.repository.blobs(
        blob for commit in found for path, blob in commit.files.items() if _generated(path) or _recorded(path)
    )
