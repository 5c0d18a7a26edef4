"""Cancel running batches by a commit.

It adds their names to the spec, and moves their overlays to the archive. The commit takes effect when it is pushed
or merged.
"""

from sweepledger.cli import response
from sweepledger.cli.options import BatchOption, SweepArgument, flag
from sweepledger.cli.text.values import count_text
from sweepledger.errors import IdleError, UsageError
from sweepledger.operations.repository import batch_records
from sweepledger.operations.repository.spec_edit import SpecEdit, cancellation, commit_batches
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Change
from sweepledger.structs.settings import Controller


def cancel(
    workspace: Workspace,
    name: SweepArgument,
    batch: BatchOption = None,
    replace: bool = flag("--replace", "Request the cancelled trials again after they are recorded."),
) -> response.Response:
    def make(head: str) -> tuple[Change, tuple[StoredBatch, ...]]:
        edit = SpecEdit.at(workspace, name, head)
        chosen = _batches_to_cancel(edit, batch, replace=replace)
        edit.require_current()
        return cancellation(edit, chosen, replace=replace), chosen

    cancelled = commit_batches(workspace, make)
    trials, commit = count_text(cancelled.trials, "trial"), cancelled.commit[: response.SHORT_COMMIT]
    lines = [
        f"cancelled {', '.join(cancelled.batches)} ({trials}) in {commit}",
        "next: push or merge the commit; the controller then ends the pods, and the collector records the rest"
        if workspace.settings.platform.controller is not Controller.NONE
        else f"next: `sweep run {cancelled.sweep}` records the rest here; or push or merge the commit",
    ]
    if replace:
        lines.append(f"then: `sweep generate {cancelled.sweep}` requests the cancelled trials again")
    return response.Response({**response.as_data(cancelled), "replaced": replace}, tuple(lines))


def _batches_to_cancel(edit: SpecEdit, name: str | None, *, replace: bool) -> tuple[StoredBatch, ...]:
    """Return the batch with a name, or all active batches that are not cancelled yet.

    Raises IdleError if all are cancelled already, UsageError for a batch that is not merged or is recorded.
    """
    sweep = edit.sweep.name
    if name is not None:
        edit.merged_batch(name)
    pending = batch_records.unrecorded_batches(edit.workspace.repository, edit.results, edit.merged)
    cancelled = {batch.name: "its results are pending" for batch in pending}
    archived = {batch.name for batch in edit.committed if not batch.is_active}
    active = [batch for batch in edit.merged if batch.is_active]
    unpushed = archived & {batch.name for batch in active} & {*edit.sweep.cancel}
    cancelled |= dict.fromkeys(sorted(unpushed), "push it, or open a pull request")
    named = [batch for batch in active if name in {None, batch.name}]
    if chosen := tuple(batch for batch in named if batch.name not in cancelled):
        return chosen
    for batch, state in cancelled.items():
        if name in {None, batch}:
            failure = UsageError if replace else IdleError
            hint = f"once it is recorded, `sweep retry {sweep} --batch {batch}` requests its trials again"
            raise failure(f"{batch} is cancelled already: {state}", hint=hint)
    if name is not None:
        raise UsageError(
            f"{name} is recorded: none of its trials runs any more",
            hint=f"`sweep retry {sweep} --batch {name}` requests its unfinished trials again",
        )
    edit.refuse_proposals()
    raise UsageError(
        f"{sweep} has no active batch to cancel",
        hint=f"`sweep status {sweep}` shows the state of its batches",
    )
