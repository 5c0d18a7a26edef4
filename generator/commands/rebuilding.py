"""Everything below `results/<sweep>/`, worked out again from git alone: no cluster, no volume, no work tree.

What `sweep collect` wrote and what this gives are the same bytes, or somebody has changed one of them.
"""

from collections.abc import Container, Mapping
from json import loads
from pathlib import PurePosixPath
from typing import Any

from generator.commands import committed, past, recorded
from generator.commands.todays import Todays
from generator.commands.workspace import SPECS, SUFFIX
from generator.errors import RepositoryError
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository
from generator.results import result_files, results_folder
from generator.results.provenance import PROVENANCE_FILE
from generator.structs.sweep import Sweep
from generator.structs.tree import FileTree
from generator.structs.values import bytes_digest


def rebuilt(repository: Repository, commit: str, sweep: str) -> FileTree:
    """Work out every file below `results/<sweep>/` from the locks, tables and records of a commit.

    The spec is the one that provenance.json names by its digest, looked up at the commit, then in the history
    of its path. Raises RepositoryError where nothing is recorded, or a file cannot be read or found.
    """
    held = repository.read(commit, results_folder(sweep))
    stored = recorded_batches(repository, commit, sweep, held)
    if not stored:
        raise RepositoryError(
            f"{results_folder(sweep)}: no archived batch of {sweep} has records at {commit[:12]}",
            hint="name a commit that holds them: `git log -- overlays/archive`",
        )
    todays = _todays(repository, commit, sweep, held)
    batches.load(stored)
    found = [recorded.results(one, held, is_cancelled=one.name in todays.cancelled) for one in stored]
    try:
        return result_files(todays.summarised(found))
    except ValueError as error:
        raise RepositoryError(f"{results_folder(sweep)}: {error}", hint="restore it from git") from error


def recorded_batches(
    repository: Repository, commit: str, sweep: str, held: Container[str]
) -> tuple[StoredBatch, ...]:
    """List the archived batches of a sweep that have records among some files, by number."""
    stored = batches.of_sweep(batches.in_commit(repository, commit), sweep)
    return tuple(batch for batch in stored if not batch.is_active and recorded.records_file(batch) in held)


def _todays(repository: Repository, commit: str, sweep: str, held: Mapping[str, bytes]) -> Todays:
    """Read the spec as it was summarised; where no provenance names one, as the commit has it."""
    named = _named(held.get(f"{results_folder(sweep)}/{PROVENANCE_FILE}", b""))
    path, digest = named or (f"{SPECS}/{sweep}{SUFFIX}", "")
    if digest is None:
        return Todays(None, None)
    place, content = commit, repository.read(commit, path).get(path)
    if digest and (content is None or bytes_digest(content) != digest):
        place, content = _earlier(repository, commit, path, digest)
    if content is None:
        return Todays(None, None)
    # Whether a spec can be read depends on settings, and these may have become stricter since.
    for chosen in (committed.standing_settings(repository, one) for one in (place, commit)):
        found = committed.sweep(repository, place, path, chosen)
        if isinstance(found, Sweep):
            return Todays(found, content)
    return Todays(None, content)


def _named(provenance: bytes) -> tuple[str, str | None] | None:
    """Take the spec's path and digest from a provenance; None where it names none."""
    try:
        named: Any = loads(provenance)["spec"]
        digest = named["digest"]
        return str(PurePosixPath(named["path"])), None if digest is None else str(digest)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _earlier(repository: Repository, commit: str, path: str, digest: str) -> tuple[str, bytes]:
    """Find the content with a digest in the history of a path. Raises RepositoryError."""
    found = past.earlier(repository, commit, [path], lambda content: bytes_digest(content) == digest)
    if found is None:
        raise RepositoryError(
            f"{path}: no commit in the history of {commit[:12]} holds the content {digest[:19]}, "
            "from which the results were summarised",
            hint="fetch the branch that held it, or all of a shallow clone: `git fetch --unshallow`",
        )
    return found
