"""Retry failed, missing and cancelled trials.

It commits a batch that contains them.

With --update they run the current program, all others stay: lock and report say so, and rankings by program
leave them out (`sweep results --all-programs` ranks all).
"""

from dataclasses import dataclass
from enum import StrEnum

from sweepledger.cli import response
from sweepledger.cli.options import BatchOption, SweepArgument, flag, option
from sweepledger.cli.text.values import count_text
from sweepledger.errors import IdleError, RepositoryError, UsageError
from sweepledger.operations.generation import next_batch, spec_change
from sweepledger.operations.generation.next_batch import Generated
from sweepledger.operations.repository import programs
from sweepledger.operations.repository.batch_builder import RenderInputs, build_overlay
from sweepledger.operations.repository.batch_records import StoredOutputs, stored_outputs
from sweepledger.operations.repository.spec_edit import SpecEdit
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.render.overlay import Overlay
from sweepledger.repo import batches
from sweepledger.repo.files import read_input
from sweepledger.repo.git import Change, uncommitted_paths
from sweepledger.repo.state import state_folder
from sweepledger.structs.batch import Batch
from sweepledger.structs.record import RETRYABLE_STATUSES, Status
from sweepledger.structs.settings import Controller
from sweepledger.structs.trial import Trial, all_trials


class UnfinishedStatus(StrEnum):
    """Statuses of trials that can be retried."""

    FAILED = "failed"
    MISSING = "missing"
    CANCELLED = "cancelled"


def retry(
    workspace: Workspace,
    name: SweepArgument,
    failed: bool = flag("--failed", "Retry failed trials only."),
    missing: bool = flag("--missing", "Retry trials without a record only."),
    status: list[UnfinishedStatus] | None = option(
        "--status", "Retry trials with this status only; can be repeated. Default: all three."
    ),
    batch: BatchOption = None,
    update: bool = flag("--update", "Retry them with the current code, image and data."),
) -> response.Response:
    selected = [*(status or ()), *[UnfinishedStatus.FAILED] * failed, *[UnfinishedStatus.MISSING] * missing]
    statuses = frozenset(map(Status, selected)) or RETRYABLE_STATUSES
    retried = retry_trials(workspace, name, batch=batch, statuses=statuses, update=update)
    generated, outputs = retried.generated, retried.outputs
    is_cluster = workspace.settings.platform.controller is not Controller.NONE
    trials = count_text(generated.retried, "trial")
    suffix = f", in {retried.commit[: response.SHORT_COMMIT]}" if retried.commit else " already"
    push = "push the commit, or open a pull request"
    data = {
        "sweep": generated.sweep.name,
        "batch": retried.batch,
        "retried": generated.retried,
        "trials": generated.trials - generated.known,
        "commit": retried.commit,
        "read_again": len(outputs.files) if outputs else 0,
    }
    lines = (
        f"{retried.batch} retries {trials}{suffix}",
        *(outputs.lines if outputs and not is_cluster else ()),
        f"next: {push}" if is_cluster else f"next: `sweep run {generated.sweep.name}` here; or {push}",
    )
    return response.Response(data, lines, generated.warnings)


@dataclass(frozen=True)
class Retried:
    """A commit that requests trials again."""

    generated: Generated
    batch: str
    commit: str | None
    """None if a commit that is not on the branch yet requests them already."""
    outputs: StoredOutputs | None = None
    """What `sweep run` reads again here instead of a training; None if nobody looked."""


def retry_trials(
    workspace: Workspace,
    name: str,
    *,
    batch: str | None = None,
    statuses: frozenset[Status] = RETRYABLE_STATUSES,
    update: bool = False,
) -> Retried:
    """Commit the batch that requests trials with these statuses again, and the spec that names their batches.

    The author's changes of the spec, such as a new metric, are committed first.
    With `update` they run the current program, as different trials; the lock of their batch notes this.
    Trials that ended ok, pruned or diverged are never requested again. Raises IdleError if there is nothing
    to retry, UsageError for an unknown batch, and RepositoryError as SpecEdit does.
    """

    def make(head: str) -> tuple[Change, Generated]:
        edit = SpecEdit.at(workspace, name, head)
        if batch is not None:
            edit.merged_batch(batch)
        edit.require_current()
        committed = {each.name for each in edit.committed}
        for each in batches.of_sweep(batches.in_work_tree(workspace.root), name):
            if each.name not in committed:
                hint = "commit it, or remove the folder; then run this again"
                raise RepositoryError(f"{each.folder} is not committed", hint=hint)
        return (_plan_repair if update else _plan_retry)(edit, batch, statuses)

    _commit_changes(workspace, name)
    commit, planned = Target(workspace.repository).commit(make)
    assert planned is not None
    assert planned.batch is not None
    head, name = workspace.repository.commit("HEAD"), planned.batch.name
    stored = batches.of_sweep_in_commit(workspace.repository, head, planned.sweep.name)
    results = state_folder(workspace.repository) / "results"
    made = next((each for each in stored if each.name == name), None)
    outputs = None if made is None else stored_outputs(workspace.repository, head, made, results)
    return Retried(planned, name, commit, outputs)


def _commit_changes(workspace: Workspace, name: str) -> None:
    """Commit the changes of a valid spec that an earlier commit has. Raises SpecError, UsageError."""
    (sweep,), repository = workspace.sweeps([name]), workspace.repository
    if repository.branch() is None or not uncommitted_paths(repository, sweep.path):
        return
    if sweep.path in repository.files(repository.commit("HEAD"), sweep.path):
        content = read_input(workspace.root / sweep.path)
        message = f"spec({name}): change before a retry\n"
        Target(repository).commit(lambda _head: (Change(message, {sweep.path: content}), None))


