"""The repository a command works in, and the branch that its commits go to.

`Workspace` holds root, settings and specs, and resolves the base commit; `Target` names the branch.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from sweepledger import search, spec
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.operations.repository import at_commit
from sweepledger.problems import Problem, Severity
from sweepledger.reader.configurations import MAX_LIST_BYTES
from sweepledger.repo import git, inputs
from sweepledger.repo.files import read_input, refuse_links
from sweepledger.safe_open import read_regular
from sweepledger.storage import storage_errors
from sweepledger.structs.names import SETTINGS_FILE, SPECS, SUFFIX
from sweepledger.structs.settings import ResultsMode, Settings
from sweepledger.structs.sweep import Sweep

T = TypeVar("T")

NO_SPECS = f"no spec in {SPECS}/: `sweep new NAME` writes one"
SPEC_LIKE = re.compile(r".+\.ya?ml", re.IGNORECASE | re.DOTALL)
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*", re.ASCII)
"""File names that fit into a line unquoted; every sweep name does."""


def _settings_elsewhere(place: str) -> RepositoryError:
    return RepositoryError(
        f"{SETTINGS_FILE} must be at the root of the repository, got one in {place}",
        hint=f"move it, {SPECS}/ and the other folders to the root; code may stay: `run.code.path: {place}`",
    )


@dataclass(frozen=True)
class Workspace:
    """A repository with a work tree, ready to be read."""

    repository: git.Repository
    settings: Settings
    cluster: str | None = None
    """The cluster that is looked at, if the settings name several."""

    def in_cluster(self, name: str | None) -> "Workspace":
        """Return the workspace for one cluster. Raises UsageError unless the settings have this cluster."""
        known = sorted(self.settings.fleet.clusters)
        if name in known or (name is None and not known):
            return replace(self, cluster=name)
        listed = ", ".join(known)
        if name is None:
            hint = f"add --in with one of {listed}"
            raise UsageError(f"{SETTINGS_FILE} names several clusters", hint=hint)
        hint = f"clusters: {listed}" if known else "there is one, which has no name: leave it out"
        raise UsageError(f"--in {name} is no cluster of {SETTINGS_FILE}", hint=hint)

    @property
    def cluster_settings(self) -> Settings:
        """The settings of the current cluster."""
        return self.settings if self.cluster is None else self.settings.in_cluster(self.cluster)

    @property
    def spec_reader(self) -> at_commit.SpecReader:
        """Reads specs of commits with the settings of the work tree."""
        return at_commit.SpecReader(self.repository, self.settings)

    @property
    def root(self) -> Path:
        """The work tree's root."""
        return self.repository.folder

    @classmethod
    def find(cls, start: Path, *, unpinned: bool = False) -> "Workspace":
        """Open the repository around a folder. Raises RepositoryError, SpecError for wrong settings.

        With `unpinned` an image may lack a digest, and is left out. Settings below the root are refused, because
        nothing would read them.
        """
        repository = git.Repository.find(start)
        path = repository.folder / SETTINGS_FILE
        inside, top = start.resolve(), repository.folder.resolve()
        for folder in (inside, *inside.parents):
            if top not in folder.parents:
                break
            if (folder / SETTINGS_FILE).is_file():
                raise _settings_elsewhere(folder.relative_to(top).as_posix())
        if not os.path.lexists(path):
            return cls(repository, Settings())
        return cls(repository, parse_settings(read_input(path), unpinned=unpinned))

    def commit(self, revision: str) -> str:
        """Return the commit of a branch, a tag or an id. Raises UsageError if there is none."""
        if commit := self.repository.commit(revision):
            return commit
        raise UsageError(f"{revision!r} is not a commit", hint="try a branch, a tag or HEAD~1")

    def base_commit(self, base: str | None) -> str | None:
        """Return the base commit, as `git.base_commit` does for the branch of the settings."""
        return git.base_commit(self.repository, self.settings.git.branch, base)

    @cached_property
    def remote(self) -> str:
        """The remote of this clone with the branch for merges. Raises UsageError if several remotes could be meant."""
        return git.followed_remote(self.repository, self.settings.git.branch)

    def spec_paths(self, names: Iterable[str] = ()) -> tuple[Path, ...]:
        """Return specs by sweep name or path; all of `sweeps/` if none is named.

        Raises UsageError, StorageError if a link leads to them, RepositoryError if a sparse check-out lacks them.
        """
        every = inputs.list_specs(self.repository)
        return tuple(self._spec_path(name) for name in names) or every

    def refuse_sweeps_elsewhere(self) -> None:
        """Raise RepositoryError if settings and specs are not at the root but in another folder.

        Otherwise a check that reads no spec would pass.
        """
        if os.path.lexists(self.root / SETTINGS_FILE) or self.spec_paths():
            return
        listed = self.repository.run("ls-files", "-z", "--", f":(glob)**/{SETTINGS_FILE}")
        for path in filter(None, listed.split("\0")):
            place = path.removesuffix(f"/{SETTINGS_FILE}")
            if (self.root / place / SPECS).is_dir():
                raise _settings_elsewhere(place)

    def unread_specs(self) -> tuple[Problem, ...]:
        """Return a warning for each file below `sweeps/` that looks like a spec but is not read by any command."""
        files = {path for path in (self.root / SPECS).rglob("*") if SPEC_LIKE.fullmatch(path.name)}
        unread = [path for path in files - {*self.spec_paths()} if path.is_file()]
        message = f"is no spec: specs are files of {SPECS}/ itself with names that end in {SUFFIX}"
        hint = f"move it to {SPECS}/, or give it another extension"
        return tuple(
            Problem(self.display_path(path), 0, 0, "", message, "spec-ignored", hint, Severity.WARNING)
            for path in sorted(unread)
        )

    def _spec_path(self, name: str) -> Path:
        by_name = self.root / SPECS / f"{name}.yaml"
        for candidate in (by_name, Path(name)):
            if os.path.lexists(candidate) and not candidate.is_dir():
                path = candidate.absolute()
                if path.is_relative_to(self.root):
                    refuse_links(self.root, path.parent.relative_to(self.root))
                return path
        existing = ", ".join(path.stem for path in sorted((self.root / SPECS).glob("*.yaml"))) or "none yet"
        raise UsageError(
            f"no sweep {name!r}: neither {SPECS}/{name}.yaml nor a file", hint=f"sweeps: {existing}"
        )

    def parse(self, path: Path) -> spec.ParsedSpec | tuple[Problem, ...]:
        """Read one spec and the files that it names. Raises StorageError."""
        if not PLAIN_NAME.fullmatch(path.name) or not self.display_path(path).isprintable():
            message = f"must have a name of letters, digits and dashes, got {path.name!r}"
            hint = "rename it like the sweep"
        elif path.suffix != SUFFIX:
            message = f"must have a name that ends in {SUFFIX}, got {path.name!r}"
            hint = f"rename it {path.stem}{SUFFIX}"
        else:
            content = self.as_committed(path, read_input(path))
            return spec.parse(content, self.display_path(path), self.settings, beside=self.beside(path))
        return (Problem(self.display_path(path), 0, 0, "", message, "name-mismatch", hint),)

    def parse_text(self, content: bytes, path: str) -> spec.ParsedSpec:
        """Parse a text as the content of a spec's file in the repository. Raises SpecError."""
        parsed = spec.parse(content, path, self.settings, beside=self.beside(self.root / path))
        if isinstance(parsed, tuple):
            raise SpecError(parsed)
        return parsed

    def beside(self, path: Path) -> Callable[[str], bytes | None]:
        """Return a function that reads files in the folder of a spec. It raises StorageError."""

        def read(name: str) -> bytes | None:
            with storage_errors(path.parent / name):
                content = read_regular(path.parent / name, MAX_LIST_BYTES)
            return None if content is None else self.as_committed(path.parent / name, content)

        return read

    def as_committed(self, path: Path, content: bytes) -> bytes:
        """Return the content that a commit would have for a file: git may change its line endings."""
        if git.CARRIAGE_RETURN not in content or not path.absolute().is_relative_to(self.root):
            return content
        place = self.display_path(path)
        entry = git.Checkout(self.repository, place).rewritten([place]).get(place)
        return content if entry is None else entry[1]

    def sweeps(self, names: Iterable[str] = ()) -> tuple[Sweep, ...]:
        """Read the sweeps of specs. Raises SpecError."""
        return tuple(parsed.sweep for parsed in self.specs(names))

    def specs(self, names: Iterable[str] = ()) -> tuple[spec.ParsedSpec, ...]:
        """Read specs. Raises SpecError with every problem of every file."""
        return self.read(self.spec_paths(names))

    def read(self, paths: Iterable[Path]) -> tuple[spec.ParsedSpec, ...]:
        """Read the specs at these paths. Raises SpecError with the problems of all."""
        read = [self.parse(path) for path in paths]
        problems = [problem for item in read if isinstance(item, tuple) for problem in item]
        if problems:
            raise SpecError(problems)
        return tuple(item for item in read if isinstance(item, spec.ParsedSpec))

    def display_path(self, path: Path) -> str:
        """Return a path relative to the repository, as the user would type it."""
        try:
            return path.absolute().relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def remote_url(self, remote: str | None = None) -> str:
        """Return the URL of the remote that controllers follow. Raises RepositoryError if there is none."""
        name = remote or self.remote
        url = self.repository.remote_url(name)
        if url is None:
            raise RepositoryError(
                f"no remote {name!r}",
                hint=f"`git remote add {name} URL`, or name another: `git config sweepledger.remote NAME`",
            )
        if "://" not in url and not url.startswith("/") and (self.root / url).exists():
            return str((self.root / url).resolve())
        return url


