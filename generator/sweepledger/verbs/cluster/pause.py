"""Pause running batches until they are resumed.

It commits that none of their trials may run until `sweep cluster resume`. The commit takes effect when it is pushed
or merged. A cluster ends the pods, and no attempt counts as failed.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import SHORT_COMMIT, Response
from sweepledger.cli.text.values import count_text
from sweepledger.commands.generation import spec_change
from sweepledger.commands.repository import costs
from sweepledger.commands.repository.spec_edit import BatchesChange, SpecEdit, batches_message, commit_batches
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import IdleError, SpecError, UsageError
from sweepledger.problems import Problem
from sweepledger.repo import batches
from sweepledger.repo.git import Change
from sweepledger.structs.run_config import RunningState
from sweepledger.structs.settings import Controller
from sweepledger.structs.sweep import Sweep


def pause(workspace: Workspace, name: SweepArgument, batch: BatchOption = None) -> Response:
    return change_response("paused", workspace, pause_batches(workspace, name, batch=batch))


def change_response(verb: str, workspace: Workspace, change: BatchesChange) -> Response:
    """Return what a commit says of batches that run, and when it takes effect."""
    trials, commit = count_text(change.trials, "trial"), change.commit[:SHORT_COMMIT]
    lines = (
        f"{verb} {', '.join(change.batches)} ({trials}) in {commit}",
        "next: push or merge the commit; the controller applies it"
        if workspace.settings.platform.controller is not Controller.NONE
        else "next: `sweep run` and `sweep cluster local` obey within seconds once their branch has the commit",
    )
    return Response(change, lines)


def pause_batches(workspace: Workspace, name: str, *, batch: str | None = None) -> BatchesChange:
    """Commit that no trial of one batch of a sweep, or of all active ones, may run.

    Raises IdleError if none is left to pause, UsageError for a batch that is not active, SpecError if a queue runs it,
    RepositoryError as SpecEdit does.
    """
    return _commit_state(workspace, name, batch, "pause", lambda _, state: replace(state, paused=True))


def resume_batches(workspace: Workspace, name: str, *, batch: str | None = None) -> BatchesChange:
    """Commit that paused batches run again, once more each. Raises as `pause` does, SpecError above a budget."""

    def again(_: batches.StoredBatch, state: RunningState) -> RunningState:
        return replace(state, paused=False, resumes=state.resumes + 1) if state.paused else state

    return _commit_state(workspace, name, batch, "resume", again)


def scale_batches(
    workspace: Workspace, name: str, parallelism: int, *, batch: str | None = None
) -> BatchesChange:
    """Commit that so many trials of active batches run at once; fewer count as a resume. Raises as `resume` does."""

    def scaled(stored: batches.StoredBatch, state: RunningState) -> RunningState:
        new = replace(state, parallelism=parallelism)
        return replace(new, resumes=state.resumes + spec_change.repeats_trials(stored, state, new))

    return _commit_state(workspace, name, batch, "scale", scaled)


def _commit_state(
    workspace: Workspace,
    name: str,
    batch: str | None,
    verb: str,
    change: Callable[[batches.StoredBatch, RunningState], RunningState],
) -> BatchesChange:
    def make(head: str) -> tuple[Change, tuple[batches.StoredBatch, ...]]:
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

    return commit_batches(workspace, make)


def _active_batches(edit: SpecEdit, name: str | None) -> tuple[batches.StoredBatch, ...]:
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
    edit: SpecEdit, chosen: tuple[batches.StoredBatch, ...], states: Mapping[str, RunningState], verb: str
) -> Change:
    values = {
        name: {"paused": state.paused}
        | ({} if state.parallelism is None else {"parallelism": state.parallelism})
        | ({"resumes": state.resumes} if state.resumes else {})
        for name, state in states.items()
    }
    parsed, text = edit.set_values("running", values)
    settings = edit.workspace.settings
    controller, pools = settings.platform.controller, settings.trials.pools
    problems = (
        *spec_change.running_problems(parsed.sweep, edit.merged, controller, pools),
        *(() if verb == "pause" else _overdrawn(edit, parsed.sweep)),
    )
    if problems:
        raise SpecError(problems)
    files: dict[str, bytes | None] = {}
    for batch in edit.committed:
        if batch.name in states:
            files |= spec_change.running_files(parsed.sweep, batch)
    written, removed = spec_change.as_changes(files)
    message = batches_message(verb, edit.sweep.name, chosen)
    return Change(message, writes={edit.sweep.path: text, **written}, removes=removed)


def _overdrawn(edit: SpecEdit, sweep: Sweep) -> Iterator[Problem]:
    """Yield a problem for each budget that what the resumes repeat exceeds."""
    workspace, settings = edit.workspace, edit.workspace.settings
    specs, repository = workspace.spec_reader, workspace.repository
    budgets, pools = settings.teams.budgets, settings.trials.pools
    repeated = tuple(costs.resume_charges(specs, edit.base, sweep, edit.merged, pools))
    if not budgets or not repeated:
        return
    month = costs.month_of(repository, edit.base, None)
    stored = batches.in_commit(repository, edit.base)
    ledger = costs.month_ledger(specs, edit.base, budgets, pools, month, merged=stored)
    for balance in costs.requested_balances(ledger, budgets, (), repeated):
        if balance.is_exceeded:
            yield costs.overdrawn(sweep.path, "running", balance, month, settings.teams.currency)
