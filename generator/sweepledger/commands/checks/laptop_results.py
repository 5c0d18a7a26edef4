"""Results of new batches that a pull request brings from a laptop, where the settings accept them.

Nobody vouches for their records. They must be marked, so that everything that shows them says so; they must claim no
image; and everything else in their results folders must follow from the records.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sweepledger.commands.checks.context import CheckContext
from sweepledger.commands.repository import batch_records, catalog
from sweepledger.commands.verification.batch_audit import BatchAudit, record_differences
from sweepledger.commands.verification.file_diff import FileDifference, file_differences
from sweepledger.commands.verification.rebuild import rebuild_results
from sweepledger.errors import RepositoryError
from sweepledger.formats import records_jsonl
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.results.paths import RECORDS, laptop_batches, laptop_path, results_folder
from sweepledger.structs.record import RAN_PROCESS, Record

CODE = "laptop-results"
WAY_OUT = "let `sweep run` record it, from a branch whose settings have `results.from_pull_request: marked`"


@dataclass(frozen=True)
class LaptopResults:
    """The results at HEAD of the new batches that come with them."""

    context: CheckContext

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths that these results may add or change."""
        context = self.context
        own = {f"{batch.folder}/{path}" for batch in context.laptop for path in batch.contents.paths()}
        for sweep in self._sweeps:
            folder = results_folder(sweep)
            own |= {path for path in context.changed_paths(f"{folder}/") if f"/{RECORDS}/" not in path}
        own |= {
            path for batch in context.laptop for path in batch_records.records_files(batch, context.index)
        }
        return frozenset(own)

    @property
    def _sweeps(self) -> list[str]:
        return sorted({batch.sweep for batch in self.context.laptop})

    def problems(self) -> Iterator[Problem]:
        """Yield a problem for each batch that is not marked, known already or forged, and each wrong file."""
        repository = self.context.workspace.repository
        for sweep in self._sweeps:
            folder = results_folder(sweep)
            contents = repository.read("HEAD", folder)
            marks = laptop_batches(contents.get(laptop_path(sweep), b""))
            former = catalog.laptop_batches_at(repository, self.context.base, sweep)
            own = [batch for batch in self.context.laptop if batch.sweep == sweep]
            names = {*former, *(batch.name for batch in own)}
            if set(marks) != names:
                listed = ", ".join(sorted(names))
                message = f"must name exactly the batches made on a laptop: {listed}; got {', '.join(marks) or 'none'}"
                yield _problem(laptop_path(sweep), message)
            yield from self._known_trials(sweep, own)
            for batch in own:
                yield from _forged_records(batch, contents)
            for difference in self._differences(sweep, own, contents):
                yield _problem(difference.path, str(difference))

    def _known_trials(self, sweep: str, own: list[StoredBatch]) -> Iterator[Problem]:
        """Yield a problem for each batch with a trial that a merged batch has: its result is not a laptop's to give."""
        merged = batches.of_sweep(self.context.merged, sweep)
        batches.prefetch(merged)
        known = {trial.digest: batch.name for batch in merged for trial in batch.trials}
        for batch in own:
            for trial in batch.trials:
                if trial.digest in known:
                    yield _problem(batch.folder, f"{trial.id} is in {known[trial.digest]}, which is merged")
                    break

    def _differences(
        self, sweep: str, own: list[StoredBatch], contents: Mapping[str, bytes]
    ) -> Iterator[FileDifference]:
        repository, folder = self.context.workspace.repository, results_folder(sweep)
        audit = BatchAudit(repository, "HEAD")
        for batch in own:
            yield from audit.batch(batch)
            yield from record_differences(batch, contents)
        try:
            rebuilt = rebuild_results(repository, "HEAD", sweep)
        except (RepositoryError, KeyError, ValueError) as error:
            yield FileDifference(folder, "", "", f"cannot be computed again: {error}")
            return
        for path in sorted({*contents, *(f"{folder}/{path}" for path, _ in rebuilt)}):
            name = path.removeprefix(f"{folder}/")
            yield from file_differences(
                path, rebuilt.files.get(name), contents.get(path), because="by the records"
            )


def _forged_records(batch: StoredBatch, contents: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield a problem for each file with a record that claims to come from a cluster."""
    files = batch_records.records_files(batch, contents)
    if not files:
        yield _problem(batch.folder, "is in the archive without records")
    for path in files:
        for line in records_jsonl.read(contents[path]):
            if isinstance(line.record, Record) and line.record.ran_image:
                message = f"line {line.number}: must have run as {RAN_PROCESS!r}, got {line.record.ran!r}"
                yield _problem(path, message)
                break


def _problem(path: str, message: str) -> Problem:
    return Problem(path, 0, 0, "", message, CODE, WAY_OUT)