def explore(
    specs: Iterable[spec.ParsedSpec | tuple[Problem, ...]],
) -> tuple[list[tuple[spec.ParsedSpec, search.Expansion]], list[Problem]]:
    """Return the valid specs with their configurations, and the problems of the invalid specs."""
    valid: list[tuple[spec.ParsedSpec, search.Expansion]] = []
    problems: list[Problem] = []
    for parsed in specs:
        explored = (
            search.explore(parsed.sweep, parsed.source) if isinstance(parsed, spec.ParsedSpec) else parsed
        )
        if isinstance(parsed, spec.ParsedSpec) and isinstance(explored, search.Expansion):
            valid.append((parsed, explored))
        elif not isinstance(explored, search.Expansion):
            problems += explored
    return valid, problems


def parse_settings(content: bytes, *, unpinned: bool = False) -> Settings:
    """Return the settings of sweepledger.yaml. Raises SpecError with every problem."""
    settings = spec.parse_settings(content, SETTINGS_FILE, unpinned=unpinned)
    if isinstance(settings, tuple):
        raise SpecError(settings)
    return settings


@dataclass(frozen=True)
class Target:
    """Where commits go: a branch of a remote, or without a remote a local branch, by default the one checked out."""

    repository: git.Repository
    remote: str | None = None
    branch: str = ""
    is_reviewed: bool = False
    """A person merges: each commit goes to a branch `<folder>/<commit that it is based on>`."""
    progress_minutes: int | None = None
    """Minutes between summaries of running batches on progress branches; None: no such branches."""
    is_laptop: bool = False
    """Whether a person runs and records batches here, as `sweep run` does."""
    continued: frozenset[str] = frozenset()
    """Searches whose next round follows their results, whatever the settings say: `sweep run` was asked for all."""
    cluster: str | None = None
    """The cluster whose batches are recorded, if there are several."""

    def tip(self) -> str | None:
        """Return the commit of the branch; None if nothing is committed here. Raises RepositoryError."""
        if self.remote is None:
            return self.repository.commit(f"refs/heads/{self.branch}" if self.branch else "HEAD")
        return git.fetch(self.repository, self.remote, self.branch)

    def commit(
        self, make: Callable[[str], tuple[git.Change | None, T]], *, proposals: str = ""
    ) -> tuple[str | None, T | None]:
        """Commit the change that `make` computes from the tip; compute it again if another commit came first.

        `proposals` is the folder of branches for a commit that a person merges. Return the commit, None if
        nothing changes, and the value that `make` returned last; both are None if the change is proposed
        already. Raises as commit_on_branch, commit_on_head, propose and publish do.
        """
        values: list[T] = []

        def change(base: str) -> git.Change | None:
            result, value = make(base)
            values[:] = [value]
            return result

        if self.remote is None and self.branch:
            commit = git.commit_on_branch(self.repository, self.branch, change)
        elif self.remote is None:
            commit = git.commit_on_head(self.repository, change)
        elif self.is_reviewed:
            commit = git.propose(self.repository, self.remote, self.branch, proposals, change)
        else:
            commit = git.publish(self.repository, self.remote, self.branch, change)
        return commit, values[0] if values else None


def results_target(
    workspace: Workspace, remote: str | None = None, branch: str | None = None, *, push: bool
) -> Target:
    """Return where results commits go: HEAD of the work tree, or with `push` a branch of the remote.

    By default, the remote is the clone's and the branch that of the settings. Raises RepositoryError if there is no
    such remote.
    """
    if not push:
        return Target(workspace.repository, cluster=workspace.cluster)
    settings = workspace.settings
    remote = remote or workspace.remote
    workspace.remote_url(remote)
    return Target(
        workspace.repository,
        remote,
        branch or settings.git.branch,
        is_reviewed=settings.results.mode is ResultsMode.BRANCH,
        progress_minutes=settings.results.progress_minutes,
        cluster=workspace.cluster,
    )
