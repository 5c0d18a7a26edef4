"""`sweep site`: a static site of the experiment history at a commit, built again only where the commit differs.

The pages of a sweep are kept if everything that they are computed from has the same blobs as before. What was
built before is believed only if this clone's state folder has the digest of its manifest.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sweepledger import __version__, storage
from sweepledger.commands.reports.site_history import HistoryReader, events_of
from sweepledger.commands.repository import costs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import StorageError, UsageError
from sweepledger.formats import json
from sweepledger.plan import counts_towards
from sweepledger.repo import files
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import Entry, commit_time
from sweepledger.repo.state import create_state
from sweepledger.results.paths import RESULTS
from sweepledger.site import (
    MonthlyCost,
    assets_digest,
    compare_page,
    home_page,
    sweep_pages,
)
from sweepledger.site.spending import monthly_times
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import SETTINGS_FILE, SPECS, SUFFIX, is_sweep_name
from sweepledger.structs.values import bytes_digest, digest

MANIFEST = "site.json"
HOME, COMPARE, DATA = "index.html", "compare.html", "data.json"
PAGE = re.compile(r"sweeps/[^/]+/(?:index\.html|trials\.html|data\.json)")
"""Paths of the pages of sweeps."""


@dataclass(frozen=True)
class BuiltSite:
    """What `sweep site` wrote."""

    out: Path
    commit: str
    sweeps: int
    rebuilt: tuple[str, ...]
    """Sweeps whose pages were computed; those of the others were kept."""
    unreadable: tuple[str, ...]
    """Why the results of some sweeps are not shown."""
    files: int
    written: int
    """Files that changed."""
    removed: int


@dataclass(frozen=True)
class _Previous:
    """The site that is in the folder; empty unless it is this clone's own."""

    sweeps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Inputs, card and problem by sweep."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Digest of each file by path."""


def site(workspace: Workspace, out: Path, revision: str = "HEAD") -> BuiltSite:
    """Build the site of a commit in a folder. Raises UsageError, RepositoryError, StorageError."""
    repository = workspace.repository
    commit = repository.commit(revision)
    if commit is None:
        raise UsageError(f"{revision!r} is not a commit", hint="try a branch, a tag or HEAD~1")
    target = storage.output_path(out, is_folder=True)
    state = _state_file(workspace, target)
    previous = _read_previous(target, state)
    builder = _SiteBuilder(workspace, commit, target, previous)
    for sweep in builder.sweeps:
        builder.add(sweep)
    tree = builder.tree()
    written, removed = _write(target, tree)
    storage.write_file(state, bytes_digest(tree[MANIFEST]).encode())
    problems = tuple(f"{name}: {made['problem']}" for name, made in builder.made.items() if made["problem"])
    return BuiltSite(
        *(out, commit, len(builder.made), tuple(builder.rebuilt), problems),
        *(len(tree.files), written, removed),
    )


def _state_file(workspace: Workspace, target: Path) -> Path:
    """Return the file of the state folder that has the digest of the manifest in a folder."""
    return create_state(workspace.repository) / "site" / hashlib.sha256(str(target).encode()).hexdigest()


def _read_previous(target: Path, state: Path) -> _Previous:
    """Return what this clone built there before. Raises StorageError for a folder with other files."""
    present = files.list_folder(target)
    if not present:
        return _Previous()
    if MANIFEST not in present:
        raise StorageError(
            f"{target} has files, but no {MANIFEST} of an earlier site",
            hint="choose a new or an empty folder: files of the site replace others",
        )
    content = files.read_file(target / MANIFEST)
    if not state.is_file() or files.read_file(state) != bytes_digest(content).encode():
        return _Previous()
    data = json.load(content)
    if data["generator"] != __version__ or data["assets"] != assets_digest():
        return _Previous()
    return _Previous(data["sweeps"], data["files"])


def _write(target: Path, tree: FileTree) -> tuple[int, int]:
    """Write what differs, the manifest last, and remove pages of an earlier site; return both numbers."""
    if not target.is_dir():
        files.write_folder(target, tree)
        return len(tree.files), 0
    ordered = [path for path, _ in tree if path != MANIFEST] + [MANIFEST]
    written = sum(storage.write_file(target / path, tree[path]) for path in ordered)
    # Only what a site can have: the folder may have files that something else added, such as CNAME.
    stale = [path for path in files.list_folder(target) if PAGE.fullmatch(path) and path not in tree.files]
    for path in stale:
        storage.remove_file(target / path)
        parent = (target / path).parent
        if parent != target and not any(parent.iterdir()):
            parent.rmdir()
    return written, len(stale)


