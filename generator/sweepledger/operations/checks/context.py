"""The input of every check: the base commit and its batches, those of the work tree, and the changed specs.

Also, for `sweep check --hook` on the git server, the commits of a push to the branch, as work trees. A bare
repository has no files, and a server keeps pushed objects apart until its hook has accepted them. So a commit is
checked out into a temporary work tree that reads the objects of both places.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sweepledger import contract
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.render.base_files import SHAPE_FOLDERS
from sweepledger.repo import batches, files, git
from sweepledger.repo.base_files import own_bases
from sweepledger.repo.batch_files import KUSTOMIZATION
from sweepledger.repo.files import base_folder
from sweepledger.repo.git import Repository
from sweepledger.repo.stored_batches import is_content_of, settled_specs
from sweepledger.storage import storage_errors
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT
from sweepledger.structs.names import LAUNCHER, LOCK_FILE, SETTINGS_FILE
from sweepledger.structs.platform import GIT_HOSTS
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings
from sweepledger.structs.settings.results import PullRequestResults
from sweepledger.structs.values import blob_id

BASE = "base/"
FOLDERS = ("overlays", "base", "sweeps", "results", "clusters")
"""Folders that sweepledger writes to or reads specs from."""
BASE_VERSION = re.compile(r"base/(?:[^/]+/)+?v[0-9]+(?=/)", re.ASCII)


@dataclass(frozen=True)
class CheckContext:
    """A repository about to be merged onto a commit."""

    workspace: Workspace
    base: str | None
    """The base commit; None in a repository without commits."""
    month: str | None = None
    """The month of the budgets; None: that of the base commit."""

    @cached_property
    def merged(self) -> tuple[batches.StoredBatch, ...]:
        """The batches of the base commit; a broken one is replaced by its repaired version in the work tree."""
        present = {batch.folder: batch for batch in self.present if batch.folder not in self.unchanged}
        return tuple(
            self._mended(batch, present[batch.folder]) if batch.folder in present else batch
            for batch in self._committed
        )

    @cached_property
    def unchanged(self) -> frozenset[str]:
        """The folders of batches that are in the work tree as the base commit has them."""
        present = {batch.folder: batch for batch in self.present}
        return frozenset(
            batch.folder
            for batch in self._committed
            if batch.folder in present and not batches.difference(batch, present[batch.folder])
        )

    @cached_property
    def _committed(self) -> tuple[batches.StoredBatch, ...]:
        return batches.of_entries(self.workspace.repository, self.base_entries)

    @cached_property
    def present(self) -> tuple[batches.StoredBatch, ...]:
        """The work tree's batches, active and archived."""
        unsure = {*self.work_tree.uncommitted, *self.work_tree.ignored, *self.work_tree.unwatched}
        unchanged = batches.unchanged_folders(self._committed, self.index, self.changed, unsure)
        return batches.in_work_tree(self.workspace.root, committed=unchanged)

    @cached_property
    def work_tree(self) -> git.WorkTreeChanges:
        """The paths of settings and generated folders that differ from HEAD, or that git does not look at."""
        return git.WorkTreeChanges.read(self.workspace.repository, SETTINGS_FILE, *FOLDERS)

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The paths that a sparse check-out omits."""
        return frozenset(git.Checkout(self.workspace.repository, *FOLDERS).hidden)

    def uncommitted(self, *places: str) -> frozenset[str]:
        """Return the paths that start with one of some places and differ from HEAD, untracked ones included."""
        return frozenset(path for path in self.work_tree.uncommitted if path.startswith(places))

    @cached_property
    def added(self) -> tuple[batches.StoredBatch, ...]:
        """The new batches: those of the work tree that are not merged."""
        return tuple(batch for batch in self.present if batch.name not in self._merged_names)

    @cached_property
    def laptop(self) -> tuple[batches.StoredBatch, ...]:
        """The new batches that come with their results, if the settings accept results made on a laptop."""
        accepts = self.settings.results.from_pull_request is PullRequestResults.MARKED
        return tuple(batch for batch in self.added if not batch.is_active) if accepts else ()

    @cached_property
    def base_entries(self) -> Mapping[str, git.Entry]:
        """Every file of the base commit, by path."""
        return self.workspace.repository.files(self.base)

    @cached_property
    def index(self) -> Mapping[str, git.Entry]:
        """Every file that the next commit would contain, by path."""
        return self.workspace.repository.index(self.base)

    @cached_property
    def changed(self) -> frozenset[str]:
        """The paths that differ between the base commit and the next one."""
        merged = self.base_entries
        # Nearly all entries are the same objects, which is seen faster than that they are equal.
        new = (
            path
            for path, entry in self.index.items()
            if (former := merged.get(path)) is not entry and former != entry
        )
        return frozenset(new) | (merged.keys() - self.index.keys())

    @cached_property
    def settings(self) -> Settings:
        """The settings of the base commit; the defaults if they cannot be read."""
        return at_commit.settings_or_defaults(self.workspace.repository, self.base)

    def settings_of(self, batch: batches.StoredBatch) -> Settings:
        """Return the settings to check a batch by: for a merged batch, the settings of the base commit."""
        is_merged = SETTINGS_FILE in self.base_entries and batch.name in self._merged_names
        return self.settings if is_merged else self.workspace.settings

    @cached_property
    def _merged_names(self) -> frozenset[str]:
        return frozenset(batch.name for batch in self.merged)

    @cached_property
    def bases(self) -> FileTree:
        """Everything below `base/` in the work tree except Python's caches. Raises StorageError."""
        return own_bases(self.workspace.root)

    @cached_property
    def changed_bases(self) -> frozenset[str]:
        """Paths below `base/`, from the root, that differ between the base commit and the work tree."""
        merged = {
            path: entry.id
            for path, entry in self.base_entries.items()
            if path.startswith(BASE) and files.PYTHON_CACHE not in path.split("/")
        }
        present = {f"{BASE}{path}": blob_id(content) for path, content in self.bases}
        return frozenset(
            path for path in merged.keys() | present.keys() if merged.get(path) != present.get(path)
        )

    @cached_property
    def changed_versions(self) -> frozenset[str]:
        """The versions of bases that changed, such as `base/jobs/v1`."""
        return frozenset(
            version[0] for version in map(BASE_VERSION.match, self.changed_bases) if version is not None
        )

    @cached_property
    def edited_bases(self) -> tuple[str, ...]:
        """The changed bases that differ from the generator's, which are added with the first batch that uses them."""
        if not self.changed_bases:
            return ()
        packaged, present = files.read_sources(base_folder()).files, self.bases.files
        names = {path: path.removeprefix(BASE) for path in self.changed_bases}
        return tuple(sorted(path for path, name in names.items() if present.get(name) != packaged.get(name)))

    @cached_property
    def versions(self) -> frozenset[str]:
        """The version folders below `base/` of the base commit, such as `base/trial/v1`."""
        matches = (BASE_VERSION.match(path) for path in self.base_entries)
        return frozenset(match[0] for match in matches if match)

    @cached_property
    def is_behind(self) -> bool:
        """Return whether HEAD does not contain the base commit."""
        repository = self.workspace.repository
        if self.base is None or repository.commit("HEAD") is None:
            return False
        return not repository.contains("HEAD", self.base)

    def changed_paths(self, *places: str) -> frozenset[str]:
        """Return the paths that start with one of some places and differ between the base commit and the next one."""
        return frozenset(path for path in self.changed if path.startswith(places))

    def is_merged_content(self, path: str, content: bytes) -> bool:
        """Return whether a file of the base commit has this content."""
        return is_content_of(self.base_entries.get(path), content)

    def known_trial(self, batch: batches.StoredBatch) -> tuple[str, str] | None:
        """Return the first trial of a new batch that a merged batch of its sweep lists, and that batch."""
        merged = batches.of_sweep(self.merged, batch.sweep)
        batches.prefetch(merged)
        listed = {trial.digest: other.name for other in merged for trial in other.trials}
        known = (trial for trial in batch.trials if trial.digest in listed)
        return next(((trial.id, listed[trial.digest]) for trial in known), None)

    def _mended(self, merged: batches.StoredBatch, present: batches.StoredBatch) -> batches.StoredBatch:
        """Return the work tree's version of a broken merged batch if it differs and is in the history; else None."""
        if not (is_broken(merged) and batches.readable([present])):
            return merged
        repository = self.workspace.repository
        tree = repository.tree_id("HEAD", present.folder)
        is_committed = tree is not None and not git.uncommitted_paths(repository, present.folder)
        is_restored = is_committed and tree in git.reachable_trees(repository, [self.base], present.folder)
        return present if is_restored else merged


