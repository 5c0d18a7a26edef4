"""`sweep cancel`, `sweep cluster pause`, `resume` and `scale`: a commit that ends batches, or says how they run now.

The spec names cancelled batches, whose overlays move to the archive. Its key `running` says how the others run, and a
file in the folder of each, which the controller applies.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from sweepledger.commands.repository import batch_records, costs
from sweepledger.commands.repository.running_batches import (
    as_changes,
    repeats_trials,
    running_files,
    running_problems,
)
from sweepledger.commands.repository.spec_edit import SpecEdit
from sweepledger.commands.repository.workspace import Target, Workspace
from sweepledger.errors import IdleError, SpecError, UsageError
from sweepledger.problems import Problem
from sweepledger.render.platform import flux
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Change
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import RunningState
from sweepledger.structs.sweep import Sweep


@dataclass(frozen=True)
class BatchesChange:
    """A commit that changes batches of a sweep."""

    sweep: str
    batches: tuple[str, ...]
    trials: int
    commit: str


@dataclass(frozen=True)
class Cancelled(BatchesChange):
    """A commit that cancels batches."""

    replaced: bool
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
    folders = {batch.folder for batch in edit.committed}
    # A batch that HEAD has archived already, for which the spec lost its entry, is only named again.
    moves, written, left = batches.archiving(batch for batch in chosen if batch.folder in folders)
    return Change(
        message=_message("cancel", edit.sweep.name, chosen),
        writes={**written, edit.sweep.path: text},
        moves=moves,
        removes=left | {flux.batch_file(batch.name, batch.lock.cluster) for batch in chosen},
    )


def _is_retried(edit: SpecEdit, batch: StoredBatch) -> bool:
    return any(retry.batch == batch.name and Status.CANCELLED in retry.statuses for retry in edit.sweep.retry)


def _cancelled(edit: SpecEdit) -> dict[str, str]:
    """Return the batches that are cancelled and not recorded, each with what has to happen next."""
    pending = batch_records.unrecorded_batches(edit.workspace.repository, edit.results, edit.merged)
    archived = {batch.name for batch in edit.committed if not batch.is_active}
    unpushed = [batch.name for batch in edit.merged if batch.is_active and batch.name in archived]
    unpushed = [name for name in unpushed if name in edit.sweep.cancel]
    push = "push it, or open a pull request"
    return {batch.name: "its results are pending" for batch in pending} | dict.fromkeys(unpushed, push)


def _refuse_all(edit: SpecEdit, cancelled: Mapping[str, str], *, replace: bool) -> NoReturn:
    if cancelled:
        name, pending = next(iter(cancelled.items()))
        _refuse(edit, name, pending, replace=replace)
    edit.refuse_proposals()
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


def _message(verb: str, sweep: str, chosen: tuple[StoredBatch, ...]) -> str:
    names = ", ".join(batch.name for batch in chosen)
    trailers = "".join(f"Batch: {batch.name}\n" for batch in chosen)
    return f"{verb}({sweep}): {names} ({_trial_count(chosen)} trials)\n\nSweep: {sweep}\n{trailers}"


def pause(workspace: Workspace, name: str, *, batch: str | None = None) -> BatchesChange:
    """Commit that no trial of one batch of a sweep, or of all active ones, may run.

    Raises IdleError if none is left to pause, UsageError for a batch that is not active, SpecError if a queue runs it,
    RepositoryError as SpecEdit does.
    """
    return _commit_state(workspace, name, batch, "pause", lambda _, state: replace(state, paused=True))


def resume(workspace: Workspace, name: str, *, batch: str | None = None) -> BatchesChange:
    """Commit that paused batches run again, once more each. Raises as `pause` does, SpecError above a budget."""

    def again(_: StoredBatch, state: RunningState) -> RunningState:
        return replace(state, paused=False, resumes=state.resumes + 1) if state.paused else state

    return _commit_state(workspace, name, batch, "resume", again)


def scale(workspace: Workspace, name: str, parallelism: int, *, batch: str | None = None) -> BatchesChange:
    """Commit that so many trials of active batches run at once; fewer count as a resume. Raises as `resume` does."""

    def scaled(stored: StoredBatch, state: RunningState) -> RunningState:
        new = replace(state, parallelism=parallelism)
        return replace(new, resumes=state.resumes + repeats_trials(stored, state, new))

    return _commit_state(workspace, name, batch, "scale", scaled)


def _commit_state(
    workspace: Workspace,
    name: str,
    batch: str | None,
    verb: str,
    change: Callable[[StoredBatch, RunningState], RunningState],
) -> BatchesChange:
    def make(head: str) -> tuple[Change, tuple[StoredBatch, ...]]:
        edit = SpecEdit.at(workspace, name, head)
        edit.require_current()
        active = _active_batches(edit, batch)
        changed: dict[str, RunningState] = {}
        for stored in active:
            state = edit.sweep.running.get(stored.name, RunningState())
            if (new := change(stored, state)) != state:
                changed[stored.name] = new
        if not changed:
            raise IdleError(
                f"nothing to {verb}: {', '.join(stored.name for stored in active)} already runs so",
                hint=f"`sweep status {name}` shows the state of its batches",
            )
        chosen = tuple(stored for stored in active if stored.name in changed)
        return _state_change(edit, chosen, changed, verb), chosen

    commit, chosen = Target(workspace.repository).commit(make)
    assert commit is not None
    assert chosen is not None
    names = tuple(stored.name for stored in chosen)
    return BatchesChange(chosen[0].sweep, names, _trial_count(chosen), commit)


def _active_batches(edit: SpecEdit, name: str | None) -> tuple[StoredBatch, ...]:
    """Return the batches that are meant: the named one, or all that are active. Raises UsageError."""
    hint = f"`sweep status {edit.sweep.name}` shows the state of its batches"
    if name is not None and not edit.merged_batch(name).is_active:
        raise UsageError(f"{name} is not active: none of its trials runs any more", hint=hint)
    here = {batch.name for batch in edit.committed if batch.is_active}
    active = tuple(
        batch
        for batch in edit.merged
        if batch.is_active and batch.name in here and name in {None, batch.name}
    )
    if not active:
        edit.refuse_proposals()
        raise UsageError(f"{edit.sweep.name} has no active batch", hint=hint)
    return active


def _state_change(
    edit: SpecEdit, chosen: tuple[StoredBatch, ...], states: Mapping[str, RunningState], verb: str
) -> Change:
    values = {
        name: {"paused": state.paused}
        | ({} if state.parallelism is None else {"parallelism": state.parallelism})
        | ({"resumes": state.resumes} if state.resumes else {})
        for name, state in states.items()
    }
    parsed, text = edit.set_values("running", values)
    problems = (
        *running_problems(parsed.sweep, edit.merged, edit.workspace.settings),
        *(() if verb == "pause" else _overdrawn(edit, parsed.sweep)),
    )
    if problems:
        raise SpecError(problems)
    names = {batch.name for batch in chosen}
    here = [batch for batch in edit.committed if batch.name in names]
    files = {path: content for batch in here for path, content in running_files(parsed.sweep, batch).items()}
    written, removed = as_changes(files)
    message = _message(verb, edit.sweep.name, chosen)
    return Change(message, writes={edit.sweep.path: text, **written}, removes=removed)


def _overdrawn(edit: SpecEdit, sweep: Sweep) -> Iterator[Problem]:
    """Yield a problem for each budget that what the resumes repeat exceeds."""
    settings, repository = edit.workspace.settings, edit.workspace.repository
    repeated = tuple(costs.resume_charges(repository, edit.base, sweep, edit.merged, settings))
    if not settings.budgets or not repeated:
        return
    month = costs.month_of(repository, edit.base, None)
    stored = batches.in_commit(repository, edit.base)
    ledger = costs.month_ledger(repository, edit.base, settings, month, merged=stored)
    for balance in costs.requested_balances(ledger, settings.budgets, (), repeated):
        if balance.is_exceeded:
            yield costs.overdrawn(sweep.path, "running", balance, month, settings.currency)
