"""Pause running batches until they are resumed.

It commits that none of their trials may run until `sweep cluster resume`. The commit takes effect when it is pushed
or merged. A cluster ends the pods, and no attempt counts as failed.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from sweepledger.cli.options import BatchOption, SweepArgument
from sweepledger.cli.response import SHORT_COMMIT, Response
from sweepledger.cli.text.values import count_text
from sweepledger.errors import IdleError, SpecError, UsageError
from sweepledger.operations.generation import spec_change
from sweepledger.operations.repository import costs
from sweepledger.operations.repository.spec_edit import SpecEdit, batches_message, commit_batches
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import batches
from sweepledger.repo.git import Change
from sweepledger.structs.run_config import RunningState
from sweepledger.structs.settings import Controller

StateChange = Callable[[batches.StoredBatch, RunningState], RunningState]


def pause(workspace: Workspace, name: SweepArgument, batch: BatchOption = None) -> Response:
    return change_running(workspace, name, batch, "pause", lambda _, state: replace(state, paused=True))


def change_running(
    workspace: Workspace, name: str, batch: str | None, verb: str, change: StateChange
) -> Response:
    """Commit a new running state of one batch of a sweep, or of all active batches.

    Raises IdleError if all have this state, UsageError for a batch that is not active, SpecError if a queue runs it or
    above a budget, RepositoryError as SpecEdit does.
    """

    def make(head: str) -> tuple[Change, tuple[batches.StoredBatch, ...]]:
        edit = SpecEdit.at(workspace, name, head)
        edit.require_current()
        active = _active_batches(edit, batch)
        states: dict[str, RunningState] = {}
        for stored in active:
            state = edit.sweep.running.get(stored.name, RunningState())
            if (new := change(stored, state)) != state:
                states[stored.name] = new
        if not states:
            raise IdleError(
                f"nothing to {verb}: {', '.join(stored.name for stored in active)} already runs so",
                hint=f"`sweep status {name}` shows the state of its batches",
            )
        chosen = tuple(stored for stored in active if stored.name in states)
        return _state_change(edit, chosen, states, verb), chosen

    changed = commit_batches(workspace, make)
    trials, commit = count_text(changed.trials, "trial"), changed.commit[:SHORT_COMMIT]
    lines = (
        f"{verb}d {', '.join(changed.batches)} ({trials}) in {commit}",
        "next: push or merge the commit; the controller applies it"
        if workspace.settings.platform.controller is not Controller.NONE
        else "next: `sweep run` and `sweep cluster local` obey within seconds once their branch has the commit",
    )
    return Response(changed, lines)


def _active_batches(edit: SpecEdit, name: str | None) -> tuple[batches.StoredBatch, ...]:
    """Return the named batch, or all active batches. Raises UsageError."""
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
    problems = [*spec_change.running_problems(parsed.sweep, edit.merged, controller, pools)]
    specs, currency = edit.workspace.spec_reader, settings.teams.currency
    repeated = costs.resume_charges(specs, edit.base, parsed.sweep, edit.merged) if verb != "pause" else ()
    problems += (
        costs.overdrawn(parsed.sweep.path, "running", balance, month, currency)
        for month, balance in costs.exceeded_budgets(specs, edit.base, None, repeated)
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
