"""Merged batches and their bases never change; a batch leaves only with results or a cancellation.

Only the collector writes results and the archive: any other change there must be signed. Where the settings accept
them, a pull request may bring results of new batches from a laptop. Their records are unsigned. They must be
marked, so that all reports show the mark; they must not claim an image; and all other files in their results
folders must follow from the records.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sweepledger.formats import records_jsonl
from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.formats.running_yaml import RUNNING_FILE
from sweepledger.operations.checks import context as checked
from sweepledger.operations.checks.context import CheckContext
from sweepledger.operations.generation.spec_change import repeats_trials, running_file, running_problems
from sweepledger.operations.repository import at_commit, batch_records, catalog
from sweepledger.operations.scaffold.bootstrap import PLATFORM_BASES
from sweepledger.operations.verification.file_diff import FileDifference
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.repo.base_files import KEEP_FILE, KEEP_FILES
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.git import commit_signatures, uncommitted_paths
from sweepledger.structs.names import (
    RECORDS,
    RESULTS,
    SPECS,
    SUFFIX,
    laptop_batches,
    laptop_path,
    records_path,
    results_folder,
    split_batch_name,
)
from sweepledger.structs.record import RAN_PROCESS, Record
from sweepledger.structs.run_config import RunningState
from sweepledger.structs.settings import Controller
from sweepledger.structs.settings.results import PullRequestResults
from sweepledger.structs.sweep import Sweep


def check_merged_batches(context: CheckContext, sweeps: Sequence[Sweep]) -> Iterator[Problem]:
    """Compare every merged batch with the work tree."""
    cancelled = {name: sweep for sweep in sweeps for name in sweep.cancel}
    copies: dict[str, list[StoredBatch]] = {}
    for batch in context.present:
        copies.setdefault(batch.name, []).append(batch)
    for batch in context.merged:
        is_cancelled = batch.name in cancelled
        yield from _batch_problems(context, batch, copies.get(batch.name, []), is_cancelled=is_cancelled)
    for batch in context.added:
        if not batch.is_active and batch not in context.laptop:
            yield _unmerged_archived(context, batch)
    for name, count in Counter(batch.name for batch in context.present).items():
        if count > 1:
            hint = f"`sweep generate {(split_batch_name(name) or ('NAME',))[0]}` removes it if the batch is recorded"
            path = f"{ACTIVE}/{name}"
            yield Problem(path, 0, 0, "", "is in the archive as well", "batch-active-twice", hint)
    yield from _running_states(context, sweeps)
    active = {batch.name for batch in context.present if batch.is_active}
    for name in sorted(cancelled.keys() & active):
        message = f"cancels {name}, which is still in {ACTIVE}/"
        hint = f"run `sweep cancel {cancelled[name].name}`: it moves the folder to {ARCHIVE}/"
        yield Problem(cancelled[name].path, 0, 0, "cancel", message, "cancel-not-moved", hint)
    yield from _removed_entries(context, sweeps)
    yield from _removed_specs(context)
    yield from _overlay_layout(context)


def _batch_problems(
    context: CheckContext, batch: StoredBatch, copies: list[StoredBatch], *, is_cancelled: bool
) -> Iterator[Problem]:
    if not copies and not checked.is_broken(batch) and not _is_deleted(context, batch):
        yield _problem(context, batch.folder, "a merged batch is missing", "batch-vanished")
    for copy in copies:
        if copy.folder == batch.folder and copy.folder in context.unchanged:
            continue
        drift = batches.difference(batch, copy)
        for path in (*drift.added, *drift.changed, *drift.stale):
            yield _problem(context, f"{copy.folder}/{path}", "a merged batch never changes", "batch-edited")
        if copy.folder == batch.folder:
            continue
        if copy.is_active:
            yield _problem(context, copy.folder, "a recorded batch never runs again", "batch-moved")
        elif not is_cancelled and not _has_records(context, batch):
            message = "a batch may be archived only with its results, or if its spec cancels it"
            yield _problem(context, copy.folder, message, "batch-moved")


def _is_deleted(context: CheckContext, batch: StoredBatch) -> bool:
    """Return whether a recorded batch is gone with its whole sweep, as `sweep delete` removes it."""
    if batch.is_active or context.settings.platform.controller is not Controller.NONE:
        return False
    of_sweep = (f"{SPECS}/{batch.sweep}{SUFFIX}", f"{results_folder(batch.sweep)}/")
    return not any(path.startswith(of_sweep) for path in context.index) and not batches.of_sweep(
        context.present, batch.sweep
    )


def _unmerged_archived(context: CheckContext, batch: StoredBatch) -> Problem:
    message = "a batch that never ran must not be in the archive"
    hint = f"`rm -r {batch.folder}`, commit that, then `sweep generate {batch.sweep}`"
    if _has_records(context, batch):
        message = f"is recorded, but the base commit {(context.base or 'none')[:12]} does not have it"
        hint = (
            f"push it if this is {context.settings.git.branch}, where its results were recorded; compare with the "
            "branch that has it by `--base`; a pull request may bring results if the settings say "
            "`results.from_pull_request: marked`"
        )
    return Problem(batch.folder, 0, 0, "", message, "batch-moved", hint)


def _has_records(context: CheckContext, batch: StoredBatch) -> bool:
    path = f"{results_folder(batch.lock.sweep)}/{records_path(batch.name)}"
    return (context.workspace.root / path).is_file() or path in context.left_out


def _running_states(context: CheckContext, sweeps: Iterable[Sweep]) -> Iterator[Problem]:
    merged = batches.by_sweep(context.merged)
    controller, pools = context.settings.platform.controller, context.settings.trials.pools
    for sweep in sweeps:
        if sweep.running:
            yield from running_problems(sweep, merged.get(sweep.name, ()), controller, pools)
    specs = {sweep.name: sweep for sweep in sweeps}
    former = {batch.name: batch.running_file for batch in context.merged if batch.is_active}
    for batch in context.present:
        found = batch.running_file if batch.is_active else None
        spec = specs.get(batch.sweep)
        if not batch.is_active or (found is None and (spec is None or batch.name not in spec.running)):
            continue
        path = f"{batch.folder}/{RUNNING_FILE}"
        if batch.name not in former:
            message = "a new batch runs as it was made: only a merged one has another state"
            yield _problem(context, path, message, "running-not-written")
        elif found != (former[batch.name] if spec is None else running_file(spec, batch)):
            message = f"differs from what `running` in {SPECS}/{batch.sweep}{SUFFIX} says of {batch.name}"
            hint = f"run `sweep generate {batch.sweep}`"
            yield Problem(path, 0, 0, "", message, "running-not-written", hint)


def _removed_entries(context: CheckContext, sweeps: Iterable[Sweep]) -> Iterator[Problem]:
    """Compare the entries on which results and budgets depend with those of the merged spec.

    Without its entry in the spec, a cancelled batch's trials would be missing in the summary. The pauses that a budget
    charges are counted there, too.
    """
    archived = {batch.name for batch in context.merged if not batch.is_active}
    active = {batch.name: batch for batch in context.merged if batch.is_active}
    specs = at_commit.SpecReader(context.workspace.repository, context.settings)
    for sweep in sweeps if context.merged else ():
        former = specs.sweep(context.base, sweep.path)
        if former is None:
            continue
        for name in former.cancel:
            if name in archived and name not in sweep.cancel:
                message = f"must name {name}, which was cancelled: its results depend on this entry"
                hint = f"restore it; `sweep retry {sweep.name}` requests its trials again"
                yield Problem(sweep.path, 0, 0, "cancel", message, "cancel-removed", hint)
        for name in sorted(former.running.keys() | sweep.running.keys()):
            before, after = (each.running.get(name, RunningState()) for each in (former, sweep))
            least = before.resumes + (name in active and repeats_trials(active[name], before, after))
            if name in archived | active.keys() and after.resumes < least:
                message = f"must be at least {least}, got {after.resumes}: budgets charge what {name} repeats"
                hint = (
                    f"restore the entry; `sweep cluster resume {sweep.name}` adds one for each pause that ends, "
                    "`sweep cluster scale` for fewer at once"
                )
                yield Problem(sweep.path, 0, 0, f"running.{name}.resumes", message, "resumes-lowered", hint)


def _removed_specs(context: CheckContext) -> Iterator[Problem]:
    """Yield a problem for each removed spec with an unrecorded batch: only a spec says which batch is cancelled."""
    root, folder = context.workspace.root, f"{SPECS}/"
    merged = (path for path in context.base_entries if path.startswith(folder))
    removed = {path for path in merged if not os.path.isfile(f"{root}/{path}")}  # noqa: PTH113 - a third of the time
    needed = {
        path
        for batch in context.present
        if (path := f"{SPECS}/{batch.sweep}{SUFFIX}") in removed
        if batch.is_active or not _has_records(context, batch)
    }
    message = "must stay until each batch of it is recorded"
    hint = "restore it; to stop a batch, name it under `cancel`, and merge that before the removal"
    yield from (Problem(path, 0, 0, "", message, "spec-removed", hint) for path in sorted(needed))


def _overlay_layout(context: CheckContext) -> Iterator[Problem]:
    """Yield a problem for each entry of overlays/ except batches and .gitkeep: controllers read every entry."""
    folders = {batch.folder for batch in context.present}
    for root in (ACTIVE, ARCHIVE):
        folder = context.workspace.root / root
        is_there = (folder / KEEP_FILE).is_file() or f"{root}/{KEEP_FILE}" in context.left_out
        if context.present and not is_there:
            message = "must stay: a controller prunes only while the folder exists"
            yield _problem(context, f"{root}/{KEEP_FILE}", message, "overlay-layout")
        for name in sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else ():
            path = f"{root}/{name}"
            if name != KEEP_FILE and path not in folders:
                # A merge that ignored this check must not block other changes, or the removal of the entry.
                severity = Severity.WARNING if _is_as_merged(context, path) else Severity.ERROR
                hint = "remove it from overlays/"
                yield Problem(path, 0, 0, "", "is not a batch", "overlay-layout", hint, severity)


def _is_as_merged(context: CheckContext, path: str) -> bool:
    """Return whether a path, and everything below it, equals the base commit."""
    merged, new = (
        {name: entry for name, entry in entries.items() if f"{name}/".startswith(f"{path}/")}
        for entries in (context.base_entries, context.index)
    )
    return bool(merged) and merged == new and not uncommitted_paths(context.workspace.repository, path)


def _problem(context: CheckContext, file: str, message: str, code: str) -> Problem:
    base = (context.base or "HEAD")[:12]
    if context.is_behind:
        hint = f"the base commit is newer: merge it into this branch, `git merge {base}`, then check again"
    elif code == "batch-vanished":
        hint = f"`git restore --source={base} --staged --worktree -- {file}`; to end it, `sweep cancel` it instead"
    else:
        hint = "restore it from the base commit; to request other trials, change the spec"
    return Problem(file, 0, 0, "", message, code, hint)


def check_frozen_bases(context: CheckContext) -> Iterator[Problem]:
    """Compare the bases that the base commit's overlays, active or archived, and platform refer to."""
    changed = [
        path
        for path in sorted(context.changed_bases)
        if (version := checked.BASE_VERSION.match(path)) is None or version[0] in context.versions
    ]
    if not changed:
        return  # only new versions: no lock needs to be read
    folders = (folder for _, folder in checked.referenced_bases(context.merged))
    frozen = dict.fromkeys(folders, "merged overlays refer to it")
    if BOOTSTRAP_FILE in context.base_entries:
        platform = (f"{checked.BASE}{name}" for name in PLATFORM_BASES)
        frozen |= dict.fromkeys(platform, "the files in clusters/ are made from it")
    for path in changed:
        for folder in sorted(frozen):
            if path.startswith(f"{folder}/"):
                message = f"{folder} is frozen: {frozen[folder]}"
                yield Problem(path, 0, 0, "", message, "base-changed", "add a new version folder beside it")