class _SiteBuilder:
    """Computes the files of a site, sweep by sweep."""

    def __init__(self, workspace: Workspace, commit: str, target: Path, previous: _Previous) -> None:
        self._workspace = workspace
        self._repository = workspace.repository
        self._commit = commit
        self._target = target
        self._previous = previous
        self._reader = HistoryReader(self._repository, commit)
        self._entries = self._reader.entries
        listing = self._reader.listing
        self._inputs = _files_by_sweep(listing)
        self._settings_blob = listing[SETTINGS_FILE].id if SETTINGS_FILE in listing else ""
        self._files: dict[str, bytes] = {}
        self.made: dict[str, dict[str, Any]] = {}
        self.rebuilt: list[str] = []

    @property
    def sweeps(self) -> Sequence[str]:
        """The sweeps of the commit, by name."""
        return sorted(self._inputs)

    def add(self, sweep: str) -> None:
        """Add the pages of a sweep: those of the earlier site if nothing that they show has changed."""
        entries = [(one.commit.id, one.kind, one.text) for one in self._entries[sweep]]
        blobs = {path: entry.id for path, entry in self._inputs[sweep].items()}
        inputs = digest([blobs, entries, self._settings_blob, self._reader.evidence])
        if not self._keep(sweep, inputs):
            shown = self._reader.history(sweep, self._inputs[sweep])
            pages = sweep_pages(shown, self._origin(sweep))
            self.made[sweep] = {
                "inputs": inputs,
                "card": pages.card.as_data(),
                "problem": shown.problem,
                "ranked": shown.ranked,
            }
            self.rebuilt.append(sweep)
            self._files |= {f"{_folder(sweep)}{name}": content for name, content in pages.files.items()}

    def _keep(self, sweep: str, inputs: str) -> bool:
        """Take over the pages of the earlier site, if it has them unchanged; return whether it has."""
        before = self._previous.sweeps.get(sweep, {})
        paths = [path for path in self._previous.files if path.startswith(_folder(sweep))]
        if before.get("inputs") != inputs or not paths:
            return False
        # Which of several programs is ranked depends on the code of the commit, too.
        if (ranked := before.get("ranked")) is not None and ranked != self._reader.ranked_program(sweep):
            return False
        try:
            contents = {path: files.read_file(self._target / path) for path in paths}
        except StorageError:
            return False
        if any(bytes_digest(content) != self._previous.files[path] for path, content in contents.items()):
            return False
        self.made[sweep] = dict(before)
        self._files |= contents
        return True

    def _origin(self, sweep: str) -> str:
        """Return the last commit that changed a sweep: a page does not change with the commits of others."""
        entries = self._entries[sweep]
        return entries[-1].commit.id if entries else self._commit

    def tree(self) -> FileTree:
        """Return all files of the site; its manifest lists all others."""
        cards = [made["card"] for made in self.made.values()]
        commit = {"id": self._commit, "day": _day(commit_time(self._repository, self._commit))}
        times = monthly_times(card["months"] for card in cards)
        home = home_page(
            cards,
            [event for event in events_of(self._reader.log) if event.sweep in self.made],
            times=times,
            costs=tuple(self._costs([time.month for time in times])),
            commit=commit,
            currency=self._reader.settings.currency,
        )
        fragments = [
            self._files[path] for sweep in self.made if (path := _folder(sweep) + DATA) in self._files
        ]
        contents = {**self._files, HOME: home, COMPARE: compare_page(fragments, commit)}
        manifest = {
            "version": 1,
            "generator": __version__,
            "assets": assets_digest(),
            "commit": self._commit,
            "sweeps": self.made,
            "files": {path: bytes_digest(contents[path]) for path in sorted(contents)},
        }
        return FileTree({**contents, MANIFEST: json.dump(manifest).encode()})

    def _costs(self, months: Iterable[str]) -> Iterator[MonthlyCost]:
        """Yield what each team with a budget used, by month."""
        settings = self._reader.settings
        if not settings.budgets:
            return
        merged = [batch for listed in self._reader.batches.values() for batch in listed]
        for month in months:
            ledger = costs.month_ledger(self._repository, self._commit, settings, month, merged=merged)
            for team, budget in sorted(settings.budgets.items()):
                charges = [one for one in ledger.used if counts_towards(budget, one.sweep)]
                hours, money = sum(one.gpu_hours for one in charges), sum(one.money for one in charges)
                yield MonthlyCost(month, team, hours, money)


def _folder(sweep: str) -> str:
    return f"sweeps/{sweep}/"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _files_by_sweep(listing: Mapping[str, Entry]) -> dict[str, dict[str, Entry]]:
    """Return the files of a commit that each sweep is shown from: spec, batches and results."""
    by_sweep: dict[str, dict[str, Entry]] = defaultdict(dict)
    for path, entry in listing.items():
        sweep = _sweep_of(path)
        if sweep and is_sweep_name(sweep):
            by_sweep[sweep][path] = entry
    return by_sweep


def _sweep_of(path: str) -> str:
    parts = path.split("/")
    if parts[0] == RESULTS and len(parts) > 2:  # noqa: PLR2004 - a file in the folder of a sweep
        return parts[1]
    if path.startswith((f"{ACTIVE}/", f"{ARCHIVE}/")):
        return StoredBatch("/".join(parts[:3]), FileTree({})).sweep
    return parts[1].removesuffix(SUFFIX) if path == f"{SPECS}/{parts[-1]}" and path.endswith(SUFFIX) else ""