def is_broken(batch: batches.StoredBatch) -> bool:
    """Return whether a batch is active and can never be recorded: it was merged despite the check."""
    return batch.is_active and not batches.readable([batch])


def referenced_bases(stored: Iterable[batches.StoredBatch]) -> Iterator[tuple[batches.StoredBatch, str]]:
    """Yield batches with each folder that they were made from or build on, relative to the repository.

    Lock and kustomization are both read, so that an incomplete lock does not unfreeze a base.
    """
    listed = tuple(stored)
    batches.prefetch(listed, LOCK_FILE, KUSTOMIZATION)  # of all with one process
    batches.prefetch_omitted(listed, KUSTOMIZATION)
    for batch in listed:
        try:
            names, shapes = set(batch.lock.bases), [batch.lock.shape]
        except RepositoryError:  # an unreadable lock: any shape is possible
            names, shapes = set(), list(Shape)
        names |= {LAUNCHER, *(SHAPE_FOLDERS[shape] for shape in shapes)}
        if KUSTOMIZATION in (*batch.contents.paths, *batch.omitted):
            names.update(contract.base_folders(batch.read(KUSTOMIZATION)))
        yield from ((batch, f"{BASE}{name}") for name in sorted(names))


def specs_to_read(context: CheckContext, paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the specs that must be read: all that `settled_specs` does not list."""
    settled = settled_specs(
        context.workspace.root, context.base_entries, context.merged, context.added, paths
    )
    return (path for path in paths if path not in settled)


LINE = re.compile(
    r"(?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) (?P<name>refs/[^\x00-\x20\x7f]+)", re.ASCII
)
BRANCHES = "refs/heads/"
PUSHERS = (*(host.pusher for host in GIT_HOSTS if host.pusher is not None), "REMOTE_USER")
"""Variables in which git hosts, and git's http-backend, name the user who pushes."""


@dataclass(frozen=True)
class PushedRef:
    """A ref that a push would change."""

    name: str
    old: str | None
    """None: the ref would be created."""
    new: str | None
    """None: the ref would be deleted."""


def read_refs(text: str) -> tuple[PushedRef, ...]:
    """Return the refs that git gives to a pre-receive hook. Raises UsageError for any other text."""
    refs = []
    for line in text.splitlines():
        found = LINE.fullmatch(line)
        if found is None:
            raise UsageError(
                f"standard input must have lines of old commit, new commit and ref, got {line[:80]!r}",
                hint="--hook is for a pre-receive hook: git gives it the refs",
            )
        old, new = (None if not commit.strip("0") else commit for commit in (found["old"], found["new"]))
        refs.append(PushedRef(found["name"], old, new))
    return tuple(refs)


def is_collector(environment: Mapping[str, str]) -> bool:
    """Return whether the collector pushes, by the first name that a server gives."""
    return next((environment[name] for name in PUSHERS if environment.get(name)), "") == COLLECTOR_ACCOUNT


@contextmanager
def checked_out(server: Path, environment: Mapping[str, str], ref: PushedRef) -> Iterator[Workspace | None]:
    """Check out the commit that a push would give to the branch of the settings; None for other refs and deletions.

    `environment` is that of the hook, whose variables name the pushed objects. Raises RepositoryError, SpecError.
    """
    if ref.new is None or not ref.name.startswith(BRANCHES):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="sweep-check-") as scratch:
        folder = Path(scratch) / "change"
        folder.mkdir()
        repository = Repository(folder)
        repository.run("init", "--quiet", "--template=")
        with storage_errors(folder):
            (folder / ".git/objects/info").mkdir(exist_ok=True)
            others = environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "").split(os.pathsep)
            stores = filter(None, (environment.get("GIT_OBJECT_DIRECTORY"), *others, "objects"))
            folders = ((server / store.strip('"')).resolve() for store in stores)
            listed = "".join(f"{path}\n" for path in folders)
            (folder / ".git/objects/info/alternates").write_text(
                listed, encoding="utf-8", errors="surrogateescape"
            )
        merged = at_commit.settings_or_defaults(repository, ref.old or ref.new)
        if ref.name != f"{BRANCHES}{merged.git.branch}":
            yield None
            return
        repository.run("update-ref", "--no-deref", "HEAD", ref.new)
        repository.run("reset", "--quiet", "--hard", ref.new)
        yield Workspace.find(folder)