def _plan_retry(edit: SpecEdit, batch: str | None, statuses: frozenset[Status]) -> tuple[Change, Generated]:
    names = _batches_to_retry(edit, statuses, batch)
    # The author extends an entry that names a batch with fewer statuses.
    for entry in edit.sweep.retry:
        if entry.batch in names and not entry.statuses >= statuses:
            listed = ", ".join(sorted(entry.statuses))
            raise UsageError(
                f"{edit.sweep.path} already names {entry.batch} under retry, only for {listed}",
                hint="add the other statuses to its `only:`, commit, then `sweep generate`",
            )
    is_all = statuses == RETRYABLE_STATUSES
    parsed, text = edit.append(
        *(
            ("retry", name if is_all else {"batch": name, "only": sorted(map(str, statuses))})
            for name in names
            if not any(entry.batch == name and entry.statuses >= statuses for entry in edit.sweep.retry)
        )
    )
    (planned,) = next_batch.plan_batches(edit.workspace, [parsed])
    if planned.batch is None or not planned.retried:
        raise IdleError(
            f"nothing to retry: the spec of {edit.sweep.name} contains none of these trials any more",
            hint="with another program or other values they are other trials: `sweep generate`",
        )
    # A batch that is committed and not merged has the number that the next one needs.
    if planned.stale:
        edit.refuse_proposals()
    (planned,) = next_batch.with_code_warnings(edit.workspace, [parsed], [planned])
    assert planned.batch is not None
    return _change(edit.workspace, planned, planned.batch, text), planned


def _plan_repair(edit: SpecEdit, batch: str | None, statuses: frozenset[Status]) -> tuple[Change, Generated]:
    """Return the batch of the unfinished trials with the current program. Raises UsageError, IdleError."""
    workspace, name, stored = edit.workspace, edit.sweep.name, edit.merged
    (parsed,) = workspace.specs([name])
    if parsed.sweep.rounds is not None or any(each.lock.round is not None for each in stored):
        raise UsageError(
            f"{name} has rounds, in which all trials run one program",
            hint=f"`sweep generate {name} --update` begins anew",
        )
    base, program = batches.newest_of_all(stored), programs.current_program(workspace, parsed.sweep)
    if base is None or base.lock.program.digest == program.digest:
        raise UsageError(
            f"the code, image and data of {name} have not changed since its newest batch",
            hint=f"change and commit the code; or, with this code, `sweep retry {name}`",
        )
    due = frozenset(_batches_to_retry(edit, statuses, batch))
    outcomes = spec_change.recorded_outcomes(workspace.repository, parsed.sweep, stored, edit.results)
    wanted = {digest for each, digest, status in outcomes if each in due and status in statuses}
    failed = {
        Trial(trial.assignment, program.digest, trial.replicate).digest
        for each in stored
        if each.lock.repairs or each.lock.program.digest == base.lock.program.digest
        for trial in each.trials
        if trial.digest in wanted
    }
    listed = {trial.digest for each in (*stored, *edit.committed) for trial in each.trials}
    ((_, expansion),) = next_batch.expand_specs([parsed])
    trials = tuple(
        trial
        for trial in all_trials(parsed.sweep, expansion.configurations, program.digest)
        if trial.digest in failed and trial.digest not in listed
    )
    if not trials:
        raise IdleError(
            f"nothing to retry: the current code has been requested for these trials of {name} already",
            hint=f"`sweep run {name}` runs what is left",
        )
    edit.refuse_proposals()
    requested = Batch(parsed.sweep, program, trials, repairs=True)
    overlay = build_overlay(requested, stored, RenderInputs.of(workspace))
    text = read_input(workspace.root / parsed.sweep.path)
    planned = Generated(
        parsed.sweep, program.code, len(trials), 0, overlay, (), (), is_written=False, retried=len(trials)
    )
    return _change(workspace, planned, overlay, text), planned


def _batches_to_retry(edit: SpecEdit, statuses: frozenset[Status], batch: str | None) -> tuple[str, ...]:
    """Return the names of the batches with trials to retry that no later batch lists. Raises IdleError."""
    newest = {trial.digest: stored.name for stored in edit.merged for trial in stored.trials}
    repository = edit.workspace.repository
    outcomes = tuple(spec_change.recorded_outcomes(repository, edit.sweep, edit.merged, edit.results))
    final = {digest for _, digest, status in outcomes if status.is_final}
    unfinished = [
        (name, newest[digest])
        for name, digest, status in outcomes
        if status in statuses and digest not in final and batch in {None, name}
    ]
    due = {name for name, last in unfinished if name == last}
    if not due:
        wanted = " or ".join(sorted(statuses))
        if later := sorted({last for _, last in unfinished}):
            raise IdleError(
                f"nothing to retry: {', '.join(later)} already requests the {wanted} trials again",
                hint=f"`sweep status {edit.sweep.name}` shows their state",
            )
        raise IdleError(
            f"nothing to retry: no recorded trial of {batch or edit.sweep.name} is {wanted}",
            hint=f"`sweep results {edit.sweep.name}` lists them",
        )
    return tuple(stored.name for stored in edit.merged if stored.name in due)


def _change(workspace: Workspace, planned: Generated, overlay: Overlay, text: bytes) -> Change:
    sweep = planned.sweep
    again = " with later code" if overlay.lock.repairs else ""
    return Change(
        f"retry({sweep.name}): {planned.retried} trials{again}\n\n"
        f"Sweep: {sweep.name}\nBatch: {overlay.name}\nTrials: {overlay.lock.trials}\n",
        {**next_batch.added_files(workspace, planned), sweep.path: text},
    )
