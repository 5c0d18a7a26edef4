"""Trials that a spec asks for once more, by what the base commit has recorded of them.

Reads and decides; how records lie in git is in recorded.py, and the verb that edits the spec is retry.py.
"""

from collections.abc import Iterator, Sequence

from generator.commands import recorded
from generator.commands.workspace import Workspace
from generator.repo.batches import StoredBatch
from generator.results import judge, results_folder
from generator.structs.record import Status
from generator.structs.sweep import Sweep


def asked_again(
    workspace: Workspace, sweep: Sweep, old: Sequence[StoredBatch], commit: str | None
) -> frozenset[str]:
    """Give the digests of the trials that `retry` names and that no later batch has asked for since.

    What ended ok, pruned or diverged in any batch is never among them, nor what a batch has not recorded yet.
    """
    wanted: dict[str, frozenset[Status]] = {}
    for retry in sweep.retry:
        wanted[retry.batch] = wanted.get(retry.batch, frozenset()) | retry.statuses
    if not wanted:
        return frozenset()
    newest = {trial.digest: batch.name for batch in old for trial in batch.trials}
    found: dict[str, Status] = {}
    final: set[str] = set()
    for batch, digest, status in outcomes(workspace, sweep, old, commit):
        if status.is_final:
            final.add(digest)
        if newest[digest] == batch:
            found[digest] = status
    return frozenset(
        digest
        for digest, status in found.items()
        if status in wanted.get(newest[digest], frozenset()) and digest not in final
    )


def outcomes(
    workspace: Workspace, sweep: Sweep, old: Sequence[StoredBatch], commit: str | None
) -> Iterator[tuple[str, str, Status]]:
    """List batch, trial's digest and kind of end of all that a commit has recorded of some batches."""
    known = workspace.repository.read(commit, results_folder(sweep.name))
    for batch in old:
        if batch.is_active or recorded.records_file(batch) not in known:
            continue
        held = recorded.results(batch, known, is_cancelled=batch.name in sweep.cancel)
        for trial, outcome in zip(batch.trials, judge(held).outcomes, strict=True):
            yield batch.name, trial.digest, outcome.status.kind
