"""Recomputes the files below `results/<sweep>/` from git alone, without cluster, volume or work tree.

Numbers are always recomputed from the records. So are the README and the figures if this version of sweepledger
wrote them; those of another report version are read from the commit that recorded the results.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from sweepledger.commands.repository import at_commit, batch_records
from sweepledger.commands.repository.at_commit import SpecAtCommit
from sweepledger.errors import RepositoryError
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.results.paths import results_folder
from sweepledger.results.provenance import (
    FIRST_REPORT_WITH_ALL_METRICS,
    PROVENANCE_FILE,
    REPORT_VERSION,
    parse_provenance,
    report_version,
)
from sweepledger.results.summary import Summary
from sweepledger.results.tree import is_report_file, number_files, result_files
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import SPECS, SUFFIX
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import bytes_digest


@dataclass(frozen=True, slots=True)
class RebuiltResults:
    """What a sweep's results folder must contain."""

    files: FileTree
    """By path below the results folder."""
    report_commit: str | None = None
    """The commit that README and figures are read from; None if they are recomputed."""

    def source(self, path: str) -> str:
        """Return where the content of a file comes from, for messages."""
        if self.report_commit is not None and is_report_file(path):
            return f"as commit {self.report_commit[:12]} wrote it"
        return "by the records"


def rebuild_results(repository: Repository, commit: str, sweep: str) -> RebuiltResults:
    """Rebuild every file below `results/<sweep>/` from the locks, tables and records of a commit.

    The spec is the one that provenance.json names by its digest, looked up at the commit, then in the history
    of its path. Raises RepositoryError if nothing is recorded, or a file cannot be read or is missing.
    """
    summary, provenance = _recorded_summary(repository, commit, sweep)
    try:
        return _rebuilt(repository, commit, summary, provenance)
    except ValueError as error:
        raise RepositoryError(f"{results_folder(sweep)}: {error}", hint="restore it from git") from error


def recorded_summary(repository: Repository, commit: str, sweep: str, program: str | None) -> Summary:
    """Return the summary of a sweep's recorded batches at a commit, ranking a program as `summarise` does.

    Raises as `rebuild_results` does.
    """
    return _recorded_summary(repository, commit, sweep, program)[0]


def _recorded_summary(
    repository: Repository, commit: str, sweep: str, program: str | None = None
) -> tuple[Summary, Mapping[str, Any]]:
    """Return the summary of a sweep, and the provenance of its results."""
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
    version = report_version(provenance)
    is_older = version is not None and version < FIRST_REPORT_WITH_ALL_METRICS
    results = [
        replace(
            batch_records.batch_results(batch, contents, is_cancelled=batch.name in spec.cancelled),
            by_first_metric=is_older,
        )
        for batch in stored
    ]
    try:
        return spec.summarised(results, program), provenance
    except ValueError as error:
        raise RepositoryError(f"{results_folder(sweep)}: {error}", hint="restore it from git") from error


def _rebuilt(
    repository: Repository, commit: str, summary: Summary, provenance: Mapping[str, Any]
) -> RebuiltResults:
    if report_version(provenance) == REPORT_VERSION:
        return RebuiltResults(result_files(summary))
    digests = (summary.inputs_digest, provenance.get("inputs_digest"))
    origin, version = _results_commit(repository, commit, summary.sweep, digests)
    if origin is None or version == REPORT_VERSION:
        return RebuiltResults(result_files(summary))
    folder = f"{results_folder(summary.sweep)}/"
    written = {
        path.removeprefix(folder): content for path, content in repository.read(origin, folder).items()
    }
    report = {path: content for path, content in written.items() if is_report_file(path)}
    return RebuiltResults(FileTree({**number_files(summary, report=version).files, **report}), origin)


def _results_commit(
    repository: Repository, commit: str, sweep: str, digests: Sequence[object]
) -> tuple[str | None, int]:
    """Return the first commit whose provenance has one of these digests of inputs, and its report version.

    Only the first counts: a later commit may have edited the report and its version, or may have restored the
    provenance after such an edit. Of the digests, the first that any commit has counts.
    """
    recorded: dict[object, tuple[str, int]] = {}
    path = f"{results_folder(sweep)}/{PROVENANCE_FILE}"
    for origin, blob in reversed(tuple(at_commit.file_versions(repository, commit, path))):
        provenance = parse_provenance(repository.blobs([blob])[blob])
        version, digest = report_version(provenance), provenance.get("inputs_digest")
        if version is not None and isinstance(digest, str):
            recorded.setdefault(digest, (origin, version))
    return next((recorded[digest] for digest in digests if digest in recorded), (None, REPORT_VERSION))


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
        spec_commit, content = _find_spec(repository, commit, path, digest)
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


def _find_spec(repository: Repository, commit: str, path: str, digest: str) -> tuple[str, bytes]:
    """Find the content with a digest in the history of a path. Raises RepositoryError."""
    version = at_commit.earlier_version(
        repository, commit, [path], lambda content: bytes_digest(content) == digest
    )
    if version is None:
        raise RepositoryError(
            f"{path}: no commit in the history of {commit[:12]} holds the content {digest[:19]}, "
            "from which the results were summarised",
            hint="fetch the branch that held it, or all of a shallow clone: `git fetch --unshallow`",
        )
    return version
