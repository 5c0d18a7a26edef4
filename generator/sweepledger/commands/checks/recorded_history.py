"""Only the collector writes results and the archive: any other change there must be signed."""

from collections.abc import Iterable, Iterator

from sweepledger.commands.checks.context import CheckContext
from sweepledger.commands.repository.base_files import KEEP_FILES
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.batches import ARCHIVE
from sweepledger.repo.git import commit_signatures
from sweepledger.results.paths import RESULTS
from sweepledger.structs.settings import PullRequestResults
from sweepledger.structs.sweep import Sweep

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
        # Few changes bring results, and what rebuilds them takes a tenth of a second to import.
        from sweepledger.commands.checks.laptop_results import LaptopResults  # noqa: PLC0415

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
        repository, context.base, "HEAD", places, signers=context.settings.signers
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
