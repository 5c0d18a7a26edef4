"""Recomputes the files below `results/<sweep>/` from git alone, without cluster, volume or work tree."""

from collections.abc import Container, Mapping
from pathlib import PurePosixPath
from typing import Any

from sweepledger.commands.repository import at_commit, batch_records
from sweepledger.commands.repository.at_commit import SpecAtCommit
from sweepledger.errors import RepositoryError
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.results.paths import results_folder
from sweepledger.results.provenance import PROVENANCE_FILE, parse_provenance
from sweepledger.results.summary import Summary
from sweepledger.results.tree import result_files
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import SPECS, SUFFIX
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import bytes_digest


def rebuild_results(repository: Repository, commit: str, sweep: str) -> FileTree:
    """Rebuild every file below `results/<sweep>/` from the locks, tables and records of a commit.

    The spec is the one that provenance.json names by its digest, looked up at the commit, then in the history
    of its path. Raises RepositoryError if nothing is recorded, or a file cannot be read or is missing.
    """
    summary = recorded_summary(repository, commit, sweep)
    try:
        return result_files(summary)
    except ValueError as error:
        raise RepositoryError(f"{results_folder(sweep)}: {error}", hint="restore it from git") from error


def recorded_summary(repository: Repository, commit: str, sweep: str, program: str | None = None) -> Summary:
    """Return the summary of a sweep's recorded batches at a commit, ranking a program as `summarise` does.

    Raises as `rebuild_results` does.
    """
    contents = repository.read(commit, results_folder(sweep))
    stored = recorded_batches(repository, commit, sweep, contents)
    if not stored:
        raise RepositoryError(
            f"{results_folder(sweep)}: no archived batch of {sweep} has records at {commit[:12]}",
            hint="name a commit that holds them: `git log -- overlays/archive`",
        )
    provenance = parse_provenance(contents.get(f"{results_folder(sweep)}/{PROVENANCE_FILE}", b""))
    spec = _summarised_spec(repository, commit, sweep, provenance)
    batches.prefetch(stored)
    results = [
        batch_records.batch_results(batch, contents, is_cancelled=batch.name in spec.cancelled)
        for batch in stored
    ]
    try:
        return spec.summarised(results, program)
    except ValueError as error:
        raise RepositoryError(f"{results_folder(sweep)}: {error}", hint="restore it from git") from error


def recorded_batches(
    repository: Repository, commit: str, sweep: str, paths: Container[str]
) -> tuple[StoredBatch, ...]:
    """Return the archived batches of a sweep that have records among some files, by number."""
    stored = batches.of_sweep_in_commit(repository, commit, sweep)
    return tuple(
        batch for batch in stored if not batch.is_active and batch_records.records_file(batch) in paths
    )


def _summarised_spec(
    repository: Repository, commit: str, sweep: str, provenance: Mapping[str, Any]
) -> SpecAtCommit:
    """Return the spec that was summarised; if the provenance names none, the spec at the commit."""
    path, digest = _spec_in_provenance(provenance) or (f"{SPECS}/{sweep}{SUFFIX}", "")
    if digest is None:
        return SpecAtCommit(None, None)
    spec_commit, content = commit, repository.read(commit, path).get(path)
    if digest and (content is None or bytes_digest(content) != digest):
        version = at_commit.earlier_version(
            repository, commit, [path], lambda content: bytes_digest(content) == digest
        )
        if version is None:
            raise RepositoryError(
                f"{path}: no commit in the history of {commit[:12]} holds the content {digest[:19]}, "
                "from which the results were summarised",
                hint="fetch the branch that held it, or all of a shallow clone: `git fetch --unshallow`",
            )
        spec_commit, content = version
    if content is None:
        return SpecAtCommit(None, None)
    # Whether a spec can be read depends on settings, and these may have become stricter since.
    for settings_commit in (spec_commit, commit):
        settings = at_commit.settings_or_defaults(repository, settings_commit)
        sweep_or_problems = at_commit.read_sweep(repository, spec_commit, path, settings)
        if isinstance(sweep_or_problems, Sweep):
            return SpecAtCommit(sweep_or_problems, content)
    return SpecAtCommit(None, content)


def _spec_in_provenance(provenance: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """Return the path and digest of the spec in a provenance; None if it does not name a spec."""
    try:
        spec = provenance["spec"]
        digest = spec["digest"]
        return str(PurePosixPath(spec["path"])), None if digest is None else str(digest)
    except (KeyError, TypeError):
        return None