LAPTOP_WAY_OUT = (
    "let `sweep run` record it, from a branch whose settings have `results.from_pull_request: marked`"
)


def _laptop_problems(context: CheckContext) -> Iterator[Problem]:
    """Yield a problem for each new batch with results that is unmarked or claims an image, and for each wrong file."""
    from sweepledger.operations.verification.batch_audit import SweepAudit  # noqa: PLC0415 - draws; seldom needed

    repository = context.workspace.repository
    for sweep, own in sorted(batches.by_sweep(context.laptop).items()):
        audit = SweepAudit(repository, "HEAD", sweep)
        marks = laptop_batches(audit.contents.get(laptop_path(sweep), b""))
        former = catalog.laptop_batches_at(repository, context.base, sweep)
        names = {*former, *(batch.name for batch in own)}
        if set(marks) != names:
            listed = ", ".join(sorted(names))
            got = ", ".join(marks) or "none"
            message = f"must name exactly the batches made on a laptop: {listed}; got {got}"
            yield _laptop_problem(laptop_path(sweep), message)
        differences: list[FileDifference] = []
        for batch in own:
            if known := context.known_trial(batch):  # its result is not a laptop's to give
                yield _laptop_problem(batch.folder, f"{known[0]} is in {known[1]}, which is merged")
            differences += (*audit.batch(batch), *audit.records(batch))
            files = batch_records.records_files(batch, audit.contents)
            if not files:
                yield _laptop_problem(batch.folder, "is in the archive without records")
            for path in files:  # one record that claims to come from a cluster is enough
                for number, record in records_jsonl.read(audit.contents[path]):
                    if isinstance(record, Record) and record.ran_image:
                        message = f"line {number}: must have run as {RAN_PROCESS!r}, got {record.ran!r}"
                        yield _laptop_problem(path, message)
                        break
        differences += audit.rebuilt()
        yield from (_laptop_problem(difference.path, str(difference)) for difference in differences)


