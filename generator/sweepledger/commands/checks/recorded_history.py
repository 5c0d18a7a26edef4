"""Only the collector writes results and the archive: any other change there must be signed.

Where the settings accept them, a pull request may bring results of new batches from a laptop. Nobody vouches for their
records. They must be marked, so that everything that shows them says so; they must claim no image; and everything else
in their results folders must follow from the records.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sweepledger.commands.checks.context import CheckContext
from sweepledger.commands.repository import batch_records, catalog
from sweepledger.commands.repository.base_files import KEEP_FILES
from sweepledger.commands.verification.batch_audit import BatchAudit, rebuilt_differences, record_differences
from sweepledger.commands.verification.file_diff import FileDifference
from sweepledger.formats import records_jsonl
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import ARCHIVE, StoredBatch
from sweepledger.repo.git import commit_signatures
from sweepledger.results.paths import RECORDS, RESULTS, laptop_batches, laptop_path, results_folder
from sweepledger.structs.record import RAN_PROCESS, Record
from sweepledger.structs.settings import PullRequestResults
from sweepledger.structs.sweep import Sweep

LAPTOP_CODE = "laptop-results"
LAPTOP_WAY_OUT = (
    "let `sweep run` record it, from a branch whose settings have `results.from_pull_request: marked`"
)


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
            for batch in own:
                if known := self.context.known_trial(batch):  # its result is not a laptop's to give
                    yield _problem(batch.folder, f"{known[0]} is in {known[1]}, which is merged")
            for batch in own:
                yield from _forged_records(batch, contents)
            for difference in self._differences(sweep, own, contents):
                yield _problem(difference.path, str(difference))

    def _differences(
        self, sweep: str, own: list[StoredBatch], contents: Mapping[str, bytes]
    ) -> Iterator[FileDifference]:
        repository = self.context.workspace.repository
        audit = BatchAudit(repository, "HEAD")
        for batch in own:
            yield from audit.batch(batch)
            yield from record_differences(batch, contents)
        yield from rebuilt_differences(repository, "HEAD", sweep, contents)


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
    return Problem(path, 0, 0, "", message, LAPTOP_CODE, LAPTOP_WAY_OUT)


CODE = "history-unsigned"
RESULTS_FOLDERS = (f"{RESULTS}/",)
GUARDED_FOLDERS = (*RESULTS_FOLDERS, f"{ARCHIVE}/")
REFUSED = "leave it to the collector; a change of the setting must be merged first"
WAY_OUT = "leave it to the collector; else sign every such commit with a key that `signers` lists at the base"


def check_recorded_history(
    context: CheckContext, sweeps: Iterable[Sweep], *, places: tuple[str, ...] = GUARDED_FOLDERS
) -> Iterator[Problem]:
    """Refuse changes of recorded history, unless each commit that makes them is signed by a listed key.

    The unchanged move of a batch that its spec cancels is free: `sweep cancel` makes it. The settings of the base
    commit may also accept new batches that are marked as made on a laptop, or refuse signed commits, too.
    """
    if context.base is None:
        return
    repository = context.workspace.repository
    edited = context.uncommitted(*places)
    changed = (context.changed_paths(*places) | edited) - {*KEEP_FILES, *_cancelled(context, sweeps)}
    if context.laptop and not edited:
        laptop = LaptopResults(context)
        yield from laptop.problems()
        changed -= laptop.paths
    if not changed:
        return
    if context.settings.results.from_pull_request is PullRequestResults.REFUSE:
        message = "the settings accept results from the collector only (results.from_pull_request: refuse)"
        yield from (Problem(path, 0, 0, "", message, CODE, REFUSED) for path in sorted(changed))
        return
    unsigned = set(_left_behind(context, changed)) if context.is_behind else set()
    newer: set[str] = set()
    for touch in commit_signatures(
        repository, context.base, "HEAD", places, signers=context.settings.git.signers
    ):
        paths = sorted(changed.intersection(touch.paths))
        newest = repository.files(touch.id, *places) if touch.is_signed and paths else {}
        # A merge may restore an older version; no commit shows this as a change.
        unsigned.update(
            path
            for path in paths
            if not touch.is_signed or (path not in newer and newest.get(path) == context.index.get(path))
        )
        newer.update(paths)
        if paths and not touch.is_signed:
            more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
            message = f"commit {touch.id[:12]} changes recorded history{more}, and no listed key signed it"
            yield Problem(paths[0], 0, 0, "", message, CODE, WAY_OUT)
    for path in sorted(changed):
        if path in edited or path not in unsigned:
            yield Problem(path, 0, 0, "", "recorded history is changed by no signed commit", CODE, WAY_OUT)


def _left_behind(context: CheckContext, changed: Iterable[str]) -> Iterator[str]:
    """Yield the paths that equal the commit where this branch left the base: only the base has changed them."""
    repository = context.workspace.repository
    bases = repository.merge_bases(context.base or "HEAD", "HEAD")
    if len(bases) == 1:
        former = repository.files(bases[0], *GUARDED_FOLDERS)
        yield from (path for path in changed if former.get(path) == context.index.get(path))


def _cancelled(context: CheckContext, sweeps: Iterable[Sweep]) -> Iterator[str]:
    cancelled = {name for sweep in sweeps for name in sweep.cancel}
    if not cancelled:
        return
    merged = {batch.name: batch for batch in context.merged if batch.is_active and batch.name in cancelled}
    for batch in context.present:
        if batch.is_active or batch.name not in merged:
            continue
        if not batches.difference(merged[batch.name], batch):
            yield from (f"{batch.folder}/{path}" for path in batch.contents.paths())
