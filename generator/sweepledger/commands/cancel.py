"""`sweep cancel`: one commit that names batches in the spec's `cancel` list and archives their overlays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from sweepledger.commands.repository import batch_records
from sweepledger.commands.repository.spec_edit import SpecEdit
from sweepledger.commands.repository.workspace import Target, Workspace
from sweepledger.errors import IdleError, UsageError
from sweepledger.render.platform import flux
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Change
from sweepledger.structs.record import Status


@dataclass(frozen=True)
class Cancelled:
    """A commit that cancels batches."""

    sweep: str
    batches: tuple[str, ...]
    trials: int
    commit: str
    is_replaced: bool
    """Whether the spec requests the cancelled trials again."""


def cancel(workspace: Workspace, name: str, *, batch: str | None = None, replace: bool = False) -> Cancelled:
    """Commit the cancellation of one batch of a sweep, or of all active ones.

    The spec names them, and their overlays move to the archive; the collector records what the trials have
    written once the cluster has ended them. Raises IdleError if all are cancelled already, UsageError for a
    batch that is not merged or is recorded, and RepositoryError as SpecEdit does.
    """

    def make(head: str) -> tuple[Change, tuple[StoredBatch, ...]]:
        edit = SpecEdit.at(workspace, name, head)
        chosen = _batches_to_cancel(edit, batch, replace=replace)
        edit.require_current()
        return cancellation(edit, chosen, replace=replace), chosen

    commit, chosen = Target(workspace.repository).commit(make)
    assert commit is not None
    assert chosen is not None
    return Cancelled(
        chosen[0].sweep, tuple(stored.name for stored in chosen), _trial_count(chosen), commit, replace
    )


def _batches_to_cancel(edit: SpecEdit, name: str | None, *, replace: bool) -> tuple[StoredBatch, ...]:
    cancelled = _cancelled(edit)
    if name:
        return (_active_batch(edit, name, cancelled, replace=replace),)
    chosen = tuple(batch for batch in edit.merged if batch.is_active and batch.name not in cancelled)
    if not chosen:
        _refuse_all(edit, cancelled, replace=replace)
    return chosen


def cancellation(edit: SpecEdit, chosen: tuple[StoredBatch, ...], *, replace: bool) -> Change:
    """Return the change that cancels batches; with `replace` the spec requests their unfinished trials again."""
    retries = [
        ("retry", {"batch": batch.name, "only": [str(Status.CANCELLED)]})
        for batch in chosen
        if replace and not _is_retried(edit, batch)
    ]
    unnamed = [batch for batch in chosen if batch.name not in edit.sweep.cancel]
    _, text = edit.append(*(("cancel", batch.name) for batch in unnamed), *retries)
    moves, left = batches.archiving(chosen)
    return Change(
        message=_message(edit.sweep.name, chosen),
        writes={edit.sweep.path: text},
        moves=moves,
        removes=left | {flux.batch_file(batch.name) for batch in chosen},
    )


def _is_retried(edit: SpecEdit, batch: StoredBatch) -> bool:
    return any(retry.batch == batch.name and Status.CANCELLED in retry.statuses for retry in edit.sweep.retry)


def _cancelled(edit: SpecEdit) -> dict[str, str]:
    """Return the batches that are cancelled and not recorded, each with what has to happen next."""
    pending = batch_records.unrecorded_batches(edit.workspace.repository, edit.base, edit.merged)
    archived = {batch.name for batch in edit.committed if not batch.is_active}
    unpushed = [batch.name for batch in edit.merged if batch.is_active and batch.name in archived]
    unpushed = [name for name in unpushed if name in edit.sweep.cancel]
    push = "push it, or open a pull request"
    return {batch.name: "its results are pending" for batch in pending} | dict.fromkeys(unpushed, push)


def _refuse_all(edit: SpecEdit, cancelled: Mapping[str, str], *, replace: bool) -> NoReturn:
    if cancelled:
        name, pending = next(iter(cancelled.items()))
        _refuse(edit, name, pending, replace=replace)
    raise UsageError(
        f"{edit.sweep.name} has no active batch to cancel",
        hint=f"`sweep status {edit.sweep.name}` shows the state of its batches",
    )


def _refuse(edit: SpecEdit, name: str, pending: str, *, replace: bool) -> NoReturn:
    """Report that a batch is cancelled already; `sweep retry` then requests its trials again."""
    hint = f"once it is recorded, `sweep retry {edit.sweep.name} --batch {name}` requests its trials again"
    if replace:
        raise UsageError(f"{name} is cancelled already: {pending}", hint=hint)
    raise IdleError(f"{name} is cancelled already: {pending}", hint=hint)


def _active_batch(edit: SpecEdit, name: str, cancelled: Mapping[str, str], *, replace: bool) -> StoredBatch:
    batch = edit.merged_batch(name)
    if name in cancelled:
        _refuse(edit, name, cancelled[name], replace=replace)
    if batch.is_active:
        return batch
    raise UsageError(
        f"{name} is recorded: none of its trials runs any more",
        hint=f"`sweep retry {edit.sweep.name} --batch {name}` requests its unfinished trials again",
    )


def _trial_count(chosen: tuple[StoredBatch, ...]) -> int:
    return sum(batch.lock.trials for batch in chosen)


def _message(sweep: str, chosen: tuple[StoredBatch, ...]) -> str:
    names = ", ".join(batch.name for batch in chosen)
    trailers = "".join(f"Batch: {batch.name}\n" for batch in chosen)
    return f"cancel({sweep}): {names} ({_trial_count(chosen)} trials)\n\nSweep: {sweep}\n{trailers}"