def _laptop_problem(path: str, message: str) -> Problem:
    return Problem(path, 0, 0, "", message, "laptop-results", LAPTOP_WAY_OUT)


UNSIGNED = "history-unsigned"
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
        yield from _laptop_problems(context)
        # What the results of the new batches that come with them may add or change.
        for batch in context.laptop:
            folder = f"{results_folder(batch.sweep)}/"
            changed -= {path for path in context.changed_paths(folder) if f"/{RECORDS}/" not in path}
            changed -= {f"{batch.folder}/{path}" for path in batch.contents.paths}
            changed -= {*batch_records.records_files(batch, context.index)}
    if not changed:
        return
    if context.settings.results.from_pull_request is PullRequestResults.REFUSE:
        message = "the settings accept results from the collector only (results.from_pull_request: refuse)"
        yield from (Problem(path, 0, 0, "", message, UNSIGNED, REFUSED) for path in sorted(changed))
        return
    unsigned: set[str] = set()
    left = repository.merge_bases(context.base, "HEAD") if context.is_behind else ()
    if len(left) == 1:  # only the base has changed what equals the commit where this branch left it
        former = repository.files(left[0], *GUARDED_FOLDERS)
        unsigned.update(path for path in changed if former.get(path) == context.index.get(path))
    newer: set[str] = set()
    for touch in commit_signatures(
        repository, context.base, "HEAD", places, signers=context.settings.git.signers
    ):
        paths = sorted(changed.intersection(touch.paths))
        # A merge may restore an older version; no commit shows this as a change.
        unsigned.update(
            path
            for path in paths
            if not touch.is_signed or (path not in newer and touch.left(path, context.index.get(path)))
        )
        newer.update(paths)
        if paths and not touch.is_signed:
            more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
            message = f"commit {touch.id[:12]} changes recorded history{more}, and no listed key signed it"
            yield Problem(paths[0], 0, 0, "", message, UNSIGNED, WAY_OUT)
    message = "recorded history is changed by no signed commit"
    unknown = sorted(path for path in changed if path in edited or path not in unsigned)
    yield from (Problem(path, 0, 0, "", message, UNSIGNED, WAY_OUT) for path in unknown)


def _cancelled(context: CheckContext, sweeps: Iterable[Sweep]) -> Iterator[str]:
    cancelled = {name for sweep in sweeps for name in sweep.cancel}
    merged = {batch.name: batch for batch in context.merged if batch.is_active and batch.name in cancelled}
    for batch in context.present if merged else ():
        former = None if batch.is_active else merged.get(batch.name)
        if former is not None and not batches.difference(former, batch):
            yield from (f"{batch.folder}/{path}" for path in batch.contents.paths)
