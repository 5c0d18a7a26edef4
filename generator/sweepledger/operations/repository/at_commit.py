"""Settings, specs and versions of files at a commit or in its history, and a commit as a folder."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from sweepledger import spec
from sweepledger.errors import SpecError
from sweepledger.problems import Problem
from sweepledger.repo.git import ALL_SCOPES, Repository, commits, without_repository_filters
from sweepledger.results.outcomes import BatchRecords
from sweepledger.results.summary import Summary, summarise
from sweepledger.search.membership import membership
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import bytes_digest

AS_COMMITTED = ("-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "core.attributesFile=/dev/null")
"""Options with which a check-out depends on no setting of this machine."""


def read_settings(repository: Repository, commit: str | None) -> Settings | tuple[Problem, ...]:
    """Return the settings at a commit; the defaults if it has none."""
    content = repository.read(commit, SETTINGS_FILE).get(SETTINGS_FILE)
    return Settings() if content is None else _parsed_settings(content, SETTINGS_FILE)


_parsed_settings = lru_cache(maxsize=8)(spec.parse_settings)


def settings_or_defaults(repository: Repository, commit: str | None) -> Settings:
    """Return the settings at a commit; the defaults if it has none, or if they cannot be read."""
    settings = read_settings(repository, commit)
    return settings if isinstance(settings, Settings) else Settings()


def valid_settings(repository: Repository, commit: str | None) -> Settings:
    """Return the settings at a commit; the defaults if it has none. Raises SpecError if they cannot be read."""
    settings = read_settings(repository, commit)
    if not isinstance(settings, Settings):
        raise SpecError(settings)
    return settings


def read_sweep(repository: Repository, commit: str | None, path: str) -> Sweep | None:
    """Return the sweep of a spec at a commit with its settings there; None if it cannot be read."""
    return SpecReader.at(repository, commit).sweep(commit, path)


@dataclass(frozen=True)
class SpecReader:
    """Reads specs of commits, with settings that may be those of another commit."""

    repository: Repository
    settings: Settings

    @classmethod
    def at(cls, repository: Repository, commit: str | None) -> "SpecReader":
        """Return a reader with the settings of a commit."""
        return cls(repository, settings_or_defaults(repository, commit))

    def sweep(self, commit: str | None, path: str) -> Sweep | None:
        """Return the sweep of a spec at a commit; None if it cannot be read."""
        parsed = self.spec(commit, path)
        return parsed.sweep if isinstance(parsed, spec.ParsedSpec) else None

    def spec(self, commit: str | None, path: str) -> spec.ParsedSpec | tuple[Problem, ...]:
        """Return a spec at a commit; the files that it names are read from the same commit."""

        def beside(name: str) -> bytes | None:
            location = str(PurePosixPath(path).with_name(name))
            return self.repository.read(commit, location).get(location)

        content = self.repository.read(commit, path).get(path, b"")
        return spec.parse(content, path, self.settings, beside=beside)


@dataclass(frozen=True)
class SpecAtCommit:
    """A spec at a commit, which may be unreadable."""

    sweep: Sweep | None
    """None if it cannot be read."""
    content: bytes | None
    """None if there is no such file."""

    @classmethod
    def at(cls, repository: Repository, commit: str, path: str) -> "SpecAtCommit":
        """Read a spec and the files that it names. Raises RepositoryError."""
        content = repository.read(commit, path, SETTINGS_FILE).get(path)  # both with one process
        return cls(read_sweep(repository, commit, path), content)

    @property
    def cancelled(self) -> tuple[str, ...]:
        """Return the names of the cancelled batches."""
        return self.sweep.cancel if self.sweep else ()

    def summarised(self, batches: Iterable[BatchRecords], program: str | None = None) -> Summary:
        """Summarise a sweep's batches by this spec; `program` as for `summarise`. Raises ValueError."""
        records, search = tuple(batches), self.sweep.search if self.sweep else None
        # The spec itself is asked, because a lock can claim to be made from it; not if it cannot be expanded.
        members = membership(self.sweep) if self.sweep else ()
        summary = summarise(
            records,
            description=self.sweep.description if self.sweep else "",
            in_spec=None if isinstance(members, tuple) else members,
            spec_digest=None if self.content is None else bytes_digest(self.content),
            program=program,
        )
        if search is None:
            return summary
        resource = search.resource.parameter if search.resource else None
        return replace(summary, resource=resource, start=search.start)


def file_versions(repository: Repository, commit: str, *paths: str) -> Iterator[tuple[str, str]]:
    """Yield commit and blob of each version of a file in a history, at any of its paths, newest first."""
    for version in reversed(commits(repository, *paths, revision=commit)):
        yield from ((version.id, version.files[path]) for path in paths if path in version.files)


def earlier_version(
    repository: Repository, commit: str, paths: Iterable[str], matches: Callable[[bytes], bool]
) -> tuple[str, bytes] | None:
    """Return the newest version of a file that matches, with its commit."""
    seen: set[str] = set()
    for version, blob in file_versions(repository, commit, *paths):
        if blob not in seen:
            seen.add(blob)
            content = repository.blobs([blob])[blob]
            if matches(content):
                return version, content
    return None


def commit_of_version(repository: Repository, commit: str, path: str) -> str | None:
    """Return the last commit that changed a file of a commit; None if the file does not exist."""
    entry = repository.files(commit, path).get(path)
    if entry is None:
        return None
    return next(
        (version for version, blob in file_versions(repository, commit, path) if blob == entry.id), commit
    )


@contextmanager
def checked_out(repository: Repository, commit: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder, and remove the folder afterwards."""
    with tempfile.TemporaryDirectory(prefix="sweepledger-") as scratch:
        folder = Path(scratch) / "tree"
        filters = without_repository_filters(repository, ALL_SCOPES)
        repository.run(*filters, *AS_COMMITTED, "worktree", "add", "--quiet", "--detach", str(folder), commit)
        try:
            yield folder
        finally:
            repository.run("worktree", "remove", "--force", str(folder))
